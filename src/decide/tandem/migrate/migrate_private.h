/*
 * What the files of the migration share; no other file includes this.
 */
#pragma once

#include "decide/tandem/migrate/migrate.h"

/* A member that is there and not null, or NULL. */
static inline const struct td_json *td_migrate_member(const struct td_json *object, td_str key)
{
    const struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_NULL) ? NULL : member;
}

/* A copy of a member under the same or another name, when it is there. */
void td_migrate_copy(struct td_arena *arena, struct td_json *to, td_str to_key,
                     const struct td_json *from, td_str from_key);

/* An Hvpa with the name, namespace and labels of `object` and an empty spec, which is given back.
 */
struct td_json *td_migrate_new(struct td_arena *arena, const struct td_json *object,
                               struct td_json **ret_spec);

/* Give the Hvpa that was made the annotations of what it is made from: many of them are settings
 * (tandem.dev/estimator). The first object that has one decides, a difference is noted. */
void td_migrate_annotate(struct td_arena *arena, struct td_migration *migration,
                         const struct td_json *object);

/* vertical.scaleUp and .scaleDown (or horizontal's) with updateMode Off. */
void td_migrate_switch_off(struct td_arena *arena, struct td_json *spec, td_str axis);

/* Decode what was made; where it is refused the object is taken back and the fault noted. */
void td_migrate_verify(struct td_arena *arena, struct td_migration *migration);

/* mode, initialScaling, finalScaling and ratioBasedScalingSpec from gardener's weights; false when
 * they cannot be expressed (noted). */
bool td_migrate_weights(struct td_arena *arena, const struct td_json *intervals,
                        int64_t min_replicas, int64_t max_replicas, struct td_json *spec,
                        struct td_migration *migration);
