/*
 * A ring is a plain array that begins at minute `first`: when it is full, an eighth of it is moved
 * out in front, which costs less than an index that wraps and keeps each reader simple. Codes: 0 is
 * "not known", then a logarithmic scale from 0 to 10^16. Changes are one list in order of time.
 * When it is full, those older than a day go (but for the last of each setting), and then of each
 * setting only the last in two, four, ... minutes is kept, until a quarter of the list is free.
 */
#include "web/rings.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CODE_TOP 65533.0
#define CODE_VALUE_MAX 1e16
#define RING_FILLED_MAX 5 /* points that take the value of the next one */

struct change {
    uint32_t minute; /* since the epoch */
    uint16_t setting;
    uint16_t code;
};

struct td_ring {
    struct td_ring *next;
    struct td_ring *previous;
    int64_t first; /* number of the first point: minute / minutes_per_point */
    uint16_t (*points)[TD_SAMPLE_COUNT];
    uint32_t count;
    uint32_t cap;
    struct change *changes;
    uint32_t change_count;
    uint32_t change_cap;
    uint32_t change_minutes;        /* in which only the last change of a setting is kept */
    uint16_t now[TD_SETTING_COUNT]; /* codes as of the last put */
};

static_assert(sizeof(struct change) == 8, "the budget of 1,000 rings is made with that");

const char *const td_ring_sample_names[TD_SAMPLE_COUNT] = {
    "cpuP50", "cpuMax", "memoryP50", "memoryMax", "replicas", "ready", "throttled"};
const char *const td_ring_setting_names[TD_SETTING_COUNT] = {
    "cpuRequest",  "cpuLimit",     "cpuTarget",   "cpuLower",    "cpuUpper", "memoryRequest",
    "memoryLimit", "memoryTarget", "memoryLower", "memoryUpper", "wanted"};

/* ---- Codes ---- */

static double code_scale(void)
{
    return CODE_TOP / log1p(CODE_VALUE_MAX);
}

static uint16_t code_of(double value)
{
    if (!(value >= 0)) {
        return 0;
    }
    double capped = value > CODE_VALUE_MAX ? CODE_VALUE_MAX : value;
    return (uint16_t)(1 + lround(log1p(capped) * code_scale()));
}

static double code_value(uint16_t code)
{
    return code == 0 ? -1 : expm1((code - 1) / code_scale());
}

/* ---- Points ---- */

static size_t ring_points_max(const struct td_rings *rings)
{
    return (size_t)(TD_RING_MINUTES / rings->minutes_per_point);
}

static void ring_grow(struct td_ring *ring, size_t max)
{
    size_t cap = ring->cap == 0 ? 16 : (size_t)ring->cap * 2;
    cap = cap < max ? cap : max;
    ring->points = td_realloc(ring->points, cap * sizeof(ring->points[0]));
    ring->cap = (uint32_t)cap;
}

static void ring_drop(struct td_ring *ring, size_t count)
{
    count = count < ring->count ? count : ring->count;
    memmove(ring->points, ring->points + count, (ring->count - count) * sizeof(ring->points[0]));
    ring->count -= (uint32_t)count;
    ring->first += (int64_t)count;
}

/* Two points as one: the middle of what is usual, the extremes of the rest. */
static void point_merge(uint16_t into[TD_SAMPLE_COUNT], const uint16_t other[TD_SAMPLE_COUNT])
{
    for (size_t i = 0; i < TD_SAMPLE_COUNT; i++) {
        bool is_usual = i == TD_SAMPLE_CPU_P50 || i == TD_SAMPLE_MEMORY_P50;
        if (into[i] == 0 || other[i] == 0) {
            into[i] = into[i] > other[i] ? into[i] : other[i];
        } else if (is_usual) {
            into[i] = code_of((code_value(into[i]) + code_value(other[i])) / 2);
        } else if (i == TD_SAMPLE_READY) {
            into[i] = into[i] < other[i] ? into[i] : other[i];
        } else {
            into[i] = into[i] > other[i] ? into[i] : other[i];
        }
    }
}

static void ring_put_point(struct td_ring *ring, size_t max, int64_t number,
                           const uint16_t codes[TD_SAMPLE_COUNT])
{
    if (ring->count == 0 || number - ring->first > 2 * TD_RING_MINUTES) {
        ring->count = 0;
        ring->first = number;
    }
    if (number < ring->first + (int64_t)ring->count) {
        point_merge(ring->points[number - ring->first], codes);
        return;
    }
    bool is_silent = number - ring->first - (int64_t)ring->count > RING_FILLED_MAX;
    while (ring->first + (int64_t)ring->count <= number) {
        if (ring->count >= max) { /* one more than that when thinned from an odd minute on */
            ring_drop(ring, ring->count - max + max / 8 + 1);
        }
        if (ring->count == ring->cap) {
            ring_grow(ring, max);
        }
        /* A few minutes without a sample are a busy program, not a gap in the cluster. */
        uint16_t *point = ring->points[ring->count++];
        memset(point, 0, sizeof(ring->points[0]));
        if (!is_silent) {
            memcpy(point, codes, sizeof(ring->points[0]));
        }
    }
    memcpy(ring->points[number - ring->first], codes, sizeof(ring->points[0]));
}

