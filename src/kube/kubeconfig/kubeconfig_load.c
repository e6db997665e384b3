/*
 * The way to a cluster: which files are read, which context counts, and what happens when there is
 * none. Two steps past client-go, where it goes on without a word: a context whose cluster or user
 * is in no file is an error that names them, and so is a namespace that no cluster could have.
 */
#include "kube/kubeconfig/kubeconfig_private.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "kube/names.h"

struct load_work {
    struct td_arena *arena;
    const struct td_kube_config_input *input;
    struct td_kubeconfig_set set;
    td_str looked_at; /* for the message when nothing was found */
    bool has_file;    /* one was there */
};

static td_str load_env(const struct td_kube_config_input *input, const char *name)
{
    return td_str_from(input->env ? input->env(name, input->env_context) : NULL);
}

static int load_text(struct load_work *work, td_str path, td_str text, struct td_error *err)
{
    struct td_kubeconfig_file *file = td_arena_new(work->arena, struct td_kubeconfig_file);
    int code = td_kubeconfig_read(work->arena, path, text, file, err);
    return code < 0 ? code : td_kubeconfig_merge(&work->set, file, err);
}

static int load_file(struct load_work *work, td_str path, bool may_be_missing, struct td_error *err)
{
    td_str copy = td_arena_copy_str(work->arena, path);
    td_str text;
    struct td_error cause = TD_ERROR_INIT;
    int code = td_file_read(copy.ptr, work->arena, TD_KUBECONFIG_BYTES_MAX, &text, &cause);
    if (code == TD_NOT_FOUND && may_be_missing) {
        return TD_OK;
    }
    if (code < 0) {
        return td_error_set(err, code, "kubeconfig %s", cause.message);
    }
    work->has_file = true;
    return load_text(work, copy, text, err);
}

