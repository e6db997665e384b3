/* The CPU state of the track estimator as one JSON object, and back. The table has the fields in
 * the order of the format, which is the order of judging: what is refused names the first bad one.
 */
#include "base/error.h"
#include "decide/vertical/estimator/state_json.h"
#include "decide/vertical/estimator/track.h"

struct field {
    const char *name;
    size_t offset; /* of an int64_t, or of a list of uint32_t */
    int64_t min;
    int64_t max;
    size_t cap;   /* of a list; 0: a number */
    size_t count; /* offset of the list's uint8_t */
};

#define NUMBER(text, field, low, high)                                                             \
    {                                                                                              \
        .name = (text), .offset = offsetof(struct td_track, field), .min = (low), .max = (high)    \
    }
#define LIST(text, field, counted)                                                                 \
    {                                                                                              \
        .name = (text), .offset = offsetof(struct td_track, field), .max = TD_ADAPTIVE_CPU_MAX,    \
        .cap = TD_COUNT(((struct td_track *)NULL)->field),                                         \
        .count = offsetof(struct td_track, counted)                                                \
    }

static const struct field fields[] = {
    NUMBER("first", first, -1, TD_ADAPTIVE_MAX),
    NUMBER("slot", slot, -1, TD_ADAPTIVE_MAX),
    NUMBER("slotSum", slot_sum, 0, TD_STATE_SUM_MAX),
    NUMBER("slotSamples", slot_samples, 0, TD_ADAPTIVE_SLOT_SAMPLES_MAX),
    NUMBER("slotTop", slot_top, 0, TD_ADAPTIVE_CPU_MAX),
    NUMBER("slotRequests", slot_requests, -1, TD_STATE_SUM_MAX),
    LIST("recent", recent, recent_count),
    NUMBER("hour", hour, -1, TD_ADAPTIVE_MAX),
    LIST("hourValues", hour_values, hour_count),
    LIST("hours", hours, hours_count),
    NUMBER("margin", margin, 0, TD_TRACK_MARGIN_MAX),
};

static void *place(struct td_track *state, size_t offset)
{
    return (char *)state + offset;
}

struct td_json *td_track_save(struct td_arena *arena, const struct td_track *state)
{
    struct td_json *saved = td_json_new_object(arena);
    struct td_track copy = *state;
    td_json_set_str(arena, saved, TD_STR("version"), TD_TRACK_VERSION);
    for (size_t i = 0; i < TD_COUNT(fields); i++) {
        const struct field *field = &fields[i];
        struct td_json *value;
        if (field->cap > 0) {
            const uint32_t *list = place(&copy, field->offset);
            const uint8_t *count = place(&copy, field->count);
            value = td_json_new_array(arena);
            for (size_t k = 0; k < *count; k++) {
                td_json_append(value, td_json_new_int64(arena, list[k]));
            }
        } else {
            const int64_t *number = place(&copy, field->offset);
            value = td_json_new_int64(arena, *number);
        }
        td_json_set(arena, saved, td_str_from(field->name), value);
    }
    return saved;
}

static int load_list(const struct td_json *saved, const struct field *field, struct td_track *state,
                     struct td_error *err)
{
    int64_t values[TD_TRACK_HOURS];
    size_t count = 0;
    int code = td_state_load_list(saved, field->name, field->cap, field->max, values, &count, err);
    uint32_t *list = place(state, field->offset);
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        list[i] = (uint32_t)values[i];
    }
    *(uint8_t *)place(state, field->count) = (uint8_t)count;
    return code;
}

int td_track_load(struct td_track *state, const struct td_json *saved, struct td_error *err)
{
    struct td_track loaded;
    td_track_init(&loaded);
    int code = td_state_check_version(saved, TD_TRACK_VERSION, err);
    for (size_t i = 0; i < TD_COUNT(fields) && code == TD_OK; i++) {
        const struct field *field = &fields[i];
        code = field->cap > 0 ? load_list(saved, field, &loaded, err)
                              : td_state_load_number(saved, field->name, field->min, field->max,
                                                     place(&loaded, field->offset), err);
    }
    if (code == TD_OK) {
        *state = loaded;
    }
    return code;
}
