/*
 * What the files of the Hvpa module share; private to them.
 */
#pragma once

#include "api/hpa/hpa_source.h"
#include "api/hvpa/hvpa.h"
#include "api/object_check.h"

#define TD_HVPA_RATIO_MAX 1e6 /* of vToHScalingRatio */
#define TD_HVPA_SECONDS_A_DAY 86400

/* A decode under way: where faults and warnings go. */
struct td_hvpa_reader {
    struct td_arena *arena;
    struct td_hvpa_findings *findings;
    size_t mismatch_count; /* faults that are about targets that differ */
};

/* A part that may be written flat or as a whole object: where its spec is. */
struct td_hvpa_part {
    const struct td_json *spec; /* NULL: absent */
    struct td_field_path outer; /* spec.hpaSpec */
    struct td_field_path inner; /* spec.hpaSpec, or spec.hpaSpec.spec; its parent is outer */
    bool is_object_form;
};

/* The root that decoding checks types with (hpaSpec, vpaSpec and status are looked at apart), and
 * the specs inside. */
const struct td_schema_type *td_hvpa_reading_type(void);
const struct td_schema_type *td_hvpa_hpa_spec_type(void);
const struct td_schema_type *td_hvpa_vpa_spec_type(void);

#define TD_HVPA_TARGET_PLACES 3 /* where a target may stand, in the order in which they count */

/* The reference at one of these places, NULL when none is given there; *ret_field is its path. */
const struct td_json *td_hvpa_target_at(const struct td_json *spec, size_t place,
                                        td_str *ret_field);

/* The target as it is, as a member of a spec. */
void td_hvpa_set_target(struct td_arena *arena, struct td_json *spec, td_str key,
                        const struct td_object_reference *target);

void td_hvpa_warn(struct td_hvpa_reader *reader, const struct td_field_path *path,
                  const char *detail);

/* A quantity in the unit that amounts of a resource have: milli cpu, bytes. */
int64_t td_hvpa_amount(const struct td_quantity *quantity, enum td_hvpa_resource resource);

/* Fill hvpa->hpa and hvpa->vpa from their parts, of which types are right and the target is chosen.
 * Faults are added; what is incomplete because of one is never handed out. */
void td_hvpa_read_hpa(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                      struct td_hvpa *hvpa);
void td_hvpa_read_vpa(struct td_hvpa_reader *reader, const struct td_hvpa_part *part,
                      struct td_hvpa *hvpa);

/* Rules that concern more than one field: intervals, capacity policy, window, selector. */
void td_hvpa_check_rules(struct td_hvpa_reader *reader, const struct td_hvpa_part *hpa,
                         const struct td_hvpa_part *vpa, const struct td_hvpa *hvpa);
