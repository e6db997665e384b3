#include "kube/kubeconfig/kubeconfig_private.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"

#define SET_ENTRIES_MAX ((size_t)TD_KUBECONFIG_ENTRIES_MAX * TD_KUBECONFIG_FILES_MAX)

void td_kubeconfig_set_init(struct td_kubeconfig_set *set, struct td_arena *arena)
{
    *set = (struct td_kubeconfig_set){
        .arena = arena, .current_context = TD_STR_EMPTY, .current_context_path = TD_STR_EMPTY};
    td_map_init(&set->clusters, SET_ENTRIES_MAX);
    td_map_init(&set->users, SET_ENTRIES_MAX);
    td_map_init(&set->contexts, SET_ENTRIES_MAX);
}

void td_kubeconfig_set_done(struct td_kubeconfig_set *set)
{
    td_map_done(&set->clusters);
    td_map_done(&set->users);
    td_map_done(&set->contexts);
}

/* An entry is taken whole: a later file adds no field to one that an earlier file has. */
static int merge_list(struct td_kubeconfig_set *set, struct td_map *map,
                      const struct td_kubeconfig_file *file, const char *list, const char *kind)
{
    const struct td_json *items = td_json_get(file->tree, td_str_from(list));
    for (const struct td_json *item = td_json_first_item(items); item; item = item->next) {
        td_str name = td_json_text(item, "name");
        if (td_map_has(map, name)) {
            continue;
        }
        struct td_kubeconfig_named *named = td_arena_new(set->arena, struct td_kubeconfig_named);
        *named = (struct td_kubeconfig_named){.name = name,
                                              .value = td_json_get(item, td_str_from(kind)),
                                              .file = file,
                                              .list = list,
                                              .kind = kind};
        int code = td_map_put(map, name, named);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

int td_kubeconfig_merge(struct td_kubeconfig_set *set, const struct td_kubeconfig_file *file,
                        struct td_error *err)
{
    if (merge_list(set, &set->clusters, file, "clusters", "cluster") < 0 ||
        merge_list(set, &set->users, file, "users", "user") < 0 ||
        merge_list(set, &set->contexts, file, "contexts", "context") < 0) {
        return td_error_set(err, TD_LIMIT, "%.*s: more than %zu entries in all files",
                            TD_STR_ARG(file->path), SET_ENTRIES_MAX);
    }
    if (set->current_context.len == 0) {
        set->current_context = td_json_text(file->tree, "current-context");
        set->current_context_path = file->path;
    }
    return TD_OK;
}
