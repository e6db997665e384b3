/*
 * Which proxy a request goes through, by the variables that Go's programs honour: HTTPS_PROXY or
 * HTTP_PROXY by scheme and NO_PROXY with its names, addresses, ranges and ports, each also in lower
 * case. "localhost" and loopback addresses are always reached directly. Proxy addresses may hold a
 * password, so no message repeats one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/env.h"
#include "base/str.h"

struct td_error;

struct td_proxy_target {
    bool is_tls;
    td_str host; /* without brackets */
    uint16_t port;
};

/* The proxy's URL in the arena, or the empty text for a direct connection. */
int td_proxy_choose(struct td_arena *arena, td_env_fn env, void *env_context,
                    const struct td_proxy_target *target, td_str *ret, struct td_error *err);

/* May requests to the target skip the proxy, by a list as in NO_PROXY? */
bool td_proxy_is_exempt(td_str list, const struct td_proxy_target *target);

/* Is it the URL of a proxy we can use: http, https, socks5 or socks5h, and a host? `field` names it
 * in the message. */
int td_proxy_check(td_str url, const char *field, struct td_error *err);
