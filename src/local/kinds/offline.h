/*
 * An API server's judgement without a server: what the validators of this server say of an object
 * from a file, as if it were created in a cluster that serves the built-in kinds, our own and those
 * of the definitions that it was shown. Admission, quotas and other objects are not asked. One
 * owner; objects are not changed.
 */
#pragma once

#include <stdbool.h>

#include "kube/manifest.h"
#include "kube/schema/check.h"

struct td_offline;

struct td_offline *td_offline_new(void); /* the built-in kinds and ours */
void td_offline_free(struct td_offline *offline);

/* Is it a CustomResourceDefinition? Those are shown first: the kinds of a definition without
 * problems are known from then on, instead of what was known under the same name. */
bool td_offline_is_definition(const struct td_manifest_object *object);

/* Adds what is wrong with the object by itself. False when its kind is not served: then only its
 * metadata was checked. */
bool td_offline_judge(struct td_offline *offline, const struct td_manifest_object *object,
                      struct td_problems *problems);
