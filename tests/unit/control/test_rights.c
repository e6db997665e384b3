/*
 * The table of rights: with exactly what `tandem manifests` grants, the controllers do all of their
 * work without a refusal; and each right that is taken away is missed by name at the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/os/log.h"
#include "control/controllers.h"
#include "control/install.h"
#include "local/api/api.h"
#include "support/control_bed.h"

#define VPAS "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
#define RBAC "/apis/rbac.authorization.k8s.io/v1"

/* ---- A transport that remembers refusals ---- */

struct watch_transport {
    struct td_transport transport;
    struct td_transport *inner;
    char refused[4096];
};

struct watch_call {
    struct watch_transport *watch;
    struct td_call *inner;
    struct td_call_events events;
    void *context;
    char line[256];
};

static void watch_head(void *context, const struct td_call_head *head)
{
    struct watch_call *call = context;
    struct watch_transport *watch = call->watch;
    size_t len = strlen(watch->refused);
    if (head->status == 403) {
        (void)snprintf(watch->refused + len, sizeof(watch->refused) - len, "%s\n", call->line);
    }
    if (call->events.head) {
        call->events.head(call->context, head);
    }
}

static void watch_body(void *context, td_str bytes)
{
    struct watch_call *call = context;
    if (call->events.body) {
        call->events.body(call->context, bytes);
    }
}

static void watch_end(void *context, int code, const struct td_error *err)
{
    struct watch_call *call = context;
    struct watch_call gone = *call;
    td_free(call);
    gone.events.end(gone.context, code, err);
}

static struct td_call *watch_start(struct td_transport *transport,
                                   const struct td_call_request *request,
                                   const struct td_call_events *events, void *context)
{
    struct watch_transport *watch = (struct watch_transport *)(void *)transport;
    static const struct td_call_events watched = {
        .head = watch_head, .body = watch_body, .end = watch_end};
    struct watch_call *call = td_alloc_zero(1, sizeof(*call));
    call->watch = watch;
    call->events = *events;
    call->context = context;
    (void)snprintf(call->line, sizeof(call->line), "%.*s %.*s", TD_STR_ARG(request->method),
                   TD_STR_ARG(request->path));
    call->inner = watch->inner->ops->start(watch->inner, request, &watched, call);
    return (struct td_call *)(void *)call;
}

static void watch_cancel(struct td_call *started)
{
    struct watch_call *call = (struct watch_call *)(void *)started;
    call->watch->inner->ops->cancel(call->inner);
    td_free(call);
}

static void watch_free(struct td_transport *transport)
{
    struct watch_transport *watch = (struct watch_transport *)(void *)transport;
    watch->inner->ops->free(watch->inner);
}

/* ---- A cluster on which the program may do what it was granted ---- */

struct rights_bed {
    char user[128];
    struct control_bed c;
    struct watch_transport watch;
    struct td_controllers *controllers;
    struct td_log *log;
    char *text;
    size_t text_len;
    FILE *stream;
};

static void rights_bed_apply(struct rights_bed *r, const struct td_json *object)
{
    static const struct {
        const char *kind;
        const char *collection;
    } rows[] = {
        {"ServiceAccount", "/api/v1/namespaces/kube-system/serviceaccounts"},
        {"ClusterRole", RBAC "/clusterroles"},
        {"ClusterRoleBinding", RBAC "/clusterrolebindings"},
        {"Role", RBAC "/namespaces/kube-system/roles"},
        {"RoleBinding", RBAC "/namespaces/kube-system/rolebindings"},
    };
    td_str kind = td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY);
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_json_write(object, &(struct td_json_format){.indent = 0}, &text);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (td_str_equal(kind, td_str_from(rows[i].kind))) {
            control_bed_create(&r->c, rows[i].collection, td_buf_str(&text).ptr);
            return;
        }
    }
    fail_msg("a %.*s is not applied", TD_STR_ARG(kind));
}

/* All that may be switched on, and nothing that is off at first. */
static const bool rights_all[TD_FEATURES] = {
    [TD_FEATURE_HVPA] = true,    [TD_FEATURE_ANNOTATE] = true,  [TD_FEATURE_NODES] = true,
    [TD_FEATURE_BUILTIN] = true, [TD_FEATURE_TEMPLATES] = true,
};
static const bool rights_least[TD_FEATURES] = {[TD_FEATURE_HVPA] = true};

