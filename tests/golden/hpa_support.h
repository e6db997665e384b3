/* What the HPA topics share: reading pods, times and samples of a case, and the metrics servers
 * that the cases describe. Everything is in the arena of the case. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "decide/horizontal/reconcile.h"

td_time golden_time(const struct td_json *object, td_str key);
struct td_instant golden_instant(const struct td_json *object, td_str key);
td_duration golden_duration(const struct td_json *object, td_str key, td_duration fallback);
double golden_double(const struct td_json *object, td_str key, double fallback);
td_str golden_text(const struct td_json *object, td_str key);
struct td_json *golden_time_json(struct td_arena *arena, td_time time);
struct td_json *golden_instant_json(struct td_arena *arena, struct td_instant instant);
void golden_set_text(struct td_arena *arena, struct td_json *object, td_str key, td_str text);
void golden_set_int(struct td_arena *arena, struct td_json *object, td_str key, int64_t value);

struct golden_pods {
    const struct td_pod **items;
    size_t count;
};

/* Decodes a list of pods. */
int golden_read_pods(struct td_arena *arena, const struct td_json *list, struct golden_pods *ret,
                     struct td_error *err);

/* Those of a namespace that a selector matches. */
struct golden_pods golden_match_pods(struct td_arena *arena, const struct golden_pods *pods,
                                     td_str namespace, const struct td_selector *selector);

/* A view over pods with samples; requests for `resource` unless that is empty. */
struct td_hpa_view golden_view(struct td_arena *arena, const struct golden_pods *pods,
                               td_str resource, td_str container,
                               const struct td_hpa_sample *samples, size_t sample_count);

struct td_hpa_config golden_config(const struct td_json *flags);
struct td_json *golden_events_json(struct td_arena *arena, const struct td_hpa_events *events);
struct td_json *golden_conditions_json(struct td_arena *arena,
                                       const struct td_hpa_conditions *conditions);

struct td_json *golden_recommendations_json(struct td_arena *arena,
                                            const struct td_hpa_history *history);
struct td_json *golden_scale_events_json(struct td_arena *arena,
                                         const struct td_hpa_scale_events *events);

/* What the servers of a case answer to every metric of an HPA. */
int golden_answers(struct td_arena *arena, const struct td_json *metrics, const struct td_hpa *hpa,
                   const struct golden_pods *matched, const struct td_hpa_answer **ret,
                   struct td_error *err);

/* The controller's half of seeds/hpa-selection-validation (in.kind is "effective"). */
int golden_hpa_effective_strategy(struct td_arena *arena, const struct td_json *in,
                                  struct td_json **ret_out, struct td_error *err);
