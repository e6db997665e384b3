/*
 * The bytes of the journal's files. A file begins with a head that names its kind, its number and
 * the version before its first record; then come records, each with its length and a CRC32C of
 * everything in it. Numbers are little-endian. Nothing here does I/O.
 *
 *     head    kind 8 | number 8 | version 8 | crc 4
 *     record  F5 'T' 'D' F6 | body bytes 4 | version 8 | mark 8 | crc 4 | body
 *     body    type 1 | collection bytes 2 | namespace bytes 2 | name bytes 2 | the three | json
 *
 * The record's first byte cannot occur in UTF-8, so records can be looked for in damaged files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/str.h"

struct td_buf;

#define TD_JOURNAL_HEAD_BYTES ((size_t)28)
#define TD_JOURNAL_RECORD_BYTES ((size_t)28)  /* before the body */
#define TD_JOURNAL_BODY_BYTES_MIN ((size_t)7) /* before the texts */
#define TD_JOURNAL_BODY_BYTES_MAX                                                                  \
    (TD_JOURNAL_BODY_BYTES_MIN + TD_COLLECTION_KEY_BYTES_MAX + 2 * TD_STORED_NAME_BYTES_MAX +      \
     TD_STORED_JSON_BYTES_MAX)
#define TD_JOURNAL_MAGIC TD_STR("\xf5TD\xf6")

enum td_journal_type {
    TD_JOURNAL_ADDED,
    TD_JOURNAL_MODIFIED,
    TD_JOURNAL_DELETED,
    TD_JOURNAL_OBJECT, /* of a snapshot */
    TD_JOURNAL_END,    /* of a snapshot: without it the file is not whole */
};

struct td_journal_record {
    enum td_journal_type type;
    uint64_t version;
    uint64_t mark; /* log: bytes of the file that were on disk before; snapshot: records before */
    td_str collection, ns, name, json;
};

struct td_journal_head {
    td_str kind; /* TD_JOURNAL_LOG or TD_JOURNAL_SNAPSHOT */
    uint64_t number;
    uint64_t version;
};

#define TD_JOURNAL_LOG TD_STR("TDLOG 01")
#define TD_JOURNAL_SNAPSHOT TD_STR("TDSNAP01")

struct td_crc32c {
    uint32_t table[8][256];
};

void td_crc32c_init(struct td_crc32c *crc);

/* Of `bytes` behind what `start` is the sum of; 0 at first. */
uint32_t td_crc32c_sum(const struct td_crc32c *crc, uint32_t start, td_str bytes);

/* Appends; a full buffer shows in it (td_buf is sticky). */
void td_journal_put_head(struct td_buf *out, const struct td_crc32c *crc,
                         const struct td_journal_head *head);
void td_journal_put_record(struct td_buf *out, const struct td_crc32c *crc,
                           const struct td_journal_record *record);

/* TD_OK, or TD_INVALID when the bytes are no head of that kind. `bytes` is TD_JOURNAL_HEAD_BYTES
 * long. */
int td_journal_get_head(td_str bytes, const struct td_crc32c *crc, td_str kind,
                        struct td_journal_head *ret);

/* Bytes of the body of the record that begins here, or TD_INVALID when none can begin here. `bytes`
 * is TD_JOURNAL_RECORD_BYTES long. */
int td_journal_body_bytes(td_str bytes, size_t *ret);

/* A whole record; TD_INVALID when the sum or anything in it is wrong. Its texts are slices. */
int td_journal_get_record(td_str bytes, const struct td_crc32c *crc, struct td_journal_record *ret);
