/*
 * One kubeconfig file. As client-go's decoder, it is judged as a whole before any of it is used: a
 * wrong type, broken base64 or a name given twice fails the file even in an entry that no context
 * asks for, fields that are not in the tables are passed over, and null stands for "not there". The
 * tables below are the file's types; a secret field's value is never shown.
 */
#include "base/stringset.h"
#include "kube/kubeconfig/kubeconfig_private.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

#define READ_SHOWN_BYTES 60 /* of a value in a message */

enum read_type {
    READ_TEXT,
    READ_BOOL,
    READ_BYTES,     /* base64 */
    READ_TEXTS,     /* list of texts */
    READ_TEXT_MAP,  /* of texts */
    READ_TEXTS_MAP, /* of lists of texts */
    READ_OBJECT,
    READ_LIST, /* of objects */
    READ_ANY,
};

struct read_field {
    const char *name; /* NULL ends a table */
    enum read_type type;
    bool is_secret;
    const struct read_field *members; /* of an object or of a list's objects */
};

static const struct read_field extension_fields[] = {
    {.name = "name"}, {.name = "extension", .type = READ_ANY}, {.name = NULL}};

static const struct read_field cluster_fields[] = {
    {.name = "server"},
    {.name = "tls-server-name"},
    {.name = "insecure-skip-tls-verify", .type = READ_BOOL},
    {.name = "certificate-authority"},
    {.name = "certificate-authority-data", .type = READ_BYTES, .is_secret = true},
    {.name = "proxy-url", .is_secret = true},
    {.name = "disable-compression", .type = READ_BOOL},
    {.name = "extensions", .type = READ_LIST, .members = extension_fields},
    {.name = NULL}};

static const struct read_field exec_env_fields[] = {
    {.name = "name"}, {.name = "value", .is_secret = true}, {.name = NULL}};

static const struct read_field exec_fields[] = {
    {.name = "command"},
    {.name = "args", .type = READ_TEXTS, .is_secret = true},
    {.name = "env", .type = READ_LIST, .members = exec_env_fields},
    {.name = "apiVersion"},
    {.name = "installHint"},
    {.name = "provideClusterInfo", .type = READ_BOOL},
    {.name = "interactiveMode"},
    {.name = NULL}};

static const struct read_field provider_fields[] = {
    {.name = "name"}, {.name = "config", .type = READ_TEXT_MAP, .is_secret = true}, {.name = NULL}};

static const struct read_field user_fields[] = {
    {.name = "client-certificate"},
    {.name = "client-certificate-data", .type = READ_BYTES, .is_secret = true},
    {.name = "client-key"},
    {.name = "client-key-data", .type = READ_BYTES, .is_secret = true},
    {.name = "token", .is_secret = true},
    {.name = "tokenFile"},
    {.name = "as"},
    {.name = "as-uid"},
    {.name = "as-groups", .type = READ_TEXTS},
    {.name = "as-user-extra", .type = READ_TEXTS_MAP},
    {.name = "username", .is_secret = true},
    {.name = "password", .is_secret = true},
    {.name = "auth-provider", .type = READ_OBJECT, .members = provider_fields},
    {.name = "exec", .type = READ_OBJECT, .members = exec_fields},
    {.name = "extensions", .type = READ_LIST, .members = extension_fields},
    {.name = NULL}};

static const struct read_field context_fields[] = {
    {.name = "cluster"},
    {.name = "user"},
    {.name = "namespace"},
    {.name = "extensions", .type = READ_LIST, .members = extension_fields},
    {.name = NULL}};

static const struct read_field named_cluster_fields[] = {
    {.name = "name"},
    {.name = "cluster", .type = READ_OBJECT, .members = cluster_fields},
    {.name = NULL}};

static const struct read_field named_user_fields[] = {
    {.name = "name"},
    {.name = "user", .type = READ_OBJECT, .members = user_fields},
    {.name = NULL}};

