/*
 * Upstream merges the defaults of all LimitRanges first, then judges each limit alone. A limit of
 * type Container is judged for every container, one of type Pod for the sums of the pod.
 */
#include "api/pod/pod_limits.h"

#include "base/error.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"

#define LIMITS_ANNOTATION "kubernetes.io/limit-ranger"

typedef void (*limits_fn)(const struct td_json *limit, td_str type, void *context);

/* Every limit of every LimitRange. */
static void limits_each(const struct td_limit_objects *ranges, limits_fn fn, void *context)
{
    for (size_t i = 0; i < ranges->count; i++) {
        const struct td_json *limit =
            td_json_first_item(td_json_get_path(ranges->items[i], "spec.limits"));
        for (; limit; limit = limit->next) {
            fn(limit, td_json_text(limit, "type"), context);
        }
    }
}

/* ---- Defaults ---- */

struct limits_defaults {
    struct td_arena *arena;
    struct td_json *requests; /* the first default of each resource counts */
    struct td_json *limits;
};

static void limits_collect(struct td_arena *arena, const struct td_json *from, struct td_json *into)
{
    for (const struct td_json *m = td_json_first_member(from); m; m = m->next) {
        if (!td_json_get(into, m->key)) {
            td_json_set(arena, into, m->key, td_json_copy(arena, m, false));
        }
    }
}

static void limits_add_defaults(const struct td_json *limit, td_str type, void *context)
{
    struct limits_defaults *defaults = context;
    if (td_str_equal(type, TD_STR("Container"))) {
        limits_collect(defaults->arena, td_json_get(limit, TD_STR("defaultRequest")),
                       defaults->requests);
        limits_collect(defaults->arena, td_json_get(limit, TD_STR("default")), defaults->limits);
    }
}

/* Fills what is missing; the names of what was set are added to `note`, comma between. */
static td_str limits_fill(struct td_arena *arena, struct td_json *resources, td_str key,
                          const struct td_json *defaults)
{
    td_str note = TD_STR_EMPTY;
    for (const struct td_json *d = td_json_first_member(defaults); d; d = d->next) {
        struct td_json *list = td_json_ensure_object(arena, resources, key);
        if (td_json_get(list, d->key)) {
            continue;
        }
        td_json_set(arena, list, d->key, td_json_copy(arena, d, false));
        note = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(note), note.len > 0 ? ", " : "",
                               TD_STR_ARG(d->key));
    }
    return note;
}

static td_str limits_apply(struct td_arena *arena, struct td_json *container, const char *what,
                           const struct limits_defaults *defaults)
{
    struct td_json *resources = td_json_ensure_object(arena, container, TD_STR("resources"));
    td_str name = td_json_text(container, "name");
    td_str requests = limits_fill(arena, resources, TD_STR("requests"), defaults->requests);
    td_str limits = limits_fill(arena, resources, TD_STR("limits"), defaults->limits);
    td_str note = TD_STR_EMPTY;
    if (requests.len > 0) {
        note = td_arena_format(arena, "%.*s request for %s %.*s", TD_STR_ARG(requests), what,
                               TD_STR_ARG(name));
    }
    if (limits.len > 0) {
        note =
            td_arena_format(arena, "%.*s%s%.*s limit for %s %.*s", TD_STR_ARG(note),
                            note.len > 0 ? "; " : "", TD_STR_ARG(limits), what, TD_STR_ARG(name));
    }
    return note;
}

static td_str limits_apply_all(struct td_arena *arena, struct td_json *pod,
                               const struct limits_defaults *defaults)
{
    static const char *const lists[][2] = {{"spec.containers", "container"},
                                           {"spec.initContainers", "init container"}};
    td_str note = TD_STR_EMPTY;
    for (size_t i = 0; i < 2; i++) {
        struct td_json *list = td_json_get_path(pod, lists[i][0]);
        struct td_json *c = td_json_first_item(list);
        for (; c; c = c->next) {
            td_str part = limits_apply(arena, c, lists[i][1], defaults);
            if (part.len > 0) {
                note = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(note),
                                       note.len > 0 ? "; " : "", TD_STR_ARG(part));
            }
        }
    }
    return note;
}