static void ring_thin_points(struct td_ring *ring)
{
    size_t kept = 0;
    int64_t first = ring->first / 2;
    for (size_t i = 0; i < ring->count; i++) {
        size_t at = (size_t)((ring->first + (int64_t)i) / 2 - first);
        if (at < kept) {
            point_merge(ring->points[at], ring->points[i]);
        } else {
            memmove(ring->points[at], ring->points[i], sizeof(ring->points[0]));
            kept = at + 1;
        }
    }
    ring->first = first;
    ring->count = (uint32_t)kept;
    if (kept > 0) {
        ring->points = td_realloc(ring->points, kept * sizeof(ring->points[0]));
        ring->cap = (uint32_t)kept;
    }
}

/* ---- Changes ---- */

static size_t ring_changes_max(const struct td_rings *rings)
{
    size_t max = TD_RING_CHANGES_MAX / (size_t)rings->minutes_per_point;
    return max < TD_RING_CHANGES_MIN ? TD_RING_CHANGES_MIN : max;
}

/* Does a later change of the same setting stand for this one: before the day, or close by? */
static bool change_is_covered(const struct td_ring *ring, size_t i, int64_t day)
{
    const struct change *change = &ring->changes[i];
    for (size_t k = i + 1; k < ring->change_count; k++) {
        const struct change *later = &ring->changes[k];
        bool is_near =
            later->minute / ring->change_minutes == change->minute / ring->change_minutes;
        if (!is_near && later->minute > day) {
            return false;
        }
        if (later->setting == change->setting) {
            return true;
        }
    }
    return false;
}

static void changes_sweep(struct td_ring *ring, int64_t day)
{
    uint16_t codes[TD_SETTING_COUNT] = {0};
    uint32_t kept = 0;
    for (size_t i = 0; i < ring->change_count; i++) {
        struct change change = ring->changes[i];
        if (!change_is_covered(ring, i, day) && codes[change.setting] != change.code) {
            codes[change.setting] = change.code;
            ring->changes[kept++] = change; /* never before one that is still looked at */
        }
    }
    ring->change_count = kept;
}

static void changes_make_room(struct td_ring *ring, size_t max, int64_t minute)
{
    int64_t day = minute - TD_RING_MINUTES;
    changes_sweep(ring, day);
    if (ring->change_count < max / 2 && ring->change_minutes > 1) {
        ring->change_minutes /= 2; /* quieter times */
    }
    while (ring->change_count > max * 3 / 4 && ring->change_minutes < 2 * TD_RING_MINUTES) {
        ring->change_minutes *= 2;
        changes_sweep(ring, day);
    }
}

static void ring_put_change(struct td_ring *ring, size_t max, struct change change)
{
    for (size_t i = ring->change_count; i > 0; i--) {
        struct change *last = &ring->changes[i - 1];
        if (last->minute / ring->change_minutes != change.minute / ring->change_minutes) {
            break;
        }
        if (last->setting == change.setting) {
            *last = change;
            return;
        }
    }
    if (ring->change_count >= max) {
        changes_make_room(ring, max, change.minute);
        td_assert(ring->change_count < max); /* of each setting three are left at most */
    }
    if (ring->change_count == ring->change_cap) {
        size_t cap = ring->change_cap == 0 ? 16 : (size_t)ring->change_cap * 2;
        cap = cap < max ? cap : max;
        ring->changes = td_realloc(ring->changes, cap * sizeof(ring->changes[0]));
        ring->change_cap = (uint32_t)cap;
    }
    ring->changes[ring->change_count++] = change;
}

static void ring_put_settings(struct td_ring *ring, size_t max, int64_t minute,
                              const double settings[TD_SETTING_COUNT])
{
    for (uint16_t s = 0; s < TD_SETTING_COUNT; s++) {
        uint16_t code = code_of(settings[s]);
        if (code != ring->now[s]) {
            ring->now[s] = code;
            ring_put_change(
                ring, max, (struct change){.minute = (uint32_t)minute, .setting = s, .code = code});
        }
    }
}

/* ---- Outside ---- */

void td_rings_init(struct td_rings *rings)
{
    *rings = (struct td_rings){.minutes_per_point = 1};
}

static void ring_thin(struct td_ring *ring, size_t changes_max)
{
    ring_thin_points(ring);
    if (ring->change_count > 0 && ring->change_cap > changes_max) {
        changes_make_room(ring, changes_max, ring->changes[ring->change_count - 1].minute);
        td_assert(ring->change_count <= changes_max);
        ring->changes = td_realloc(ring->changes, changes_max * sizeof(ring->changes[0]));
        ring->change_cap = (uint32_t)changes_max;
    }
}