static const struct read_field named_context_fields[] = {
    {.name = "name"},
    {.name = "context", .type = READ_OBJECT, .members = context_fields},
    {.name = NULL}};

static const struct read_field preference_fields[] = {
    {.name = "colors", .type = READ_BOOL},
    {.name = "extensions", .type = READ_LIST, .members = extension_fields},
    {.name = NULL}};

static const struct read_field config_fields[] = {
    {.name = "kind"},
    {.name = "apiVersion"},
    {.name = "preferences", .type = READ_OBJECT, .members = preference_fields},
    {.name = "clusters", .type = READ_LIST, .members = named_cluster_fields},
    {.name = "users", .type = READ_LIST, .members = named_user_fields},
    {.name = "contexts", .type = READ_LIST, .members = named_context_fields},
    {.name = "current-context"},
    {.name = "extensions", .type = READ_LIST, .members = extension_fields},
    {.name = NULL}};

/* Where a value stands, for messages; the chain lives on the stack. */
struct read_place {
    const struct read_place *above; /* NULL for the whole file */
    const char *name;               /* NULL in a list */
    size_t index;                   /* in a list */
    int depth;
};

struct read_work {
    struct td_arena *arena; /* of the file */
    td_str path;
    struct td_error *err;
};

static void read_write_place(const struct read_place *place, struct td_buf *out)
{
    const struct read_place *chain[TD_KUBECONFIG_DEPTH_MAX + 1];
    int count = 0;
    for (; place && place->above && count <= TD_KUBECONFIG_DEPTH_MAX; place = place->above) {
        chain[count++] = place;
    }
    for (int i = count - 1; i >= 0; i--) {
        if (chain[i]->name) {
            (void)td_buf_append_format(out, "%s%s", out->len > 0 ? "." : "", chain[i]->name);
        } else {
            (void)td_buf_append_format(out, "[%zu]", chain[i]->index);
        }
    }
}

/* "FILE:LINE: FIELD: VALUE: must be ..."; the value only when it is a number or a boolean of a
 * plain field: a text in a wrong place may well be a token. */
static int read_fail(const struct read_work *work, const struct read_place *place,
                     const struct td_json *value, bool is_secret, const char *problem)
{
    td_auto_buf field = td_buf_capped(TD_STRICT_PATH_BYTES_MAX);
    td_auto_buf shown = td_buf_capped(TD_KUBECONFIG_BYTES_MAX);
    read_write_place(place, &field);
    bool is_plain = value->type < TD_JSON_TYPE_STRING;
    if (is_plain && !is_secret) {
        td_json_write(value, &(struct td_json_format){0}, &shown);
    }
    td_str cut = td_str_cut_utf8(td_buf_str(&shown), READ_SHOWN_BYTES);
    return td_error_set(work->err, TD_INVALID, "%.*s:%u: %s%s%.*s: %s", TD_STR_ARG(work->path),
                        value->line, field.len > 0 ? field.ptr : "the file",
                        cut.len > 0 ? ": " : "", TD_STR_ARG(cut), problem);
}

static int read_check_text(const struct read_work *work, const struct read_place *place,
                           const struct td_json *value, bool is_secret)
{
    if (!td_json_is(value, TD_JSON_TYPE_STRING)) {
        return read_fail(work, place, value, is_secret, "must be a string");
    }
    if (value->text.len > 0 && memchr(value->text.ptr, 0, value->text.len)) {
        return read_fail(work, place, value, true, "must not hold a NUL byte");
    }
    return TD_OK;
}

static int read_check_bytes(const struct read_work *work, const struct read_place *place,
                            const struct td_json *value)
{
    td_str bytes;
    if (!td_json_is(value, TD_JSON_TYPE_STRING)) {
        return read_fail(work, place, value, true, "must be a string of base64");
    }
    if (!td_base64_read(work->arena, value->text, TD_BASE64_STANDARD, &bytes)) {
        return read_fail(work, place, value, true, "must be base64");
    }
    return TD_OK;
}

