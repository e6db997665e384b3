/*
 * Every length is checked before a byte is read. A field that reaches past the end of its message,
 * a number that no field can have and a wire type that is not read end the reading with TD_INVALID.
 */
#include "kube/proto/proto_wire.h"

#include "base/assert.h"
#include "base/error.h"

#define WIRE_NUMBER_MAX 536870911U /* 29 bits, by the format */
#define WIRE_TYPE_BITS 3
#define VARINT_BYTES_MAX 10 /* 64 bits in groups of seven */

/* Drops bytes that have been read; there are that many. */
static void wire_advance(td_str *bytes, size_t count)
{
    bytes->ptr += count;
    bytes->len -= count;
}

bool td_wire_varint(td_str *bytes, uint64_t *ret)
{
    uint64_t value = 0;
    size_t limit = bytes->len < VARINT_BYTES_MAX ? bytes->len : VARINT_BYTES_MAX;
    for (size_t i = 0; i < limit; i++) {
        unsigned char byte = (unsigned char)bytes->ptr[i];
        /* Bits past the 64th are dropped, as Go's reader does. */
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            wire_advance(bytes, i + 1);
            *ret = value;
            return true;
        }
    }
    return false;
}

/* `count` bytes, the lowest first. */
static bool wire_fixed(td_str *bytes, size_t count, uint64_t *ret)
{
    if (bytes->len < count) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        value |= (uint64_t)(unsigned char)bytes->ptr[i] << (8 * i);
    }
    wire_advance(bytes, count);
    *ret = value;
    return true;
}

bool td_wire_fixed64(td_str *bytes, uint64_t *ret)
{
    return wire_fixed(bytes, sizeof(uint64_t), ret);
}

static bool wire_bytes(td_str *message, td_str *ret)
{
    uint64_t len = 0;
    if (!td_wire_varint(message, &len) || len > message->len) {
        return false;
    }
    *ret = (td_str){.ptr = message->ptr, .len = (size_t)len};
    wire_advance(message, (size_t)len);
    return true;
}

static bool wire_payload(td_str *message, struct td_wire_field *field)
{
    switch (field->type) {
    case TD_WIRE_VARINT:
        return td_wire_varint(message, &field->value);
    case TD_WIRE_FIXED64:
        return td_wire_fixed64(message, &field->value);
    case TD_WIRE_FIXED32:
        return wire_fixed(message, sizeof(uint32_t), &field->value);
    case TD_WIRE_BYTES:
        break;
    }
    return wire_bytes(message, &field->bytes);
}

int td_wire_next(td_str *message, struct td_wire_field *ret, struct td_error *err)
{
    td_assert(message->len > 0);
    td_str rest = *message;
    uint64_t tag = 0;
    if (!td_wire_varint(&rest, &tag)) {
        return td_error_set(err, TD_INVALID, "protobuf: a field's tag is cut short or too long");
    }
    uint64_t number = tag >> WIRE_TYPE_BITS;
    unsigned type = (unsigned)tag & ((1U << WIRE_TYPE_BITS) - 1);
    if (number == 0 || number > WIRE_NUMBER_MAX) {
        return td_error_set(err, TD_INVALID, "protobuf: no field can have the number %llu",
                            (unsigned long long)number);
    }
    if (type != TD_WIRE_VARINT && type != TD_WIRE_FIXED64 && type != TD_WIRE_BYTES &&
        type != TD_WIRE_FIXED32) {
        return td_error_set(err, TD_INVALID, "protobuf: field %u has wire type %u: %s",
                            (unsigned)number, type,
                            type < TD_WIRE_FIXED32 ? "groups are not read" : "there is none");
    }
    struct td_wire_field field = {
        .number = (uint32_t)number, .type = (enum td_wire_type)type, .bytes = TD_STR_EMPTY};
    if (!wire_payload(&rest, &field)) {
        return td_error_set(err, TD_INVALID, "protobuf: field %u is cut short or too long",
                            (unsigned)number);
    }
    *message = rest;
    *ret = field;
    return TD_OK;
}