/* Granted to the account of an installation, whichever that is. */
static void rights_bed_init(struct rights_bed *r, const bool has[TD_CONTROLLER_COUNT],
                            const bool features[TD_FEATURES])
{
    *r = (struct rights_bed){.controllers = NULL};
    control_bed_init(&r->c);
    struct td_install_options install = {.wants = {[TD_INSTALL_RBAC] = true},
                                         .namespace = TD_STR("kube-system"),
                                         .image = TD_STR("tandem")};
    memcpy(install.has, has, sizeof(install.has));
    memcpy(install.features, features, sizeof(install.features));
    struct td_json *objects = NULL;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_install_objects(&r->c.bed.arena, &install, &objects, &err), TD_OK);
    for (const struct td_json *object = td_json_first_child(objects); object;
         object = object->next) {
        if (td_str_equal(td_json_text(object, "kind"), TD_STR("ServiceAccount"))) {
            (void)snprintf(
                r->user, sizeof(r->user), "system:serviceaccount:kube-system:%.*s",
                TD_STR_ARG(td_json_text(td_json_get(object, TD_STR("metadata")), "name")));
        }
        rights_bed_apply(r, object);
    }
    r->stream = open_memstream(&r->text, &r->text_len);
    assert_non_null(r->stream);
    r->log = td_log_new(&(struct td_log_options){.stream = r->stream,
                                                 .clock = &r->c.bed.clock,
                                                 .level = TD_LOG_INFO,
                                                 .format = TD_LOG_TEXT});
}

static void rights_bed_review(void *context, td_str review, struct td_buf *answer)
{
    td_webhook_review(context, review, answer);
}

