/*
 * The controller of PodDisruptionBudgets: keeps in each one's status how many of its pods there
 * are, must be and are healthy, and so how many may be disturbed. Evictions (pod_parts.c) spend
 * what it allows. Observes the store, acts through local/store/edit.h.
 */
#pragma once

struct td_api;
struct td_disruption;
struct td_log;

struct td_disruption *td_disruption_new(struct td_api *api, struct td_log *log);
void td_disruption_free(struct td_disruption *disruption); /* NULL is accepted */
