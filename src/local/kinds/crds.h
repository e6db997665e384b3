/*
 * The controller of CustomResourceDefinitions: serves the resource of each as soon as it is
 * written, says so in its status (NamesAccepted, Established), and takes the resource and its
 * objects away with it. Observes the store, acts through local/store/edit.h.
 */
#pragma once

struct td_api;
struct td_crds;
struct td_error;
struct td_log;

/* Definitions that are already stored are served when this returns. */
int td_crds_new(struct td_api *api, struct td_log *log, struct td_crds **ret, struct td_error *err);
void td_crds_free(struct td_crds *crds); /* NULL is accepted */

/* Serve what was written since, now instead of in the next turn of the loop. */
void td_crds_sync(struct td_crds *crds);
