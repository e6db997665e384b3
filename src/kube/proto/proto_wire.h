/*
 * The wire form of protobuf, below any schema: a message is a run of fields, each a number, a wire
 * type and a payload. Reading takes no memory; bytes are slices of the message. Groups are refused:
 * no published Kubernetes message has one, and they are what makes skipping a field recursive.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct td_error;

enum td_wire_type {
    TD_WIRE_VARINT = 0,
    TD_WIRE_FIXED64 = 1,
    TD_WIRE_BYTES = 2, /* strings, bytes, messages, packed lists */
    TD_WIRE_FIXED32 = 5,
};

struct td_wire_field {
    uint32_t number;        /* 1 to 536,870,911 */
    enum td_wire_type type; /* says which of the two below is set */
    uint64_t value;         /* of a varint, or the bits of a fixed one */
    td_str bytes;           /* a slice of the message */
};

/* Takes the next field, known or not, from the front of `message`, which is not empty. TD_INVALID
 * when it is cut short or not a field. */
int td_wire_next(td_str *message, struct td_wire_field *ret, struct td_error *err);

/* Takes one varint, as in a packed list; false when it is cut short or longer than 64 bits take. */
bool td_wire_varint(td_str *bytes, uint64_t *ret);

/* Takes the eight bytes of a fixed64; false when there are fewer. */
bool td_wire_fixed64(td_str *bytes, uint64_t *ret);
