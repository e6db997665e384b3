/*
 * Events do not stay: one that did not happen again for an hour is deleted, as a real server's
 * lease on them ends. Otherwise an endless run would fill the store with its own history.
 */
#pragma once

struct td_api;
struct td_expiry;

struct td_expiry *td_expiry_new(struct td_api *api);
void td_expiry_free(struct td_expiry *expiry); /* NULL is accepted */
