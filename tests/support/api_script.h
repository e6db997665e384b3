/*
 * Requests in order against one bed, each with what must come back: the shortest way to say what
 * the write side of the handler does. Also the changes that a watch would tell, as one text.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/api_bed.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define PODS "/api/v1/namespaces/default/pods"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define MERGE "application/merge-patch+json"
#define JSON_PATCH "application/json-patch+json"
#define STRATEGIC "application/strategic-merge-patch+json"
#define APPLY "application/apply-patch+yaml"

struct step {
    const char *method;
    const char *target;
    const char *type; /* content type; NULL: JSON */
    const char *body; /* NULL: none */
    int status;
    const char *path; /* of the answer; NULL: nothing of it is compared */
    const char *text; /* what is there, as JSON when it is no text; NULL: nothing is there */
};

/* What the answer has at a path: texts as they are, all else as JSON; NULL when nothing. */
static inline const char *script_at(struct bed *bed, const struct bed_answer *answer,
                                    const char *path)
{
    const struct td_json *node = td_json_get_path(bed_tree(bed, answer), path);
    if (!node || td_json_is(node, TD_JSON_TYPE_STRING)) {
        return node ? td_arena_copy_str(&bed->arena, node->text).ptr : NULL;
    }
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    td_json_write(node, &(struct td_json_format){.indent = 0}, &text);
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

static inline void script_ask(struct bed *bed, const struct step *step, struct bed_answer *answer)
{
    const struct bed_request request = {
        .method = step->method,
        .target = step->target,
        .content_type = step->type,
        .body = td_str_from(step->body),
    };
    bed_ask(bed, &request, answer);
    if (answer->call && answer->head_count == 0) {
        bed_run(bed, TD_MILLISECOND);
    }
}

static inline void script_run(struct bed *bed, const struct step *steps, size_t count)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        script_ask(bed, step, &answer);
        const char *found = step->path ? script_at(bed, &answer, step->path) : NULL;
        bool is_same = !step->path || (!found && !step->text) ||
                       (found && step->text && strcmp(found, step->text) == 0);
        if (answer.status != step->status || !is_same || answer.end_count != 1) {
            print_message("step %zu: %s %s %s\nanswer %d (ended %d times): %s\nfound: %s\n", i,
                          step->method, step->target, step->body ? step->body : "", answer.status,
                          answer.end_count, td_buf_str(&answer.body).ptr,
                          found ? found : "nothing");
        }
        assert_int_equal(answer.status, step->status);
        assert_int_equal(answer.end_count, 1);
        assert_true(is_same);
    }
}

#define RUN(bed, steps) script_run(bed, steps, sizeof(steps) / sizeof((steps)[0]))

static inline int script_setup(void **state)
{
    struct bed *bed = td_alloc_zero(1, sizeof(*bed));
    bed_init(bed);
    static const struct step steps[] = {
        {"POST", "/api/v1/namespaces", NULL, "{\"metadata\":{\"name\":\"default\"}}", 201, NULL,
         NULL},
        {"POST", "/api/v1/namespaces/default/serviceaccounts", NULL,
         "{\"metadata\":{\"name\":\"default\"}}", 201, NULL, NULL},
    };
    RUN(bed, steps);
    *state = bed;
    return 0;
}

static inline int script_teardown(void **state)
{
    bed_done(*state);
    td_free(*state);
    return 0;
}

/* Follows a collection from now on. */
struct script_watch {
    struct td_watch_cursor cursor;
};

static inline void script_watch(struct bed *bed, const char *collection, struct script_watch *watch)
{
    struct td_collection *found;
    assert_int_equal(td_store_collection(bed->store, td_str_from(collection), &found, NULL), TD_OK);
    assert_int_equal(
        td_watch_open(&watch->cursor, found, td_store_version(bed->store), NULL, NULL, NULL),
        TD_OK);
}

/* "ADDED a, MODIFIED a": what came since the last question. */
static inline const char *script_changes(struct bed *bed, struct script_watch *watch)
{
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED"};
    bed_run(bed, TD_MILLISECOND);
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    const struct td_change *change = NULL;
    while (td_watch_next(&watch->cursor, &change, NULL) == TD_OK && change) {
        (void)td_buf_append_format(&text, "%s%s %.*s", text.len > 0 ? ", " : "",
                                   names[change->type], TD_STR_ARG(change->after->name));
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}