void td_pod_limit_defaults(struct td_arena *arena, const struct td_limit_objects *ranges,
                           struct td_json *pod)
{
    struct limits_defaults defaults = {
        .arena = arena, .requests = td_json_new_object(arena), .limits = td_json_new_object(arena)};
    limits_each(ranges, limits_add_defaults, &defaults);
    if (defaults.requests->count == 0 && defaults.limits->count == 0) {
        return;
    }
    td_json_sort(arena, defaults.requests); /* the order in which they are named */
    td_json_sort(arena, defaults.limits);
    td_str note = limits_apply_all(arena, pod, &defaults);
    if (note.len > 0) {
        struct td_json *metadata = td_json_ensure_object(arena, pod, TD_STR("metadata"));
        struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
        td_json_set_str(arena, annotations, TD_STR(LIMITS_ANNOTATION),
                        td_arena_format(arena, "LimitRanger plugin set: %.*s", TD_STR_ARG(note)));
    }
}

/* ---- Bounds ---- */

struct limits_check {
    struct td_arena *arena;
    const struct td_json *pod;
    struct td_json *said; /* the problems, each once */
    td_str problems;      /* joined by ", " */
    size_t count;
};

/* A sentence is said once, as in upstream's aggregates. */
static void limits_problem(struct limits_check *check, td_str text)
{
    for (const struct td_json *said = td_json_first_item(check->said); said; said = said->next) {
        if (td_str_equal(said->text, text)) {
            return;
        }
    }
    td_json_append(check->said, td_json_new_string(check->arena, text));
    check->problems = td_arena_format(check->arena, "%.*s%s%.*s", TD_STR_ARG(check->problems),
                                      check->count++ > 0 ? ", " : "", TD_STR_ARG(text));
}

struct limits_pair {
    const struct td_quantity *request; /* NULL: not set */
    const struct td_quantity *limit;
};

struct limits_bound {
    td_str type;     /* "Container" */
    td_str resource; /* "cpu" */
    struct td_quantity value;
};

/* "minimum cpu usage per Container is 1, but request is 500m" */
static void limits_outside(struct limits_check *check, const struct limits_bound *bound,
                           const char *what, const char *which, const struct td_quantity *found)
{
    struct td_arena *arena = check->arena;
    td_str shown = td_quantity_text(arena, &bound->value);
    td_str text =
        found
            ? td_arena_format(arena, "%s %.*s usage per %.*s is %.*s, but %s is %.*s", what,
                              TD_STR_ARG(bound->resource), TD_STR_ARG(bound->type),
                              TD_STR_ARG(shown), which, TD_STR_ARG(td_quantity_text(arena, found)))
            : td_arena_format(arena, "%s %.*s usage per %.*s is %.*s.  No %s is specified", what,
                              TD_STR_ARG(bound->resource), TD_STR_ARG(bound->type),
                              TD_STR_ARG(shown), which);
    limits_problem(check, text);
}

static void limits_check_min(struct limits_check *check, const struct limits_bound *bound,
                             const struct limits_pair *pair)
{
    if (!pair->request || td_quantity_compare(pair->request, &bound->value) < 0) {
        limits_outside(check, bound, "minimum", "request", pair->request);
    } else if (pair->limit && td_quantity_compare(pair->limit, &bound->value) < 0) {
        limits_outside(check, bound, "minimum", "limit", pair->limit);
    }
}

static void limits_check_max(struct limits_check *check, const struct limits_bound *bound,
                             const struct limits_pair *pair)
{
    if (!pair->limit || td_quantity_compare(pair->limit, &bound->value) > 0) {
        limits_outside(check, bound, "maximum", "limit", pair->limit);
    } else if (pair->request && td_quantity_compare(pair->request, &bound->value) > 0) {
        limits_outside(check, bound, "maximum", "request", pair->request);
    }
}