static int read_check_value(const struct read_work *work, const struct read_place *place,
                            const struct td_json *value, const struct read_field *field);

/* Lists of texts and lists of objects; the items are of `item`'s type. */
static int read_check_list(const struct read_work *work, const struct read_place *place,
                           const struct td_json *value, const struct read_field *item)
{
    if (!td_json_is(value, TD_JSON_TYPE_ARRAY)) {
        return read_fail(work, place, value, item->is_secret, "must be a list");
    }
    if (value->count > TD_KUBECONFIG_ENTRIES_MAX) {
        td_auto_buf name = td_buf_capped(TD_STRICT_PATH_BYTES_MAX);
        read_write_place(place, &name);
        return td_error_set(work->err, TD_LIMIT, "%.*s:%u: %s: more than %d items",
                            TD_STR_ARG(work->path), value->line, name.ptr,
                            TD_KUBECONFIG_ENTRIES_MAX);
    }
    struct read_place below = {.above = place, .depth = place->depth + 1};
    for (const struct td_json *at = td_json_first_item(value); at; at = at->next) {
        int code = read_check_value(work, &below, at, item);
        if (code < 0) {
            return code;
        }
        below.index++;
    }
    return TD_OK;
}

static int read_check_map(const struct read_work *work, const struct read_place *place,
                          const struct td_json *value, const struct read_field *item)
{
    if (!td_json_is(value, TD_JSON_TYPE_OBJECT)) {
        return read_fail(work, place, value, item->is_secret, "must be an object");
    }
    for (const struct td_json *at = td_json_first_member(value); at; at = at->next) {
        td_str name = td_arena_copy_str(work->arena, at->key);
        struct read_place below = {.above = place, .name = name.ptr, .depth = place->depth + 1};
        int code = read_check_value(work, &below, at, item);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

static int read_check_object(const struct read_work *work, const struct read_place *place,
                             const struct td_json *value, const struct read_field *members)
{
    if (!td_json_is(value, TD_JSON_TYPE_OBJECT)) {
        return read_fail(work, place, value, false, "must be an object");
    }
    for (const struct read_field *field = members; field->name; field++) {
        const struct td_json *member = td_json_get(value, td_str_from(field->name));
        struct read_place below = {.above = place, .name = field->name, .depth = place->depth + 1};
        int code = member ? read_check_value(work, &below, member, field) : TD_OK;
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

static int read_check_value(const struct read_work *work, const struct read_place *place,
                            const struct td_json *value, const struct read_field *field)
{
    struct read_field item = {.name = field->name, .is_secret = field->is_secret};
    if (place->depth > TD_KUBECONFIG_DEPTH_MAX) {
        return read_fail(work, place, value, true, "nested too deep");
    }
    if (td_json_is(value, TD_JSON_TYPE_NULL)) {
        return TD_OK;
    }
    switch (field->type) {
    case READ_TEXT:
        return read_check_text(work, place, value, field->is_secret);
    case READ_BOOL:
        return td_json_is(value, TD_JSON_TYPE_BOOL)
                   ? TD_OK
                   : read_fail(work, place, value, false, "must be true or false");
    case READ_BYTES:
        return read_check_bytes(work, place, value);
    case READ_TEXTS:
        return read_check_list(work, place, value, &item);
    case READ_TEXT_MAP:
        return read_check_map(work, place, value, &item);
    case READ_TEXTS_MAP:
        item.type = READ_TEXTS;
        return read_check_map(work, place, value, &item);
    case READ_OBJECT:
        return read_check_object(work, place, value, field->members);
    case READ_LIST:
        item.type = READ_OBJECT;
        item.members = field->members;
        return read_check_list(work, place, value, &item);
    case READ_ANY:
        break;
    }
    return TD_OK;
}

static int read_check_names(const struct read_work *work, const struct td_json *tree,
                            const char *list)
{
    td_auto_string_set names = td_string_set_capped(TD_KUBECONFIG_ENTRIES_MAX);
    const struct td_json *items = td_json_get(tree, td_str_from(list));
    for (const struct td_json *item = td_json_first_item(items); item; item = item->next) {
        td_str name = td_json_text(item, "name");
        int code = td_string_set_add(&names, name);
        if (code == TD_EXISTS) {
            return td_error_set(work->err, TD_INVALID,
                                "%.*s:%u: %s: the name '%.*s' is given twice",
                                TD_STR_ARG(work->path), item->line, list, TD_STR_ARG(name));
        }
        if (code < 0) {
            return td_error_set(work->err, code, "%.*s: %s: too many", TD_STR_ARG(work->path),
                                list);
        }
    }
    return TD_OK;
}

static int read_check_kind(const struct read_work *work, const struct td_json *tree)
{
    td_str kind = td_json_text(tree, "kind");
    td_str version = td_json_text(tree, "apiVersion");
    if (kind.len > 0 && !td_str_equal(kind, TD_STR("Config"))) {
        return td_error_set(work->err, TD_INVALID, "%.*s: kind: '%.*s': must be 'Config'",
                            TD_STR_ARG(work->path), TD_STR_ARG(td_str_cut_utf8(kind, 60)));
    }
    if (version.len > 0 && !td_str_equal(version, TD_STR("v1"))) {
        return td_error_set(work->err, TD_INVALID, "%.*s: apiVersion: '%.*s': must be 'v1'",
                            TD_STR_ARG(work->path), TD_STR_ARG(td_str_cut_utf8(version, 60)));
    }
    return TD_OK;
}

/* The parser quotes what it stumbled over, which may be a part of a secret: leave that out. */
static void read_hide_quoted(struct td_error *err)
{
    static const td_str mark = TD_STR_INIT("'...'");
    if (!err) {
        return;
    }
    char *from = strchr(err->message, '\'');
    char *to = strrchr(err->message, '\'');
    if (from && to > from + mark.len) {
        size_t rest = strlen(to + 1) + 1;
        memmove(from + mark.len, to + 1, rest);
        memcpy(from, mark.ptr, mark.len);
    } else if (from) {
        *from = '\0';
    }
}

static td_str read_folder(struct td_arena *arena, td_str path)
{
    size_t end = path.len;
    while (end > 0 && path.ptr[end - 1] != '/') {
        end--;
    }
    return td_arena_copy_str(arena, td_str_slice(path, 0, end));
}

int td_kubeconfig_read(struct td_arena *arena, td_str path, td_str text,
                       struct td_kubeconfig_file *ret, struct td_error *err)
{
    struct td_error unread = TD_ERROR_INIT;
    struct td_yaml_documents documents;
    err = err ? err : &unread;
    if (text.len > TD_KUBECONFIG_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "%.*s: larger than %zu bytes", TD_STR_ARG(path),
                            TD_KUBECONFIG_BYTES_MAX);
    }
    int code = td_yaml_parse(arena, text, &documents, err);
    if (code < 0) {
        read_hide_quoted(err);
        return td_error_wrap(err, code, "%.*s", TD_STR_ARG(path));
    }
    struct td_json *tree = documents.count > 0 ? documents.items[0] : td_json_new_object(arena);
    struct td_arena scratch; /* decoded base64 that is only checked here */
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
    struct read_work work = {.arena = &scratch, .path = path, .err = err};
    struct read_place top = {.above = NULL};
    struct read_field whole = {.type = READ_OBJECT, .members = config_fields};
    code = read_check_value(&work, &top, tree, &whole);
    static const char *const lists[] = {"clusters", "users", "contexts"};
    for (size_t i = 0; i < TD_COUNT(lists) && code == TD_OK; i++) {
        code = read_check_names(&work, tree, lists[i]);
    }
    code = code == TD_OK ? read_check_kind(&work, tree) : code;
    td_arena_done(&scratch);
    if (code == TD_OK) {
        *ret = (struct td_kubeconfig_file){
            .path = path, .folder = read_folder(arena, path), .tree = tree};
    }
    return code;
}
