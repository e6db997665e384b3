/*
 * What is in a new cluster: the four namespaces, the roles that every
 * authenticated user has and those that users bind (cluster-admin, admin, edit, view), priority
 * classes, the Service "kubernetes", and the kinds of our own as CustomResourceDefinitions. What is
 * there already stays as it is, except definitions of ours, which are brought up to date.
 */
#pragma once

struct td_api;
struct td_error;

int td_system_install(struct td_api *api, struct td_error *err);
