/*
 * Files of real repositories. Names tell charts and values, a kustomization tells its patches, and
 * the text tells the rest: what has neither apiVersion nor kind is some other program's file, what
 * cannot be parsed and has "{{" is a template. All of these are counted and passed over; what looks
 * like a manifest and cannot be read is a finding, and the next file is read.
 */
#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "cli/validate/validate_private.h"
#include "kube/meta.h"

struct td_validate_file {
    struct td_validate_file *next;
    struct td_arena arena;
};

/* ---- Paths ---- */

static td_str path_name(td_str path)
{
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '/') {
        start--;
    }
    return td_str_slice(path, start, path.len);
}

/* "a/./b/../c" is "a/c": two ways to write one path become the same. */
static td_str path_normal(struct td_arena *arena, td_str path)
{
    char *made = td_arena_alloc(arena, path.len + 2);
    size_t len = 0;
    size_t floor = 0; /* behind leading ".." and "/" nothing is taken back */
    if (td_str_starts_with(path, TD_STR("/"))) {
        made[len++] = '/';
        floor = len;
    }
    for (size_t at = 0; at < path.len;) {
        size_t end = td_str_find(path, '/', at);
        td_str part = td_str_slice(path, at, end);
        at = end + 1;
        if (part.len == 0 || td_str_equal(part, TD_STR("."))) {
            continue;
        }
        if (td_str_equal(part, TD_STR("..")) && len > floor) {
            while (len > floor && made[len - 1] != '/') {
                len--;
            }
            len -= len > floor ? 1 : 0;
            continue;
        }
        if (len > 0 && made[len - 1] != '/') {
            made[len++] = '/';
        }
        memcpy(made + len, part.ptr, part.len);
        len += part.len;
        floor = td_str_equal(part, TD_STR("..")) ? len : floor;
    }
    return (td_str){.ptr = made, .len = len};
}