static void rights_bed_start(struct rights_bed *r, const bool has[TD_CONTROLLER_COUNT],
                             const bool features[TD_FEATURES])
{
    static const struct td_transport_ops ops = {
        .start = watch_start, .cancel = watch_cancel, .free = watch_free};
    const struct td_transport_local_options local = {
        .api = r->c.bed.api,
        .loop = r->c.bed.loop,
        .user = td_str_from(r->user),
        .group = TD_STR("system:serviceaccounts"),
        .user_agent = TD_STR("tandem"),
    };
    r->watch = (struct watch_transport){.transport = {.ops = &ops},
                                        .inner = td_transport_local_new(&local)};
    struct td_controllers_options options = td_controllers_options_default();
    memcpy(options.has, has, sizeof(options.has));
    options.loop = r->c.bed.loop;
    options.log = r->log;
    options.transport = &r->watch.transport;
    options.checks_access = true;
    options.watches_upstream = true;
    options.leader.is_on = true;
    options.leader.identity = TD_STR("a");
    options.horizontal.serves_builtin = features[TD_FEATURE_BUILTIN];
    options.horizontal.is_alone = true;
    if (has[TD_CONTROLLER_UPDATER] != has[TD_CONTROLLER_ADMISSION]) { /* as the flags settle it */
        options.update.lease_name = TD_STR(TD_UPSTREAM_STATUS_LEASE);
        options.webhook.lease_name = TD_STR(TD_UPSTREAM_STATUS_LEASE);
    }
    options.caps_to_node = features[TD_FEATURE_NODES];
    options.update.annotates = features[TD_FEATURE_ANNOTATE];
    options.hvpa_gate = features[TD_FEATURE_HVPA];
    struct td_error err = TD_ERROR_INIT;
    if (td_controllers_new(&options, &r->controllers, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    struct td_webhook *webhook = td_controllers_webhook(r->controllers);
    if (webhook) {
        td_api_answer_reviews(r->c.bed.api, td_webhook_url(webhook), rights_bed_review, webhook);
    }
    td_controllers_start(r->controllers);
}

static void rights_bed_stopped(void *context)
{
    *(bool *)context = true;
}

static void rights_bed_stop(struct rights_bed *r)
{
    bool is_stopped = false;
    td_controllers_stop(r->controllers, rights_bed_stopped, &is_stopped);
    control_bed_run(&r->c, 2 * TD_SECOND);
    assert_true(is_stopped);
    td_api_answer_reviews(r->c.bed.api, TD_STR_EMPTY, NULL, NULL);
    td_controllers_free(r->controllers);
    r->controllers = NULL;
}

static void rights_bed_done(struct rights_bed *r)
{
    td_log_free(r->log);
    (void)fclose(r->stream);
    free(r->text); /* of open_memstream */
    control_bed_done(&r->c);
}

static const char *rights_bed_log(struct rights_bed *r)
{
    (void)fflush(r->stream);
    return r->text;
}

/* ---- Tests ---- */

static void rights_workloads(struct rights_bed *r)
{
    control_bed_create(
        &r->c, "/apis/apps/v1/namespaces/default/deployments",
        "{'metadata':{'name':'web'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'},'annotations':{'usage.tandem.dev/app':"
        "'400m,600Mi'}},'spec':{'containers':[{'name':'app','image':'nginx',"
        "'resources':{'requests':{'cpu':'100m','memory':'100Mi'}}}]}}}}");
    control_bed_create(
        &r->c, VPAS,
        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{'name':"
        "'web'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'},"
        "'updatePolicy':{'updateMode':'Recreate'},'resourcePolicy':{'containerPolicies':[{"
        "'containerName':'*','controlledResources':['memory']}]}}}");
    static const char *const groups[] = {"autoscaling/v2", "autoscaling.tandem.dev/v2"};
    static const char *const names[] = {"one", "two"};
    for (size_t i = 0; i < 2; i++) {
        char path[256];
        char text[2048];
        (void)snprintf(
            text, sizeof(text),
            "{'metadata':{'name':'%s'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':"
            "'%s'}},'template':{'metadata':{'labels':{'app':'%s'},'annotations':{"
            "'usage.tandem.dev/app':'400m,30Mi'}},'spec':{'containers':[{'name':'app',"
            "'image':'nginx','resources':{'requests':{'cpu':'200m','memory':'50Mi'}}}]}}}}",
            names[i], names[i], names[i]);
        control_bed_create(&r->c, "/apis/apps/v1/namespaces/default/deployments", text);
        (void)snprintf(path, sizeof(path), "/apis/%s/namespaces/default/horizontalpodautoscalers",
                       groups[i]);
        (void)snprintf(
            text, sizeof(text),
            "{'apiVersion':'%s','kind':'HorizontalPodAutoscaler','metadata':{'name':'%s'},'spec':{"
            "'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'%s'},"
            "'maxReplicas':5,'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{"
            "'type':'Utilization','averageUtilization':100}}}]}}",
            groups[i], names[i], names[i]);
        control_bed_create(&r->c, path, text);
    }
}

/* Both sources of verdicts, and both ways to carry a size out. */
static void rights_hvpas(struct rights_bed *r)
{
    static const char *const rows[][2] = {
        {"inner", "'mode':'VPABiased'"},
        {"outer", "'mode':'HPAPreferred','sources':'Objects','vertical':{'actuation':'Template'}"},
    };
    for (size_t i = 0; i < 2; i++) {
        char text[2048];
        (void)snprintf(
            text, sizeof(text),
            "{'metadata':{'name':'%s'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':"
            "'%s'}},'template':{'metadata':{'labels':{'app':'%s'},'annotations':{"
            "'usage.tandem.dev/app':'400m,300Mi'}},'spec':{'containers':[{'name':'app',"
            "'image':'nginx','resources':{'requests':{'cpu':'200m','memory':'100Mi'}}}]}}}}",
            rows[i][0], rows[i][0], rows[i][0]);
        control_bed_create(&r->c, "/apis/apps/v1/namespaces/default/deployments", text);
        (void)snprintf(
            text, sizeof(text),
            "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'%s'},"
            "'spec':{%s,'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'%s'},"
            "'hpaSpec':{'minReplicas':1,'maxReplicas':6,'metrics':[{'type':'Resource','resource':{"
            "'name':'cpu','target':{'type':'Utilization','averageUtilization':100}}}]},"
            "'vpaSpec':{}}}",
            rows[i][0], rows[i][1], rows[i][0]);
        control_bed_create(&r->c, "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas",
                           text);
    }
}

static int64_t rights_replicas(struct rights_bed *r, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "/apis/apps/v1/namespaces/default/deployments/%s", name);
    return td_json_get_int64(td_json_get(control_bed_get(&r->c, path), TD_STR("spec")),
                             TD_STR("replicas"), 0);
}

/* Every controller at work, and not one refusal. */
static void test_the_rights_are_enough(void **state)
{
    (void)state;
    const struct td_controllers_options defaults = td_controllers_options_default();
    struct rights_bed r;
    rights_bed_init(&r, defaults.has, rights_all);
    rights_bed_start(&r, defaults.has, rights_all);
    control_bed_run(&r.c, 20 * TD_SECOND);
    rights_workloads(&r);
    rights_hvpas(&r);
    control_bed_run(&r.c, 40 * TD_MINUTE);
    rights_bed_stop(&r);
    assert_string_equal(r.watch.refused, "");
    if (strstr(rights_bed_log(&r), "missing permission")) {
        fail_msg("%s", rights_bed_log(&r));
    }
    assert_true(rights_replicas(&r, "one") > 2);
    assert_true(rights_replicas(&r, "two") > 2);
    const struct td_json *events = td_json_get(
        control_bed_get(&r.c, "/api/v1/namespaces/default/events?limit=500"), TD_STR("items"));
    bool is_evicted = false;
    for (const struct td_json *event = td_json_first_child(events); event; event = event->next) {
        td_str reason = td_json_get_str(event, TD_STR("reason"), TD_STR_EMPTY);
        is_evicted = is_evicted || td_str_equal(reason, TD_STR("EvictedByVPA"));
    }
    assert_true(is_evicted);
    rights_bed_done(&r);
}

/* Whether each controller is alone, or gates and flags are off: its account is enough, and the
 * workloads of a cluster go on without a refusal. */
static void test_the_rights_of_each_alone_are_enough(void **state)
{
    (void)state;
    static const bool without_hvpa[TD_FEATURES] = {[TD_FEATURE_NODES] = true};
    const bool *const rows[] = {rights_least, rights_all, without_hvpa};
    for (size_t kind = 0; kind < TD_CONTROLLER_CHOICES; kind++) {
        for (size_t row = 0; row < TD_COUNT(rows); row++) {
            bool has[TD_CONTROLLER_COUNT] = {false};
            has[kind] = true;
            struct rights_bed r;
            rights_bed_init(&r, has, rows[row]);
            assert_true(td_str_ends_with(td_str_from(r.user), td_str_from(td_controller_name(
                                                                  (enum td_controller_kind)kind))));
            rights_bed_start(&r, has, rows[row]);
            control_bed_run(&r.c, 20 * TD_SECOND);
            rights_workloads(&r);
            if (rows[row][TD_FEATURE_TEMPLATES]) {
                rights_hvpas(&r);
            }
            control_bed_run(&r.c, 5 * TD_MINUTE);
            rights_bed_stop(&r);
            if (r.watch.refused[0] != '\0' || strstr(rights_bed_log(&r), "missing permission")) {
                fail_msg("%s, features %zu: %s%s", r.user, row, r.watch.refused,
                         rights_bed_log(&r));
            }
            rights_bed_done(&r);
        }
    }
}

/* May those controllers do that anywhere, or everywhere, by the Roles of their installation? */
static bool rights_grant(size_t controllers, const bool features[TD_FEATURES], const char *resource,
                         const char *verb, bool is_everywhere)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_install_options install = {
        .wants = {[TD_INSTALL_RBAC] = true}, .namespace = TD_STR("own"), .image = TD_STR("a")};
    memcpy(install.features, features, sizeof(install.features));
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        install.has[kind] = controllers >> kind & 1u;
    }
    struct td_json *objects = NULL;
    assert_int_equal(td_install_objects(&arena, &install, &objects, NULL), TD_OK);
    for (const struct td_json *role = td_json_first_item(objects); role; role = role->next) {
        td_str kind = td_json_text(role, "kind");
        const struct td_json *rule = td_json_first_item(td_json_get(role, TD_STR("rules")));
        for (; rule; rule = rule->next) {
            if (td_str_equal(kind, is_everywhere ? TD_STR("ClusterRole") : TD_STR("Role")) &&
                td_json_has_text(td_json_get(rule, TD_STR("resources")), td_str_from(resource)) &&
                td_json_has_text(td_json_get(rule, TD_STR("verbs")), td_str_from(verb))) {
                return true;
            }
        }
    }
    return false;
}

