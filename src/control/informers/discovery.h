/*
 * What has to be asked for singly: which resources serve a kind (discovery), and the scale of an
 * object that is of no well-known kind. Answers are remembered: discovery for five minutes, or
 * until a kind is missing and it is older than half a minute; scales for ten minutes, what was not
 * there or failed for half a minute, and all of them for an hour after the last question at most.
 * A question without an answer is TD_BUSY and is asked. Private to the informers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "control/informers/informers.h"
#include "model/owners.h"

struct td_client;
struct td_error;
struct td_loop;
struct td_api_discovery;

struct td_api_discovery *td_api_discovery_new(struct td_loop *loop, struct td_client *client,
                                              void (*settled)(void *context), void *context);
void td_api_discovery_free(struct td_api_discovery *discovery);

/* Resource number `index` of a kind, the group's preferred version first. TD_NOT_FOUND past the
 * last, TD_BUSY while it is discovery, or why discovery failed. */
int td_api_discovery_resource(struct td_api_discovery *discovery, td_str group, td_str kind,
                              size_t index, struct td_served_resource *ret, struct td_error *err);

struct td_scale_answer td_api_discovery_scale(struct td_api_discovery *discovery, td_str group,
                                              td_str resource, td_str namespace, td_str name);
