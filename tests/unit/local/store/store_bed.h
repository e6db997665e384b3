/*
 * A store on a loop with a virtual clock, and short ways to write to it. An object's text is
 * {"metadata":{"name":NAME,"labels":{"v":"VERSION"}},"pad":"..."}, so that a revision shows which
 * version it is.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "local/store/store.h"

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_store *store;
    struct td_collection *pods;
};

static inline int bed_try(struct bed *bed, const struct td_store_options *options,
                          struct td_error *err)
{
    *bed = (struct bed){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, err), TD_OK);
    int code = td_store_new(bed->loop, options, &bed->store, err);
    if (code == TD_OK) {
        code = td_store_collection(bed->store, TD_STR("pods"), &bed->pods, err);
    } else {
        td_loop_free(bed->loop);
    }
    return code;
}

static inline void bed_open(struct bed *bed, const struct td_store_options *options)
{
    struct td_error err = TD_ERROR_INIT;
    if (bed_try(bed, options, &err) < 0) {
        fail_msg("open: %s", err.message);
    }
}

static inline void bed_close(struct bed *bed)
{
    td_store_free(bed->store);
    td_loop_free(bed->loop);
}

/* Until nothing is left to do: waits are told, cursors woken. */
static inline void bed_run(struct bed *bed)
{
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_loop_run(bed->loop, &err), TD_OK);
}

static inline int bed_write(struct bed *bed, struct td_collection *collection,
                            enum td_change_type type, const char *ns, const char *name, size_t pad,
                            struct td_error *err)
{
    static char text[(size_t)5 << 20];
    uint64_t version = td_store_reserve(bed->store);
    int len =
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"v\":\"%llu\"}},\"pad\":\"%0*d\"}",
                 name, (unsigned long long)version, (int)pad, 0);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    const struct td_commit commit = {
        .type = type,
        .ns = td_str_from(ns),
        .name = td_str_from(name),
        .version = version,
        .json = {.ptr = text, .len = (size_t)len},
    };
    struct td_stored *stored = NULL;
    int code = td_store_commit(bed->store, collection, &commit, &stored, err);
    if (code == TD_OK) {
        assert_true(stored->version == version);
        assert_true(td_store_version(bed->store) == version);
    }
    return code;
}

static inline void bed_put(struct bed *bed, enum td_change_type type, const char *ns,
                           const char *name)
{
    struct td_error err = TD_ERROR_INIT;
    if (bed_write(bed, bed->pods, type, ns, name, 1, &err) < 0) {
        fail_msg("write %s/%s: %s", ns, name, err.message);
    }
}

static inline void assert_str(td_str got, const char *want)
{
    if (!td_str_equal(got, td_str_from(want))) {
        fail_msg("'%.*s' is not '%s'", TD_STR_ARG(got), want);
    }
}