static void limits_check_ratio(struct limits_check *check, const struct limits_bound *bound,
                               const struct limits_pair *pair)
{
    struct td_arena *arena = check->arena;
    td_str shown = td_quantity_text(arena, &bound->value);
    bool has_request = pair->request && td_quantity_sign(pair->request) != 0;
    bool has_limit = pair->limit && td_quantity_sign(pair->limit) != 0;
    if (!has_request || !has_limit) {
        const char *which = has_request ? "limit" : "request";
        limits_problem(check,
                       td_arena_format(arena,
                                       "%.*s max limit to request ratio per %.*s is %.*s, but no "
                                       "%s is specified or %s is 0",
                                       TD_STR_ARG(bound->resource), TD_STR_ARG(bound->type),
                                       TD_STR_ARG(shown), which, which));
        return;
    }
    double ratio = td_quantity_to_double(pair->limit) / td_quantity_to_double(pair->request);
    if (ratio > td_quantity_to_double(&bound->value)) {
        limits_problem(check, td_arena_format(arena,
                                              "%.*s max limit to request ratio per %.*s is %.*s, "
                                              "but provided ratio is %f",
                                              TD_STR_ARG(bound->resource), TD_STR_ARG(bound->type),
                                              TD_STR_ARG(shown), ratio));
    }
}

static void limits_check_lists(struct limits_check *check, const struct td_json *limit, td_str type,
                               const struct td_resource_list *requests,
                               const struct td_resource_list *limits)
{
    static const struct {
        const char *key;
        void (*check)(struct limits_check *check, const struct limits_bound *bound,
                      const struct limits_pair *pair);
    } rules[] = {
        {"min", limits_check_min},
        {"max", limits_check_max},
        {"maxLimitRequestRatio", limits_check_ratio},
    };
    for (size_t i = 0; i < TD_COUNT(rules); i++) {
        const struct td_json *bounds = td_json_get(limit, td_str_from(rules[i].key));
        for (const struct td_json *b = td_json_first_member(bounds); b; b = b->next) {
            struct limits_bound bound = {.type = type, .resource = b->key};
            struct limits_pair pair = {.request = td_resource_list_get(requests, b->key),
                                       .limit = td_resource_list_get(limits, b->key)};
            if (td_quantity_from_json(check->arena, b, &bound.value, NULL) == TD_OK) {
                rules[i].check(check, &bound, &pair);
            }
        }
    }
}

static void limits_check_containers(struct limits_check *check, const struct td_json *limit,
                                    const char *path)
{
    const struct td_json *list = td_json_get_path(check->pod, path);
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        const struct td_json *resources = td_json_get(c, TD_STR("resources"));
        struct td_resource_list requests;
        struct td_resource_list limits;
        if (td_resource_list_decode(check->arena, td_json_get(resources, TD_STR("requests")),
                                    &requests, NULL) == TD_OK &&
            td_resource_list_decode(check->arena, td_json_get(resources, TD_STR("limits")), &limits,
                                    NULL) == TD_OK) {
            limits_check_lists(check, limit, TD_STR("Container"), &requests, &limits);
        }
    }
}

static void limits_check_one(const struct td_json *limit, td_str type, void *context)
{
    struct limits_check *check = context;
    if (td_str_equal(type, TD_STR("Container"))) {
        limits_check_containers(check, limit, "spec.containers");
        limits_check_containers(check, limit, "spec.initContainers");
    } else if (td_str_equal(type, TD_STR("Pod"))) {
        const struct td_pod_resource_options options = {.exclude_overhead = true};
        struct td_resource_list requests;
        struct td_resource_list limits;
        if (td_pod_requests(check->arena, check->pod, &options, &requests, NULL) == TD_OK &&
            td_pod_limits(check->arena, check->pod, &options, &limits, NULL) == TD_OK) {
            limits_check_lists(check, limit, type, &requests, &limits);
        }
    }
}

td_str td_pod_limit_problems(struct td_arena *arena, const struct td_limit_objects *ranges,
                             const struct td_json *pod)
{
    struct limits_check check = {
        .arena = arena,
        .pod = pod,
        .said = td_json_new_array(arena),
        .problems = TD_STR_EMPTY,
    };
    limits_each(ranges, limits_check_one, &check);
    bool is_many = check.count > 1;
    return is_many ? td_arena_format(arena, "[%.*s]", TD_STR_ARG(check.problems)) : check.problems;
}
