/* The adaptive state as one JSON object of integers, and back. One table names each number with its
 * place and range, so that what is written and what is refused cannot differ. */
#include "base/error.h"
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/state_json.h"

struct number {
    const char *name;
    size_t offset;
    int64_t min;
    int64_t max;
};

#define NUMBER(text, field, low, high)                                                             \
    {                                                                                              \
        .name = (text), .offset = offsetof(struct td_adaptive, field), .min = (low), .max = (high) \
    }

static const struct number numbers[] = {
    NUMBER("first", first, -1, TD_ADAPTIVE_MAX),
    NUMBER("slot", slot, -1, TD_ADAPTIVE_MAX),
    NUMBER("slotSum", slot_sum, 0, TD_STATE_SUM_MAX),
    NUMBER("slotSamples", slot_samples, 0, TD_ADAPTIVE_SLOT_SAMPLES_MAX),
    NUMBER("slotTop", slot_top, 0, TD_ADAPTIVE_CPU_MAX),
    NUMBER("hour", hour, -1, TD_ADAPTIVE_MAX),
    NUMBER("hourPeak", hour_peak, 0, TD_ADAPTIVE_MAX),
    NUMBER("day", day, -1, TD_ADAPTIVE_MAX),
    NUMBER("dayPeak", day_peak, 0, TD_ADAPTIVE_MAX),
    NUMBER("seen", seen, 0, TD_ADAPTIVE_SEEN_MAX),
    NUMBER("oomFloor", oom_floor, 0, TD_ADAPTIVE_MAX),
    NUMBER("oomTime", oom_time, 0, TD_ADAPTIVE_MAX),
    NUMBER("oomCount", oom_count, 0, TD_ADAPTIVE_MAX),
    NUMBER("oomStreak", oom_streak, 0, TD_ADAPTIVE_STREAK_MAX),
};

#define NUMBER_COUNT (TD_COUNT(numbers))

static int64_t *number_at(struct td_adaptive *state, size_t index)
{
    return (int64_t *)(void *)((char *)state + numbers[index].offset);
}

static struct td_json *save_cpu(struct td_arena *arena, const struct td_adaptive *state)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < state->cpu_count; i++) {
        uint32_t value = state->cpu[(state->cpu_start + i) % TD_ADAPTIVE_SLOTS];
        td_json_append(list, td_json_new_int64(arena, value));
    }
    return list;
}

static struct td_json *save_peaks(struct td_arena *arena, const uint64_t *ring, size_t start,
                                  size_t count, size_t cap)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_new_int64(arena, (int64_t)ring[(start + i) % cap]));
    }
    return list;
}

struct td_json *td_adaptive_save(struct td_arena *arena, const struct td_adaptive *state)
{
    struct td_json *saved = td_json_new_object(arena);
    struct td_adaptive copy = *state;
    td_json_set_str(arena, saved, TD_STR("version"), TD_ADAPTIVE_VERSION);
    for (size_t i = 0; i < NUMBER_COUNT; i++) {
        td_json_set_int64(arena, saved, td_str_from(numbers[i].name), *number_at(&copy, i));
    }
    td_json_set(arena, saved, TD_STR("cpu"), save_cpu(arena, state));
    td_json_set(
        arena, saved, TD_STR("hours"),
        save_peaks(arena, state->hours, state->hours_start, state->hours_count, TD_ADAPTIVE_HOURS));
    td_json_set(
        arena, saved, TD_STR("days"),
        save_peaks(arena, state->days, state->days_start, state->days_count, TD_ADAPTIVE_DAYS));
    return saved;
}

static int load_lists(const struct td_json *saved, struct td_adaptive *state, struct td_error *err)
{
    int64_t values[TD_ADAPTIVE_SLOTS];
    size_t count = 0;
    int code = td_state_load_list(saved, "cpu", TD_ADAPTIVE_SLOTS, TD_ADAPTIVE_CPU_MAX, values,
                                  &count, err);
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        state->cpu[i] = (uint32_t)values[i];
    }
    state->cpu_count = (uint16_t)count;
    if (code == TD_OK) {
        code = td_state_load_list(saved, "hours", TD_ADAPTIVE_HOURS, TD_ADAPTIVE_MAX, values,
                                  &count, err);
    }
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        state->hours[i] = (uint64_t)values[i];
    }
    state->hours_count = (uint8_t)count;
    if (code == TD_OK) {
        code = td_state_load_list(saved, "days", TD_ADAPTIVE_DAYS, TD_ADAPTIVE_MAX, values, &count,
                                  err);
    }
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        state->days[i] = (uint64_t)values[i];
    }
    state->days_count = (uint8_t)count;
    return code;
}

int td_adaptive_load(struct td_adaptive *state, const struct td_json *saved, struct td_error *err)
{
    struct td_adaptive loaded;
    td_adaptive_init(&loaded);
    int code = td_state_check_version(saved, TD_ADAPTIVE_VERSION, err);
    for (size_t i = 0; i < NUMBER_COUNT && code == TD_OK; i++) {
        code = td_state_load_number(saved, numbers[i].name, numbers[i].min, numbers[i].max,
                                    number_at(&loaded, i), err);
    }
    code = code < 0 ? code : load_lists(saved, &loaded, err);
    if (code == TD_OK) {
        *state = loaded;
    }
    return code;
}
