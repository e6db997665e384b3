/* The bytes of the journal's files from any bytes: what reads as a head or as a record is written
 * again as the same bytes. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/error.h"
#include "local/store/journal_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(td_str bytes, const struct td_crc32c *crc, td_str kind)
{
    td_auto_buf out;
    struct td_journal_head head;
    td_buf_init(&out, TD_JOURNAL_HEAD_BYTES);
    if (td_journal_get_head(bytes, crc, kind, &head) == TD_OK) {
        td_journal_put_head(&out, crc, &head);
        td_assert(td_str_equal(td_buf_str(&out), bytes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_crc32c crc;
    struct td_journal_record record;
    td_auto_buf out;
    td_str bytes = {.ptr = (const char *)data, .len = size};
    td_crc32c_init(&crc);
    td_buf_init(&out, TD_JOURNAL_RECORD_BYTES + TD_JOURNAL_BODY_BYTES_MAX);
    check_head(bytes, &crc, TD_JOURNAL_LOG);
    check_head(bytes, &crc, TD_JOURNAL_SNAPSHOT);
    if (td_journal_get_record(bytes, &crc, &record) == TD_OK) {
        td_journal_put_record(&out, &crc, &record);
        td_assert(td_str_equal(td_buf_str(&out), bytes));
    }
    return 0;
}
