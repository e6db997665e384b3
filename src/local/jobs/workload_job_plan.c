/* Counts of pods to start, the pause after failures, and sets of completion indexes as text. */
#include "local/jobs/workload_job_plan.h"

#include "base/buf.h"
#include "base/limits.h"

#define JOB_PAUSE_MIN (10 * TD_SECOND)
#define JOB_PAUSE_MAX (10 * TD_MINUTE)
#define JOB_PAUSE_SHIFT_MAX 10
#define JOB_WORD_BITS 64

int64_t td_job_want_active(const struct td_job_need *need)
{
    if (need->completions < 0) {
        return need->succeeded > 0 ? need->active : need->parallelism;
    }
    int64_t want = need->completions - need->succeeded;
    want = want < need->parallelism ? want : need->parallelism;
    return want > 0 ? want : 0;
}

bool td_job_is_complete(const struct td_job_need *need)
{
    bool is_enough =
        need->completions < 0 ? need->succeeded > 0 : need->succeeded >= need->completions;
    return is_enough && need->active == 0;
}

td_time td_job_retry_at(int64_t failures, td_time last_failure)
{
    if (failures <= 0) {
        return last_failure;
    }
    int64_t shift = failures - 1 < JOB_PAUSE_SHIFT_MAX ? failures - 1 : JOB_PAUSE_SHIFT_MAX;
    td_duration pause = JOB_PAUSE_MIN << shift;
    return last_failure + (pause < JOB_PAUSE_MAX ? pause : JOB_PAUSE_MAX);
}

struct td_job_indexes td_job_indexes_new(struct td_arena *arena, size_t size)
{
    size = size < TD_JOB_INDEXES_MAX ? size : TD_JOB_INDEXES_MAX;
    return (struct td_job_indexes){
        .bits = td_arena_array(arena, uint64_t, (size + JOB_WORD_BITS - 1) / JOB_WORD_BITS),
        .size = size,
    };
}

void td_job_indexes_add(struct td_job_indexes *set, int64_t index)
{
    if (index >= 0 && index < (int64_t)set->size) {
        set->bits[index / JOB_WORD_BITS] |= UINT64_C(1) << (index % JOB_WORD_BITS);
    }
}

bool td_job_indexes_has(const struct td_job_indexes *set, int64_t index)
{
    return index >= 0 && index < (int64_t)set->size &&
           (set->bits[index / JOB_WORD_BITS] >> (index % JOB_WORD_BITS) & 1) != 0;
}

size_t td_job_indexes_count(const struct td_job_indexes *set)
{
    size_t count = 0;
    for (size_t i = 0; i < (set->size + JOB_WORD_BITS - 1) / JOB_WORD_BITS; i++) {
        count += (size_t)__builtin_popcountll(set->bits[i]);
    }
    return count;
}

void td_job_indexes_read(struct td_job_indexes *set, td_str text)
{
    while (text.len > 0) {
        size_t comma = td_str_find(text, ',', 0);
        td_str part = td_str_slice(text, 0, comma);
        size_t dash = td_str_find(part, '-', 0);
        int64_t first;
        int64_t last;
        bool is_read = td_str_to_int64(td_str_slice(part, 0, dash), &first);
        last = is_read ? first : -1;
        if (is_read && dash < part.len) {
            is_read = td_str_to_int64(td_str_slice(part, dash + 1, part.len), &last);
        }
        last = last < (int64_t)set->size ? last : (int64_t)set->size - 1;
        for (int64_t i = first; is_read && i <= last; i++) {
            td_job_indexes_add(set, i);
        }
        text = td_str_slice(text, comma + 1, text.len);
    }
}

td_str td_job_indexes_write(struct td_arena *arena, const struct td_job_indexes *set)
{
    td_auto_buf text = td_buf_capped(TD_STREAM_BYTES_MAX);
    for (size_t i = 0; i < set->size; i++) {
        size_t last = i;
        if (!td_job_indexes_has(set, (int64_t)i)) {
            continue;
        }
        while (td_job_indexes_has(set, (int64_t)last + 1)) {
            last++;
        }
        const char *comma = text.len > 0 ? "," : "";
        if (last == i) {
            (void)td_buf_append_format(&text, "%s%zu", comma, i); /* has room for all */
        } else {
            char between = last == i + 1 ? ',' : '-';
            (void)td_buf_append_format(&text, "%s%zu%c%zu", comma, i, between, last); /* as above */
        }
        i = last;
    }
    return td_arena_copy_str(arena, td_buf_str(&text));
}
