/* What the files of the shadow share: a pass, and the object of one VPA. */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/informers/informers.h"
#include "control/shadow/shadow.h"
#include "control/updater/update_loop.h"

struct td_client_call;
struct td_metric_family;
struct td_timer;

enum shadow_by { SHADOW_TANDEM, SHADOW_UPSTREAM, SHADOW_BOTH };
enum shadow_act { SHADOW_EVICT, SHADOW_RESIZE, SHADOW_ACTS };

/* What was sent last for a VPA. */
struct shadow_sent {
    td_str key; /* "namespace/name"; owned */
    uint64_t hash;
};

struct td_shadow {
    struct td_shadow_options options;
    struct td_update_options update;
    struct td_timer *timer;
    struct td_client_call *call;
    bool is_running;
    bool is_told; /* that the object cannot be written, until one can */
    void (*stopped)(void *context);
    void *stopped_context;
    td_time seen;         /* the pass of the recommender that was looked at last */
    struct td_map sent;   /* struct shadow_sent by its key */
    struct td_arena roll; /* of the names of this pass */
    struct {
        TD_VEC_FIELDS(td_str);
    } namespaces;
    size_t namespace_at;
    struct td_arena arena; /* of the namespace at work */
    bool is_open;          /* it is gathered */
    struct td_updater_notes notes[SHADOW_BOTH];
    struct {
        TD_VEC_FIELDS(td_str);
    } vpas;
    size_t vpa_at;
    td_str sending; /* the key of the object under way; in the arena */
    uint64_t sending_hash;
    size_t vpa_count; /* in this pass */
    size_t wishes[SHADOW_BOTH][SHADOW_ACTS];
    struct td_metric_family *vpas_family;
    struct td_metric_family *wishes_family;
    struct td_metric_family *writes_family;
};

/* Until a call is under way, or something has to be waited for. */
void shadow_go_on(struct td_shadow *shadow);

/* ---- shadow_write.c ---- */

extern const char *const shadow_by_names[SHADOW_BOTH];
extern const char *const shadow_act_names[SHADOW_ACTS];

/* Sends the object of a VPA, where it is another than the last that was sent; false: it needs no
 * call. */
bool shadow_send(struct td_shadow *shadow, const struct td_informer_object *seen);
/* Forgets what was sent for VPAs that are gone, or for all. */
void shadow_forget(struct td_shadow *shadow, bool all);