/* What may be done to the workloads of others follows the controllers and gates that are on. */
static void test_rights_follow_what_is_on(void **state)
{
    (void)state;
    enum { R = 1, U = 2, A = 4, H = 8, V = 16, ALL = 31 };
    static const struct {
        enum td_feature feature; /* that grants it; TD_FEATURE_ALWAYS: none is needed */
        const char *resource;
        const char *verb;
        size_t controllers; /* which have it */
    } rows[] = {
        {TD_FEATURE_ALWAYS, "pods/eviction", "create", U | V},
        {TD_FEATURE_ALWAYS, "pods/resize", "patch", U | V},
        {TD_FEATURE_ALWAYS, "*/scale", "update", H | V},
        {TD_FEATURE_ALWAYS, "pods", "list", R | U | H | V},
        {TD_FEATURE_ANNOTATE, "pods", "patch", U},
        {TD_FEATURE_NODES, "nodes", "list", U | A},
        {TD_FEATURE_BUILTIN, "horizontalpodautoscalers/status", "update", H},
        {TD_FEATURE_TEMPLATES, "deployments", "patch", V},
        {TD_FEATURE_TEMPLATES, "statefulsets", "patch", V},
        {TD_FEATURE_TEMPLATES, "replicationcontrollers", "patch", V},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        for (size_t controllers = 1; controllers <= ALL; controllers++) {
            bool is_own_status = rows[i].feature == TD_FEATURE_BUILTIN; /* of our own group */
            bool is_for_hvpas = rows[i].feature == TD_FEATURE_NODES && controllers & V;
            bool features[TD_FEATURES] = {[TD_FEATURE_HVPA] = true};
            bool expected = rows[i].controllers & controllers;
            bool without = rows[i].feature == TD_FEATURE_ALWAYS || is_own_status;
            bool got = rights_grant(controllers, features, rows[i].resource, rows[i].verb, true);
            assert_int_equal(got, (expected && without) || is_for_hvpas);
            features[rows[i].feature] = true;
            got = rights_grant(controllers, features, rows[i].resource, rows[i].verb, true);
            assert_int_equal(got, expected || is_for_hvpas);
        }
    }
    /* With its gate off the controller of Hvpas may do nothing to any object. */
    static const bool none[TD_FEATURES] = {false};
    assert_false(rights_grant(V, none, "pods/eviction", "create", true));
    assert_false(rights_grant(V, none, "*/scale", "update", true));
    assert_false(rights_grant(R | A | H, none, "hvpas", "list", true));
    /* The probe's pod is created in the own namespace; none is created elsewhere. */
    assert_false(rights_grant(ALL, rights_all, "pods", "create", true));
    assert_true(rights_grant(A, rights_least, "pods", "create", false));
    assert_false(rights_grant(R | U | H | V, rights_all, "pods", "create", false));
}

