#include "kube/kubeconfig/kubeconfig.h"

#include "base/base64.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

static void write_base64(struct td_arena *arena, struct td_json *object, td_str key, td_str bytes)
{
    if (bytes.len == 0) {
        return;
    }
    td_auto_buf text = td_buf_capped(2 * bytes.len + 4);
    td_base64_write(bytes, TD_BASE64_STANDARD, &text);
    td_json_set_str(arena, object, key, td_arena_copy_str(arena, td_buf_str(&text)));
}

/* A list of one named entry. */
static void write_entry(struct td_arena *arena, struct td_json *config, td_str list, td_str name,
                        td_str kind, struct td_json *value)
{
    struct td_json *items = td_json_new_array(arena);
    struct td_json *item = td_json_new_object(arena);
    td_json_set_str(arena, item, TD_STR("name"), name);
    td_json_set(arena, item, kind, value);
    td_json_append(items, item);
    td_json_set(arena, config, list, items);
}

void td_kubeconfig_write(const struct td_kubeconfig_entry *entry, struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *cluster = td_json_new_object(&arena);
    td_json_set_str(&arena, cluster, TD_STR("server"), entry->server);
    write_base64(&arena, cluster, TD_STR("certificate-authority-data"), entry->ca_pem);
    struct td_json *user = td_json_new_object(&arena);
    write_base64(&arena, user, TD_STR("client-certificate-data"), entry->certificate_pem);
    write_base64(&arena, user, TD_STR("client-key-data"), entry->key_pem);
    td_json_set_text(&arena, user, TD_STR("token"), entry->token);
    struct td_json *context = td_json_new_object(&arena);
    td_json_set_str(&arena, context, TD_STR("cluster"), entry->name);
    td_json_set_str(&arena, context, TD_STR("user"), entry->name);
    td_json_set_text(&arena, context, TD_STR("namespace"), entry->namespace);
    struct td_json *config = td_json_new_object(&arena);
    td_json_set_str(&arena, config, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set_str(&arena, config, TD_STR("kind"), TD_STR("Config"));
    write_entry(&arena, config, TD_STR("clusters"), entry->name, TD_STR("cluster"), cluster);
    write_entry(&arena, config, TD_STR("users"), entry->name, TD_STR("user"), user);
    write_entry(&arena, config, TD_STR("contexts"), entry->name, TD_STR("context"), context);
    td_json_set_str(&arena, config, TD_STR("current-context"), entry->name);
    td_yaml_write(config, out);
}
