/*
 * Custom kinds that own pods. A CustomResourceDefinition with the annotation
 * "tandem.dev/workload: pods", namespaced and with the scale subresource, says that the cluster
 * runs its objects as it runs a ReplicaSet: as many pods of spec.template as the scale's spec path
 * wants, selected by spec.selector or by the template's labels. Status goes to the scale's paths.
 * One controller a definition, made and freed as definitions come, change and go. Part of
 * workloads.c, one thread, the loop's.
 */
#pragma once

#include "base/str.h"

struct td_child;
struct td_stored;
struct td_workload_control;
struct td_workloads;

/* A definition as it is now; `after` NULL: it is gone. */
void td_workload_custom_definition(struct td_workloads *all, td_str name,
                                   const struct td_stored *after);

/* Who controls the child, or NULL. */
struct td_workload_control *td_workload_custom_control(const struct td_workloads *all,
                                                       const struct td_child *child);

void td_workload_custom_free_all(struct td_workloads *all);