/* The words of a missing right. */
static void rights_line(const struct td_access_rule *rule, char *out, size_t len)
{
    (void)snprintf(out, len, "resources: [\"%.*s%s%.*s\"]", TD_STR_ARG(rule->resource),
                   rule->subresource.len > 0 ? "/" : "", TD_STR_ARG(rule->subresource));
}

/* Without any role every right is missing, each in a line of its own. */
static void test_what_is_missing_is_named(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const struct td_controllers_options defaults = td_controllers_options_default();
        bool has[TD_CONTROLLER_COUNT] = {false};
        static const bool nobody[TD_CONTROLLER_COUNT] = {false};
        has[kind] = defaults.has[kind];
        if (!has[kind]) {
            continue;
        }
        struct rights_bed r;
        rights_bed_init(&r, nobody, rights_least);
        rights_bed_start(&r, has, rights_least);
        control_bed_run(&r.c, 5 * TD_SECOND);
        const struct td_access_rule *rules;
        const td_str own = TD_STR("kube-system");
        const struct td_rights_scope scope = {
            .has = has,
            .features = {[TD_FEATURE_HVPA] = true},
            .places = {[TD_RIGHT_OWN] = {.namespace = own},
                       [TD_RIGHT_ELECTION] = {.namespace = own},
                       [TD_RIGHT_STATUS] = {.namespace = own},
                       [TD_RIGHT_STATUS_READ] = {.namespace = own},
                       [TD_RIGHT_SHARDS] = {.is_off = true}}};
        size_t count = td_rights_questions(&r.c.bed.arena, &scope, &rules);
        assert_true(count > 5);
        const char *log = rights_bed_log(&r);
        size_t lines = 0;
        for (const char *at = log; (at = strstr(at, "missing permission: ")); at++) {
            lines++;
        }
        assert_int_equal(lines, count);
        for (size_t i = 0; i < count; i++) {
            char line[256];
            rights_line(&rules[i], line, sizeof(line));
            if (!strstr(log, line)) {
                fail_msg("%s is not in: %s", line, log);
            }
        }
        rights_bed_stop(&r);
        rights_bed_done(&r);
    }
}

