/*
 * Encodes and decodes heads and records; a record whose CRC is wrong ends the readable part of a
 * file.
 */
#include "local/store/journal_record.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

#define CRC32C_POLYNOMIAL UINT32_C(0x82f63b78) /* Castagnoli, bits reversed */
#define HEAD_CRC_AT ((size_t)24)
#define RECORD_CRC_AT ((size_t)24)
#define RECORD_LENGTH_AT ((size_t)4)

/* Eight tables, so that eight bytes are taken in one step. */
void td_crc32c_init(struct td_crc32c *crc)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++) {
            sum = (sum >> 1) ^ ((sum & 1) ? CRC32C_POLYNOMIAL : 0);
        }
        crc->table[0][i] = sum;
    }
    for (size_t level = 1; level < 8; level++) {
        for (size_t i = 0; i < 256; i++) {
            uint32_t sum = crc->table[level - 1][i];
            crc->table[level][i] = (sum >> 8) ^ crc->table[0][sum & 0xff];
        }
    }
}

static uint64_t record_get_number(const char *at, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        number |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    return number;
}

uint32_t td_crc32c_sum(const struct td_crc32c *crc, uint32_t start, td_str bytes)
{
    uint32_t sum = ~start;
    size_t at = 0;
    for (; at + 8 <= bytes.len; at += 8) {
        uint64_t eight = record_get_number(bytes.ptr + at, 8) ^ sum;
        sum = 0;
        for (size_t i = 0; i < 8; i++) {
            sum ^= crc->table[7 - i][(eight >> (8 * i)) & 0xff];
        }
    }
    for (; at < bytes.len; at++) {
        sum = (sum >> 8) ^ crc->table[0][(sum ^ (unsigned char)bytes.ptr[at]) & 0xff];
    }
    return ~sum;
}

static void record_put_number(struct td_buf *out, uint64_t number, size_t bytes)
{
    char text[8];
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (char)(unsigned char)(number >> (8 * i));
    }
    (void)td_buf_append(out, (td_str){.ptr = text, .len = bytes}); /* sticky */
}

void td_journal_put_head(struct td_buf *out, const struct td_crc32c *crc,
                         const struct td_journal_head *head)
{
    size_t begin = out->len;
    (void)td_buf_append(out, head->kind); /* sticky, as all that follow */
    record_put_number(out, head->number, 8);
    record_put_number(out, head->version, 8);
    td_str summed = td_str_slice(td_buf_str(out), begin, out->len);
    record_put_number(out, td_crc32c_sum(crc, 0, summed), 4);
}

int td_journal_get_head(td_str bytes, const struct td_crc32c *crc, td_str kind,
                        struct td_journal_head *ret)
{
    if (bytes.len != TD_JOURNAL_HEAD_BYTES || !td_str_starts_with(bytes, kind)) {
        return TD_INVALID;
    }
    uint32_t sum = td_crc32c_sum(crc, 0, td_str_slice(bytes, 0, HEAD_CRC_AT));
    if (sum != record_get_number(bytes.ptr + HEAD_CRC_AT, 4)) {
        return TD_INVALID;
    }
    *ret = (struct td_journal_head){
        .kind = kind,
        .number = record_get_number(bytes.ptr + 8, 8),
        .version = record_get_number(bytes.ptr + 16, 8),
    };
    return TD_OK;
}

void td_journal_put_record(struct td_buf *out, const struct td_crc32c *crc,
                           const struct td_journal_record *record)
{
    size_t begin = out->len;
    size_t texts = record->collection.len + record->ns.len + record->name.len + record->json.len;
    (void)td_buf_append(out, TD_JOURNAL_MAGIC); /* sticky, as all that follow */
    record_put_number(out, TD_JOURNAL_BODY_BYTES_MIN + texts, 4);
    record_put_number(out, record->version, 8);
    record_put_number(out, record->mark, 8);
    record_put_number(out, 0, 4); /* the sum, once it is known */
    record_put_number(out, record->type, 1);
    record_put_number(out, record->collection.len, 2);
    record_put_number(out, record->ns.len, 2);
    record_put_number(out, record->name.len, 2);
    (void)td_buf_append(out, record->collection);
    (void)td_buf_append(out, record->ns);
    (void)td_buf_append(out, record->name);
    (void)td_buf_append(out, record->json);
    if (out->is_full) {
        return;
    }
    td_str all = td_str_slice(td_buf_str(out), begin, out->len);
    uint32_t sum = td_crc32c_sum(crc, 0, td_str_slice(all, RECORD_LENGTH_AT, RECORD_CRC_AT));
    sum = td_crc32c_sum(crc, sum, td_str_slice(all, TD_JOURNAL_RECORD_BYTES, all.len));
    for (size_t i = 0; i < 4; i++) {
        out->ptr[begin + RECORD_CRC_AT + i] = (char)(unsigned char)(sum >> (8 * i));
    }
}

int td_journal_body_bytes(td_str bytes, size_t *ret)
{
    if (bytes.len != TD_JOURNAL_RECORD_BYTES || !td_str_starts_with(bytes, TD_JOURNAL_MAGIC)) {
        return TD_INVALID;
    }
    size_t body = (size_t)record_get_number(bytes.ptr + RECORD_LENGTH_AT, 4);
    if (body < TD_JOURNAL_BODY_BYTES_MIN || body > TD_JOURNAL_BODY_BYTES_MAX) {
        return TD_INVALID;
    }
    *ret = body;
    return TD_OK;
}

static td_str record_take(td_str *rest, size_t len)
{
    td_str text = td_str_slice(*rest, 0, len);
    *rest = td_str_slice(*rest, len, rest->len);
    return text;
}

int td_journal_get_record(td_str bytes, const struct td_crc32c *crc, struct td_journal_record *ret)
{
    size_t body_bytes;
    td_str head = td_str_slice(bytes, 0, TD_JOURNAL_RECORD_BYTES);
    if (td_journal_body_bytes(head, &body_bytes) < 0 ||
        bytes.len != TD_JOURNAL_RECORD_BYTES + body_bytes) {
        return TD_INVALID;
    }
    td_str body = td_str_slice(bytes, TD_JOURNAL_RECORD_BYTES, bytes.len);
    uint32_t sum = td_crc32c_sum(crc, 0, td_str_slice(head, RECORD_LENGTH_AT, RECORD_CRC_AT));
    sum = td_crc32c_sum(crc, sum, body);
    uint64_t type = record_get_number(body.ptr, 1);
    size_t collection_len = (size_t)record_get_number(body.ptr + 1, 2);
    size_t ns_len = (size_t)record_get_number(body.ptr + 3, 2);
    size_t name_len = (size_t)record_get_number(body.ptr + 5, 2);
    bool is_whole = sum == record_get_number(head.ptr + RECORD_CRC_AT, 4);
    bool has_texts = TD_JOURNAL_BODY_BYTES_MIN + collection_len + ns_len + name_len <= body_bytes;
    if (!is_whole || !has_texts || type > TD_JOURNAL_END) {
        return TD_INVALID;
    }
    td_str rest = td_str_slice(body, TD_JOURNAL_BODY_BYTES_MIN, body.len);
    struct td_journal_record record = {
        .type = (enum td_journal_type)type,
        .version = record_get_number(head.ptr + 8, 8),
        .mark = record_get_number(head.ptr + 16, 8),
    };
    record.collection = record_take(&rest, collection_len);
    record.ns = record_take(&rest, ns_len);
    record.name = record_take(&rest, name_len);
    record.json = rest;
    *ret = record;
    return TD_OK;
}
