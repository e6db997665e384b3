/*
 * The controller of namespaces: each has a service account "default" and the ConfigMap
 * "kube-root-ca.crt" with the cluster's authority, made again when they are deleted. One that is
 * being deleted loses its content first, objects of custom resources too; while something with a
 * finalizer is left, its conditions say what. Observes the store, acts through local/store/edit.h.
 */
#pragma once

#include "base/str.h"

struct td_api;
struct td_log;
struct td_namespaces;

/* `ca_pem` is copied; empty: no ConfigMap. */
struct td_namespaces *td_namespaces_new(struct td_api *api, struct td_log *log, td_str ca_pem);
void td_namespaces_free(struct td_namespaces *namespaces); /* NULL is accepted */