/* Is there a question about a resource of that name in that namespace? */
static bool rights_asks(struct td_arena *arena, const struct td_rights_scope *scope,
                        const char *resource, const char *namespace, const char *name)
{
    const struct td_access_rule *rules;
    size_t count = td_rights_questions(arena, scope, &rules);
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(rules[i].resource, td_str_from(resource)) &&
            td_str_equal(rules[i].namespace, td_str_from(namespace)) &&
            td_str_equal(rules[i].name, td_str_from(name))) {
            return true;
        }
    }
    return false;
}

/* Questions are about the objects that flags name, and only those that are used. */
static void test_what_is_asked_follows_the_flags(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    bool has[TD_CONTROLLER_COUNT] = {
        [TD_CONTROLLER_UPDATER] = true, [TD_CONTROLLER_ADMISSION] = true};
    struct td_rights_scope scope = {
        .has = has,
        .features = {[TD_FEATURE_HVPA] = true},
        .places = {[TD_RIGHT_OWN] = {.namespace = TD_STR("own"), .name = TD_STR("tls")},
                   [TD_RIGHT_ELECTION] = {.namespace = TD_STR("election")},
                   [TD_RIGHT_STATUS] = {.namespace = TD_STR("status"), .name = TD_STR("beat")},
                   [TD_RIGHT_STATUS_READ] = {.namespace = TD_STR("read"), .name = TD_STR("seen")}}};
    assert_true(rights_asks(&arena, &scope, "secrets", "own", "tls"));
    assert_false(rights_asks(&arena, &scope, "secrets", "own", "tandem-webhook-tls"));
    assert_true(rights_asks(&arena, &scope, "leases", "election", "tandem-updater"));
    assert_true(rights_asks(&arena, &scope, "leases", "election", ""));
    assert_false(rights_asks(&arena, &scope, "leases", "election", "tandem-recommender"));
    assert_true(rights_asks(&arena, &scope, "leases", "status", "beat"));
    assert_true(rights_asks(&arena, &scope, "leases", "read", "seen"));
    assert_false(rights_asks(&arena, &scope, "nodes", "", ""));
    scope.features[TD_FEATURE_NODES] = true;
    assert_true(rights_asks(&arena, &scope, "nodes", "", ""));
    scope.lease_name = TD_STR("mine"); /* admission is not elected: the only one */
    assert_true(rights_asks(&arena, &scope, "leases", "election", "mine"));
    has[TD_CONTROLLER_HVPA] = true;
    assert_true(rights_asks(&arena, &scope, "leases", "election", "mine-updater"));
    assert_true(rights_asks(&arena, &scope, "leases", "election", "mine-hvpa"));
    scope.places[TD_RIGHT_ELECTION].is_off = true;
    scope.places[TD_RIGHT_STATUS_READ].is_off = true;
    assert_false(rights_asks(&arena, &scope, "leases", "election", "mine-updater"));
    assert_false(rights_asks(&arena, &scope, "leases", "election", ""));
    assert_false(rights_asks(&arena, &scope, "leases", "read", "seen"));
    assert_true(rights_asks(&arena, &scope, "leases", "status", "beat"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rights_are_enough),
        cmocka_unit_test(test_the_rights_of_each_alone_are_enough),
        cmocka_unit_test(test_rights_follow_what_is_on),
        cmocka_unit_test(test_what_is_missing_is_named),
        cmocka_unit_test(test_what_is_asked_follows_the_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
