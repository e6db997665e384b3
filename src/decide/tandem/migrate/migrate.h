/*
 * Hvpas from what a cluster has: the pair of an HPA and a VPA on one workload, or an Hvpa of
 * gardener's (hvpa.md 3.7). Each result is an object ready to be applied, with notes on what means
 * something else than before; what cannot be expressed has notes and no object. Trees and texts are
 * in the arena or borrowed from the manifest. Pure.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/manifest.h"

struct td_migration {
    td_str title;           /* what it was made from, with files and lines */
    struct td_json *object; /* NULL: it cannot be expressed, the last note says why */
    td_str *notes;          /* whole sentences */
    size_t note_count;
    size_t note_cap;
};

struct td_migrations {
    struct td_migration *items;
    size_t count;
};

/* All that the files hold, in their order. Objects that do not decode are passed over. */
void td_migrate_all(struct td_arena *arena, const struct td_manifest *manifest,
                    struct td_migrations *ret);

/* One object of gardener's form (spec.hpa, spec.vpa, spec.weightBasedScalingIntervals). */
void td_migrate_gardener(struct td_arena *arena, const struct td_json *object,
                         struct td_migration *migration);

void td_migration_note(struct td_arena *arena, struct td_migration *migration, td_str note);