/* Does the pattern match the path, a part of it between slashes, or a run of such parts? */
static bool path_matches(const char *path, const char *pattern)
{
    td_auto_buf part = td_buf_capped(TD_PATH_BYTES_MAX);
    td_str whole = td_str_from(path);
    for (size_t from = 0; from < whole.len; from = td_str_find(whole, '/', from) + 1) {
        for (size_t to = from; to < whole.len;) {
            to = td_str_find(whole, '/', to + 1);
            td_buf_reset(&part);
            if (td_buf_append(&part, td_str_slice(whole, from, to)) == TD_OK &&
                td_buf_append_char(&part, 0) == TD_OK && fnmatch(pattern, part.ptr, 0) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool path_is_ignored(const struct td_validate *run, const char *path)
{
    for (size_t i = 0; i < run->ignored.count; i++) {
        if (path_matches(path, run->ignored.items[i])) {
            return true;
        }
    }
    return false;
}

/* Below a folder "templates" that has a Chart.yaml beside it? */
static bool path_is_template(const char *path)
{
    static const td_str folder = TD_STR_INIT("templates/");
    td_auto_buf chart = td_buf_capped(TD_PATH_BYTES_MAX);
    td_str whole = td_str_from(path);
    for (size_t from = 0; from < whole.len; from = td_str_find(whole, '/', from) + 1) {
        td_buf_reset(&chart);
        if (td_str_starts_with(td_str_slice(whole, from, whole.len), folder) &&
            td_buf_append_format(&chart, "%.*sChart.yaml", (int)from, path) == TD_OK &&
            td_file_exists(chart.ptr)) {
            return true;
        }
    }
    return false;
}

/* values.yaml, values-production.yaml, values.schema.json. */
static bool path_is_values(td_str name)
{
    static const td_str word = TD_STR_INIT("values");
    return td_str_starts_with(name, word) && name.len > word.len &&
           memchr(".-_", name.ptr[word.len], 3) != NULL &&
           (!td_str_ends_with(name, TD_STR(".json")) ||
            td_str_equal(name, TD_STR("values.schema.json")));
}

static bool path_is_kustomization(td_str name)
{
    return td_str_equal(name, TD_STR("kustomization.yaml")) ||
           td_str_equal(name, TD_STR("kustomization.yml"));
}

/* What the name alone tells; TD_SKIP_COUNT: nothing. */
static enum td_validate_skip path_skip(const struct td_validate *run, const char *path)
{
    td_str name = path_name(td_str_from(path));
    if (path_is_ignored(run, path)) {
        return TD_SKIP_IGNORED;
    }
    if (td_str_equal(name, TD_STR("Chart.yaml"))) {
        return TD_SKIP_CHART;
    }
    if (path_is_values(name)) {
        return TD_SKIP_VALUES;
    }
    return path_is_template(path) ? TD_SKIP_TEMPLATE : TD_SKIP_COUNT;
}

/* ---- Texts ---- */

static bool text_has(td_str text, td_str word)
{
    return memmem(text.ptr, text.len, word.ptr, word.len) != NULL;
}

/* "FILE:LINE:COLUMN: what" is taken apart for reports; the message keeps a column. */
static void read_fail(struct td_validate *run, td_str file, const char *text)
{
    struct td_problem *problem = td_arena_new(&run->arena, struct td_problem);
    td_str rest = td_arena_copy_str(&run->arena, td_str_from(text));
    int64_t line = 0;
    if (td_str_starts_with(rest, file)) {
        rest = td_str_slice(rest, file.len, rest.len);
        size_t end = td_str_find(rest, ':', 1);
        bool has_line = td_str_to_int64(td_str_slice(rest, 1, end), &line) && line > 0;
        rest = td_str_slice(rest, has_line ? end + 1 : 1, rest.len);
    }
    *problem = (struct td_problem){
        .line = (uint32_t)(line > 0 && line < UINT32_MAX ? line : 0),
        .message = td_str_trim(rest),
        .rule = "unreadable",
    };
    run->unread_count++;
    td_validate_add(run, &(struct validate_finding){.file = file, .problem = problem});
}

/* ---- Documents ---- */

static void patches_add(struct td_validate *run, td_str file, const struct td_json *path)
{
    struct td_arena *arena = &run->arena;
    if (!td_json_is(path, TD_JSON_TYPE_STRING) ||
        td_str_find(path->text, '\n', 0) < path->text.len) {
        return; /* none, or the patch itself */
    }
    td_str folder = td_str_slice(file, 0, file.len - path_name(file).len);
    td_str whole = td_arena_format(arena, "%.*s%.*s", TD_STR_ARG(folder), TD_STR_ARG(path->text));
    td_json_set(arena, run->patches, path_normal(arena, whole), td_json_new_null(arena));
}

static void patches_find(struct td_validate *run, td_str file, const struct td_json *kustomization)
{
    static const char *const lists[] = {"patches",      "patchesStrategicMerge", "patchesJson6902",
                                        "replacements", "transformers",          "configurations"};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        const struct td_json *list = td_json_get(kustomization, td_str_from(lists[i]));
        for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
            const struct td_json *path = td_json_get(item, TD_STR("path"));
            patches_add(run, file, path ? path : item);
        }
    }
}

static bool document_has_braces(const struct td_json *tree)
{
    const struct td_json *metadata = td_json_get(tree, TD_STR("metadata"));
    td_str texts[] = {td_json_text(tree, "apiVersion"), td_json_text(tree, "kind"),
                      td_json_text(metadata, "name"), td_json_text(metadata, "namespace")};
    for (size_t i = 0; i < TD_COUNT(texts); i++) {
        if (text_has(texts[i], TD_STR("{{"))) {
            return true;
        }
    }
    return false;
}

static enum td_validate_skip document_skip(td_str file, const struct td_json *tree)
{
    td_str group = td_group_version_parse(td_json_text(tree, "apiVersion")).group;
    bool is_kustomize = td_str_equal(group, TD_STR("kustomize.config.k8s.io"));
    if (is_kustomize || path_is_kustomization(path_name(file))) {
        return TD_SKIP_KUSTOMIZATION;
    }
    bool has_version = td_json_get(tree, TD_STR("apiVersion")) != NULL;
    bool has_metadata = td_json_get(tree, TD_STR("metadata")) != NULL;
    /* An index of charts has an apiVersion, and is no object either. */
    if (!td_json_get(tree, TD_STR("kind")) && !(has_version && has_metadata)) {
        return TD_SKIP_OTHER;
    }
    return document_has_braces(tree) ? TD_SKIP_TEMPLATE : TD_SKIP_COUNT;
}

/* ---- Files ---- */

static void read_documents(struct td_validate *run, td_str file,
                           const struct td_yaml_documents *documents)
{
    enum td_validate_skip skipped = TD_SKIP_OTHER;
    size_t count_before = run->manifest.count;
    size_t unread_before = run->unread_count;
    for (size_t i = 0; i < documents->count; i++) {
        const struct td_json *tree = documents->items[i];
        struct td_error err = TD_ERROR_INIT;
        enum td_validate_skip skip = document_skip(file, tree);
        if (skip == TD_SKIP_KUSTOMIZATION) {
            patches_find(run, file, tree);
        }
        if (skip != TD_SKIP_COUNT) {
            skipped = skip;
        } else if (td_manifest_add(&run->arena, file, tree, &run->manifest, &err) < 0) {
            read_fail(run, file, err.message);
        }
    }
    if (run->manifest.count > count_before) {
        run->file_count++;
    } else if (run->unread_count == unread_before) {
        run->skipped[skipped]++;
    }
}

/* A text that cannot be parsed. */
static void read_unparsed(struct td_validate *run, td_str file, td_str text, const char *path,
                          const struct td_error *err)
{
    bool is_named = strcmp(path, run->argument) == 0;
    if (text_has(text, TD_STR("{{"))) {
        run->skipped[TD_SKIP_TEMPLATE]++;
    } else if (!is_named && !text_has(text, TD_STR("apiVersion"))) {
        run->skipped[TD_SKIP_OTHER]++;
    } else {
        read_fail(run, file, err->message);
    }
}

/* Into memory of its own, which is kept when the file has objects. */
static void read_text(struct td_validate *run, const char *path, td_str text)
{
    struct td_validate_file *memory = td_alloc_zero(1, sizeof(*memory));
    struct td_error err = TD_ERROR_INIT;
    struct td_yaml_documents documents = {.count = 0};
    size_t count_before = run->manifest.count;
    td_arena_init(&memory->arena, TD_TREE_ARENA_BYTES_MAX);
    td_str file = td_arena_copy_str(&run->arena, td_str_from(path));
    /* Trees of JSON refer to their text. */
    text = td_manifest_is_json(file, text) ? td_arena_copy_str(&memory->arena, text) : text;
    if (td_manifest_parse(&memory->arena, file, text, &documents, &err) < 0) {
        read_unparsed(run, file, text, path, &err);
    } else if (run->tree_bytes + memory->arena.used_bytes > TD_TREE_ARENA_BYTES_MAX) {
        (void)td_error_set(&err, TD_LIMIT,
                           "%s: with the files before it larger than can be held in memory (%zu "
                           "bytes); validate fewer files at once",
                           path, TD_TREE_ARENA_BYTES_MAX);
        read_fail(run, file, err.message);
    } else {
        read_documents(run, file, &documents);
    }
    if (run->manifest.count == count_before) {
        td_arena_done(&memory->arena);
        td_free(memory);
        return;
    }
    run->tree_bytes += memory->arena.used_bytes;
    memory->next = run->files;
    run->files = memory;
}

static int read_file(const char *path, void *context, struct td_error *unused)
{
    struct td_validate *run = context;
    struct td_error err = TD_ERROR_INIT;
    td_str text;
    (void)unused; /* the walk goes on, whatever this file is */
    enum td_validate_skip skip = path_skip(run, path);
    if (skip != TD_SKIP_COUNT) {
        run->skipped[skip]++;
        return TD_OK;
    }
    td_arena_reset(&run->text);
    if (td_file_read(path, &run->text, TD_YAML_BYTES_MAX, &text, &err) < 0) {
        read_fail(run, td_arena_copy_str(&run->arena, td_str_from(path)), err.message);
        return TD_OK;
    }
    read_text(run, path, text);
    return TD_OK;
}

void td_validate_read(struct td_validate *run, const char *path)
{
    struct td_error err = TD_ERROR_INIT;
    run->argument = path;
    int code = td_file_each(path, ".yaml,.yml,.json", read_file, run, &err);
    if (code < 0 && code != TD_NOT_FOUND) { /* a folder without files: no objects are found there */
        read_fail(run, td_str_from(path), err.message);
    }
}

void td_validate_drop_patches(struct td_validate *run)
{
    struct td_manifest *manifest = &run->manifest;
    size_t kept = 0;
    td_str last = TD_STR_EMPTY; /* file that was dropped last */
    for (size_t i = 0; i < manifest->count; i++) {
        td_str file = manifest->items[i].file;
        if (!td_json_get(run->patches, path_normal(&run->arena, file))) {
            manifest->items[kept++] = manifest->items[i];
            continue;
        }
        if (!td_str_equal(last, file)) {
            run->skipped[TD_SKIP_PATCH]++;
            run->file_count--;
            last = file;
        }
    }
    manifest->count = kept;
}

void td_validate_free_files(struct td_validate *run)
{
    while (run->files) {
        struct td_validate_file *file = run->files;
        run->files = file->next;
        td_arena_done(&file->arena);
        td_free(file);
    }
}