/* A path that stands in the list twice is read once. */
static int load_list(struct load_work *work, td_str list, struct td_error *err)
{
    td_str seen[TD_KUBECONFIG_FILES_MAX];
    size_t count = 0;
    for (size_t from = 0; from < list.len;) {
        size_t colon = td_str_find(list, ':', from);
        td_str path = td_str_slice(list, from, colon);
        from = colon + 1;
        bool is_new = path.len > 0;
        for (size_t i = 0; i < count; i++) {
            is_new = is_new && !td_str_equal(seen[i], path);
        }
        if (!is_new) {
            continue;
        }
        if (count == TD_KUBECONFIG_FILES_MAX) {
            return td_error_set(err, TD_LIMIT, "KUBECONFIG: more than %d files",
                                TD_KUBECONFIG_FILES_MAX);
        }
        seen[count++] = path;
        int code = load_file(work, path, true, err);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

static int load_files(struct load_work *work, struct td_error *err)
{
    td_str explicit_path = td_str_from(work->input->kubeconfig);
    td_str list = load_env(work->input, "KUBECONFIG");
    td_str home = td_str_from(work->input->home);
    if (explicit_path.len > 0) {
        work->looked_at = explicit_path;
        return load_file(work, explicit_path, false, err);
    }
    if (list.len > 0) {
        work->looked_at = td_arena_format(work->arena, "KUBECONFIG (%.*s)", TD_STR_ARG(list));
        return load_list(work, list, err);
    }
    if (home.len > 0) {
        td_str path = td_arena_format(work->arena, "%s/.kube/config", home.ptr);
        work->looked_at = path;
        return load_file(work, path, true, err);
    }
    work->looked_at = TD_STR("no kubeconfig");
    return TD_OK;
}

/* *ret is NULL when no context is named anywhere. */
static int load_choose_context(const struct load_work *work, const struct td_kubeconfig_named **ret,
                               struct td_error *err)
{
    td_str wanted = td_str_from(work->input->context);
    td_str name = wanted.len > 0 ? wanted : work->set.current_context;
    const struct td_kubeconfig_named *context = td_map_get(&work->set.contexts, name);
    if (!context && wanted.len > 0) {
        return td_error_set(err, TD_INVALID, "context '%.*s' does not exist in %.*s",
                            TD_STR_ARG(name), TD_STR_ARG(work->looked_at));
    }
    if (!context && name.len > 0) {
        return td_error_set(err, TD_INVALID,
                            "%.*s: current-context: '%.*s': there is no such context",
                            TD_STR_ARG(work->set.current_context_path), TD_STR_ARG(name));
    }
    *ret = context;
    return TD_OK;
}

static int load_nothing(const struct load_work *work, struct td_kube_config *ret,
                        struct td_error *err)
{
    int code = td_kubeconfig_in_cluster(work->arena, work->input, ret, err);
    td_str list = load_env(work->input, "KUBECONFIG");
    if (code != TD_NOT_FOUND) {
        return code;
    }
    if (list.len > 0 && td_str_from(work->input->kubeconfig).len == 0 && !work->has_file) {
        bool is_list = td_str_find(list, ':', 0) < list.len;
        return td_error_set(err, TD_NOT_FOUND,
                            "KUBECONFIG: '%.*s': %s; correct it, or unset it to use ~/.kube/config",
                            TD_STR_ARG(list),
                            is_list ? "none of these files exists" : "there is no such file");
    }
    return td_error_set(err, TD_NOT_FOUND,
                        "no cluster is configured: %.*s names none, and this is not a pod; "
                        "give --kubeconfig or set KUBECONFIG",
                        TD_STR_ARG(work->looked_at));
}

static int load_set_namespace(const struct load_work *work,
                              const struct td_kubeconfig_named *context,
                              struct td_kube_config *config, struct td_error *err)
{
    td_str namespace =
        context ? td_kubeconfig_text(work->arena, context, TD_STR("namespace")) : TD_STR_EMPTY;
    if (namespace.len == 0) {
        config->namespace = td_kubeconfig_pod_namespace(work->arena, work->input);
        return TD_OK;
    }
    if (td_name_check_dns1123_label(namespace, NULL) > 0) {
        return td_kubeconfig_fail(context, "namespace", TD_INVALID, err,
                                  "'%s': is no name of a namespace", namespace.ptr);
    }
    config->namespace = namespace;
    return TD_OK;
}

static int load_find(const struct td_map *map, const struct td_kubeconfig_named *context,
                     const char *field, const struct td_kubeconfig_named **ret,
                     struct td_error *err)
{
    td_str name = context ? td_json_text(context->value, field) : TD_STR_EMPTY;
    const struct td_kubeconfig_named *found = td_map_get(map, name);
    if (!found && name.len > 0) {
        return td_kubeconfig_fail(context, field, TD_INVALID, err, "'%.*s': there is no such %s",
                                  TD_STR_ARG(name), field);
    }
    *ret = found;
    return TD_OK;
}

static struct td_kube_config load_empty(void)
{
    return (struct td_kube_config){
        .source = TD_STR_EMPTY,
        .context = TD_STR_EMPTY,
        .user = TD_STR_EMPTY,
        .server = TD_STR_EMPTY,
        .host = TD_STR_EMPTY,
        .path_prefix = TD_STR_EMPTY,
        .ca_pem = TD_STR_EMPTY,
        .ca_file = TD_STR_EMPTY,
        .tls_server_name = TD_STR_EMPTY,
        .proxy_url = TD_STR_EMPTY,
        .certificate_pem = TD_STR_EMPTY,
        .key_pem = TD_STR_EMPTY,
        .certificate_file = TD_STR_EMPTY,
        .key_file = TD_STR_EMPTY,
        .token = TD_STR_EMPTY,
        .token_file = TD_STR_EMPTY,
        .username = TD_STR_EMPTY,
        .password = TD_STR_EMPTY,
        .impersonation = {.user = TD_STR_EMPTY, .uid = TD_STR_EMPTY},
        .namespace = TD_STR_EMPTY,
    };
}

/* Of what was merged; without any context and cluster the pod's own. */
static int load_choose(const struct load_work *work, struct td_kube_config *ret,
                       struct td_error *err)
{
    const struct td_kubeconfig_named *context = NULL;
    const struct td_kubeconfig_named *cluster = NULL;
    const struct td_kubeconfig_named *user = NULL;
    struct td_kube_config config = load_empty();
    int code = load_choose_context(work, &context, err);
    code = code < 0 ? code : load_find(&work->set.clusters, context, "cluster", &cluster, err);
    code = code < 0 ? code : load_find(&work->set.users, context, "user", &user, err);
    if (code < 0) {
        return code;
    }
    if (!cluster && context && context->name.len > 0) {
        return td_kubeconfig_fail(context, "cluster", TD_INVALID, err, "is not set");
    }
    if (!cluster) {
        code = load_nothing(work, &config, err);
    } else {
        config.context = td_arena_copy_str(work->arena, context ? context->name : TD_STR_EMPTY);
        code = td_kubeconfig_use_cluster(work->arena, cluster, work->input, &config, err);
        if (code == TD_OK && user) {
            code = td_kubeconfig_use_user(work->arena, user, cluster, &config, err);
        }
        code = code < 0 ? code : load_set_namespace(work, context, &config, err);
    }
    if (code == TD_OK) {
        *ret = config;
    }
    return code;
}

int td_kube_config_load(struct td_arena *arena, const struct td_kube_config_input *input,
                        struct td_kube_config *ret, struct td_error *err)
{
    struct td_error unread = TD_ERROR_INIT;
    struct load_work work = {.arena = arena, .input = input};
    err = err ? err : &unread;
    td_kubeconfig_set_init(&work.set, arena);
    int code = load_files(&work, err);
    code = code < 0 ? code : load_choose(&work, ret, err);
    td_kubeconfig_set_done(&work.set);
    return code < 0 ? td_kubeconfig_one_line(err, code) : code;
}

int td_kube_config_parse(struct td_arena *arena, td_str path, td_str text,
                         const struct td_kube_config_input *input, struct td_kube_config *ret,
                         struct td_error *err)
{
    struct td_error unread = TD_ERROR_INIT;
    struct load_work work = {.arena = arena, .input = input, .looked_at = path};
    err = err ? err : &unread;
    td_kubeconfig_set_init(&work.set, arena);
    int code = load_text(&work, path, text, err);
    code = code < 0 ? code : load_choose(&work, ret, err);
    td_kubeconfig_set_done(&work.set);
    return code < 0 ? td_kubeconfig_one_line(err, code) : code;
}
