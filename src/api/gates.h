/*
 * Feature gates, and what objects hold although the gate of it is off: it may have been stored
 * while the gate was on, or past the webhook. Closing the gates of a decoded object takes such
 * fields out of it, as if they had not been written, and names them, so that controllers and
 * commands can report them instead of acting by them. Deciders take gates of their own where
 * upstream's do. Pure.
 */
#pragma once

#include "api/hvpa/hvpa.h"

#define TD_GATE_OFF "FeatureGateOff" /* condition and event of an object with such a field */

/* Each returns a sentence that names every such field and its gate, in the arena; empty: there is
 * none. */
td_str td_vpa_close_gates(struct td_arena *arena, const struct td_vpa_gates *gates,
                          struct td_vpa *vpa);
/* An annotation that stands for spec.selectionStrategy is named too; `annotation` is the key that
 * the flags chose. */
td_str td_hpa_close_gates(struct td_arena *arena, const struct td_hpa_gates *gates,
                          td_str annotation, struct td_hpa *hpa);
/* Both halves; the gate of the kind itself is looked at by the controllers. */
td_str td_hvpa_close_gates(struct td_arena *arena, const struct td_vpa_gates *vpa_gates,
                           const struct td_hpa_gates *hpa_gates, td_str annotation,
                           struct td_hvpa *hvpa);
