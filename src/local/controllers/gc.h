/*
 * Garbage collection by owner references: an object goes when the last owner it names is gone, and
 * loses those references whose owner is; deletion in the foreground waits for the dependents that
 * block it, deletion with orphans cuts the references first. Observes every collection, keeps only
 * who depends on whom, acts through local/store/edit.h.
 */
#pragma once

struct td_api;
struct td_gc;
struct td_log;

struct td_gc *td_gc_new(struct td_api *api, struct td_log *log);
void td_gc_free(struct td_gc *gc); /* NULL is accepted */