struct td_ring *td_rings_add(struct td_rings *rings)
{
    struct td_ring *ring = td_alloc_zero(1, sizeof(*ring));
    ring->change_minutes = 1;
    ring->next = rings->first;
    if (rings->first) {
        rings->first->previous = ring;
    }
    rings->first = ring;
    rings->count++;
    if (rings->count > TD_RINGS_BY_MINUTE * (size_t)rings->minutes_per_point &&
        rings->minutes_per_point < TD_RING_MINUTES / 16) {
        rings->minutes_per_point *= 2;
        for (struct td_ring *each = rings->first; each; each = each->next) {
            ring_thin(each, ring_changes_max(rings));
        }
    }
    return ring;
}

void td_rings_remove(struct td_rings *rings, struct td_ring *ring)
{
    if (ring->previous) {
        ring->previous->next = ring->next;
    } else {
        rings->first = ring->next;
    }
    if (ring->next) {
        ring->next->previous = ring->previous;
    }
    rings->count--;
    td_free(ring->points);
    td_free(ring->changes);
    td_free(ring);
}

size_t td_rings_bytes(const struct td_rings *rings)
{
    size_t bytes = 0;
    for (const struct td_ring *ring = rings->first; ring; ring = ring->next) {
        bytes += sizeof(*ring) + ring->cap * sizeof(ring->points[0]) +
                 ring->change_cap * sizeof(ring->changes[0]);
    }
    return bytes;
}

void td_rings_put(struct td_rings *rings, struct td_ring *ring, int64_t minute,
                  const double samples[TD_SAMPLE_COUNT], const double settings[TD_SETTING_COUNT])
{
    uint16_t points[TD_SAMPLE_COUNT];
    int64_t number = minute / rings->minutes_per_point;
    if (ring->count > 0 && number < ring->first) {
        return; /* the clock went back */
    }
    for (size_t i = 0; i < TD_SAMPLE_COUNT; i++) {
        points[i] = code_of(samples[i]);
    }
    ring_put_point(ring, ring_points_max(rings), number, points);
    ring_put_settings(ring, ring_changes_max(rings), minute, settings);
}

struct td_ring_span td_ring_span(const struct td_rings *rings, const struct td_ring *ring)
{
    return (struct td_ring_span){.first = ring->first * rings->minutes_per_point,
                                 .count = ring->count};
}

double td_ring_sample(const struct td_ring *ring, size_t point, enum td_ring_sample sample)
{
    return code_value(ring->points[point][sample]);
}

bool td_ring_next_change(const struct td_ring *ring, enum td_ring_setting setting, size_t *position,
                         int64_t *ret_minute, double *ret_value)
{
    while (*position < ring->change_count) {
        const struct change *change = &ring->changes[(*position)++];
        if (change->setting == setting) {
            *ret_minute = change->minute;
            *ret_value = code_value(change->code);
            return true;
        }
    }
    return false;
}

void td_ring_fill(const struct td_rings *rings, const struct td_ring *ring,
                  enum td_ring_setting setting, double *ret_values)
{
    size_t position = 0;
    int64_t minute = 0;
    double next = -1;
    double value = -1;
    bool has_next = td_ring_next_change(ring, setting, &position, &minute, &next);
    for (size_t i = 0; i < ring->count; i++) {
        int64_t end = (ring->first + (int64_t)i + 1) * rings->minutes_per_point;
        while (has_next && minute < end) {
            value = next;
            has_next = td_ring_next_change(ring, setting, &position, &minute, &next);
        }
        ret_values[i] = value;
    }
}

/* ---- Before it began ---- */

/* As a list that begins with the past, point by point what there is already. */
static void ring_put_again(struct td_rings *rings, struct td_ring *whole,
                           const struct td_ring *ring)
{
    double *settings = td_alloc_zero((size_t)ring->count * TD_SETTING_COUNT, sizeof(*settings));
    for (size_t s = 0; s < TD_SETTING_COUNT; s++) {
        td_ring_fill(rings, ring, (enum td_ring_setting)s, settings + s * ring->count);
    }
    for (size_t i = 0; i < ring->count; i++) {
        struct td_ring_past point;
        for (size_t s = 0; s < TD_SAMPLE_COUNT; s++) {
            point.samples[s] = td_ring_sample(ring, i, (enum td_ring_sample)s);
        }
        for (size_t s = 0; s < TD_SETTING_COUNT; s++) {
            point.settings[s] = settings[s * ring->count + i];
        }
        td_rings_put(rings, whole, (ring->first + (int64_t)i) * rings->minutes_per_point,
                     point.samples, point.settings);
    }
    td_free(settings);
}

void td_rings_put_before(struct td_rings *rings, struct td_ring *ring,
                         const struct td_ring_past *past, size_t count)
{
    struct td_ring whole = {.change_minutes = 1};
    int64_t first = ring->first * rings->minutes_per_point;
    for (size_t i = 0; i < count && (ring->count == 0 || past[i].minute < first); i++) {
        td_rings_put(rings, &whole, past[i].minute, past[i].samples, past[i].settings);
    }
    ring_put_again(rings, &whole, ring);
    td_free(ring->points);
    td_free(ring->changes);
    whole.next = ring->next;
    whole.previous = ring->previous;
    *ring = whole;
}
