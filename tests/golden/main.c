/* Runs every vector file it is given, or finds in a folder, through the topic it names.
 *
 *     golden [--known-only] [--skips FILE] [-v] PATH...
 *
 * Prints one line a topic and a total; exits 1 on a failed case, an unknown topic (unless
 * --known-only), a file that cannot be read, or when there was nothing to run. */
#include "golden/golden.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)256 << 20)
#define CASE_ARENA_BYTES_MAX ((size_t)512 << 20)
#define PATHS_MAX 4096
#define SHOWN_FAILURES_MAX 5

static const struct golden_topic *const topic_tables[] = {
    golden_kube_values,   golden_kube_selectors, golden_kube_patches,   golden_kube_apply,
    golden_hpa_api,       golden_hpa_replicas,   golden_hpa_behavior,   golden_hpa_scenario,
    golden_hpa_selection, golden_vpa_learn,      golden_vpa_feed,       golden_vpa_pods,
    golden_vpa_patches,   golden_adaptive,       golden_vpa_api,        golden_vpa_owners,
    golden_vpa_updater,   golden_vpa_partition,  golden_seeds_podlevel, golden_hvpa_api,
    golden_hvpa_decide,   golden_vpa_pass,       golden_track,
};

struct run {
    bool known_only;
    bool is_verbose;
    struct td_arena arena; /* of the skip list */
    struct td_json *skips; /* object: "topic\tcase" */
    size_t passed;
    size_t failed;
    size_t skipped;
    size_t broken; /* files and topics that could not be run */
    char *paths[PATHS_MAX];
    size_t path_count;
};

static const struct golden_topic *find_topic(td_str name)
{
    for (size_t t = 0; t < sizeof(topic_tables) / sizeof(topic_tables[0]); t++) {
        for (const struct golden_topic *topic = topic_tables[t]; topic->name; topic++) {
            if (td_str_equal(td_str_from(topic->name), name)) {
                return topic;
            }
        }
    }
    return NULL;
}

static int read_file(const char *path, struct td_buf *out)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return -1;
    }
    size_t got = 0;
    do {
        char *place = td_buf_reserve(out, 1 << 16);
        got = place ? fread(place, 1, 1 << 16, file) : 0;
        if (got > 0) {
            td_buf_commit(out, got);
        }
    } while (got > 0);
    (void)fclose(file); /* only read from */
    return out->is_full ? -1 : 0;
}

static void print_value(const char *label, const struct td_json *value)
{
    td_auto_buf text;
    td_buf_init(&text, FILE_BYTES_MAX);
    if (value) {
        td_json_write(value, &(struct td_json_format){.indent = 0}, &text);
    }
    (void)fprintf(stderr, "    %-9s %.*s\n", label, TD_STR_ARG(td_buf_str(&text)));
}

/* "slotTop: missing": the part before the colon. */
static td_str named_field(td_str error)
{
    return td_str_slice(error, 0, td_str_find(error, ':', 0));
}

static bool is_right_error(const struct golden_topic *topic, const struct td_json *expected,
                           const char *message)
{
    if (!td_json_is(expected, TD_JSON_TYPE_STRING) || message[0] == '\0') {
        return expected && message[0] != '\0';
    }
    return !topic->names_field ||
           td_str_equal(named_field(expected->text), named_field(td_str_from(message)));
}

/* One case: true when the topic agrees with it. */
static bool run_case(const struct golden_topic *topic, const struct td_json *item, bool is_shown)
{
    td_auto_arena arena;
    td_arena_init(&arena, CASE_ARENA_BYTES_MAX);
    const struct td_json *expected = td_json_get(item, TD_STR("out"));
    const struct td_json *expected_error = td_json_get(item, TD_STR("error"));
    struct td_json *got = NULL;
    struct td_error err = TD_ERROR_INIT;
    int code = topic->run(&arena, td_json_get(item, TD_STR("in")), &got, &err);
    bool is_right;
    if (code < 0) {
        is_right = !expected && is_right_error(topic, expected_error, err.message);
    } else {
        is_right = expected && got &&
                   (topic->is_same ? topic->is_same(expected, got) : td_json_equal(expected, got));
    }
    if (!is_right && is_shown) {
        (void)fprintf(stderr, "  %s: %.*s\n", topic->name,
                      TD_STR_ARG(td_json_get_str(item, TD_STR("name"), TD_STR("?"))));
        print_value("in", td_json_get(item, TD_STR("in")));
        print_value(expected ? "expected" : "error", expected ? expected : expected_error);
        if (code < 0) {
            (void)fprintf(stderr, "    %-9s %s\n", "refused", err.message);
        } else {
            print_value("got", got);
        }
    }
    return is_right;
}

static bool is_skipped(const struct run *run, const char *topic, td_str name)
{
    char key[1024];
    (void)snprintf(key, sizeof(key), "%s\t%.*s", topic, TD_STR_ARG(name));
    return td_json_get(run->skips, td_str_from(key)) != NULL;
}

static void run_topic(struct run *run, const struct golden_topic *topic,
                      const struct td_json *cases)
{
    size_t passed = 0;
    size_t failed = 0;
    size_t skipped = 0;
    for (const struct td_json *item = td_json_first_child(cases); item; item = item->next) {
        if (is_skipped(run, topic->name, td_json_get_str(item, TD_STR("name"), TD_STR_EMPTY))) {
            skipped++;
        } else if (run_case(topic, item, run->is_verbose || failed < SHOWN_FAILURES_MAX)) {
            passed++;
        } else {
            failed++;
        }
    }
    (void)printf("%s passed=%zu failed=%zu skipped=%zu\n", topic->name, passed, failed, skipped);
    run->passed += passed;
    run->failed += failed;
    run->skipped += skipped;
}

static void run_file(struct run *run, const char *path)
{
    td_auto_buf text;
    td_buf_init(&text, FILE_BYTES_MAX);
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    if (read_file(path, &text) != 0) {
        (void)fprintf(stderr, "golden: %s: cannot be read\n", path);
        run->broken++;
        return;
    }
    struct td_json *file = NULL;
    struct td_error err = TD_ERROR_INIT;
    const struct td_json_options options = {.bytes_max = FILE_BYTES_MAX};
    if (td_json_parse(&arena, td_buf_str(&text), &options, &file, &err) < 0) {
        (void)fprintf(stderr, "golden: %s: %s\n", path, err.message);
        run->broken++;
        return;
    }
    td_str name = td_json_get_str(file, TD_STR("topic"), TD_STR_EMPTY);
    const struct td_json *cases = td_json_get(file, TD_STR("cases"));
    const struct golden_topic *topic = find_topic(name);
    if (!td_json_is(cases, TD_JSON_TYPE_ARRAY) || cases->count == 0) {
        (void)fprintf(stderr, "golden: %s: no cases\n", path);
        run->broken++;
    } else if (topic) {
        run_topic(run, topic, cases);
    } else if (!run->known_only) {
        (void)fprintf(stderr, "golden: %s: unknown topic '%.*s'\n", path, TD_STR_ARG(name));
        run->broken++;
    }
}

static void add_path(struct run *run, const char *path, int depth);

static void add_folder(struct run *run, const char *path, int depth)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            char child[4096];
            (void)snprintf(child, sizeof(child), "%s/%s", path, entries[i]->d_name);
            add_path(run, child, depth + 1);
        }
        free(entries[i]);
    }
    free(entries);
}

static void add_path(struct run *run, const char *path, int depth)
{
    struct stat status;
    size_t len = strlen(path);
    if (stat(path, &status) != 0) {
        (void)fprintf(stderr, "golden: %s: not found\n", path);
        run->broken++;
    } else if (S_ISDIR(status.st_mode) && depth < 8) {
        add_folder(run, path, depth);
    } else if (run->path_count < PATHS_MAX &&
               (depth == 0 || (len > 5 && strcmp(path + len - 5, ".json") == 0))) {
        run->paths[run->path_count++] = strdup(path);
    }
}

/* Lines "TOPIC<tab>CASE<tab>REASON"; the reason must be there. */
static bool read_skips(struct run *run, const char *path)
{
    td_auto_buf text;
    td_buf_init(&text, FILE_BYTES_MAX);
    if (read_file(path, &text) != 0) {
        (void)fprintf(stderr, "golden: %s: cannot be read\n", path);
        return false;
    }
    td_str rest = td_buf_str(&text);
    while (rest.len > 0) {
        size_t end = td_str_find(rest, '\n', 0);
        td_str line = td_str_slice(rest, 0, end);
        rest = td_str_slice(rest, end + 1, rest.len);
        size_t tab = td_str_find(line, '\t', 0);
        size_t second = td_str_find(line, '\t', tab + 1);
        if (line.len == 0 || line.ptr[0] == '#') {
            continue;
        }
        if (second + 1 >= line.len) {
            (void)fprintf(stderr, "golden: %s: '%.*s' is not TOPIC<tab>CASE<tab>REASON\n", path,
                          TD_STR_ARG(line));
            return false;
        }
        td_str key = td_arena_copy_str(&run->arena, td_str_slice(line, 0, second));
        td_json_set(&run->arena, run->skips, key, td_json_new_bool(&run->arena, true));
    }
    return true;
}

static bool read_arguments(struct run *run, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--known-only") == 0) {
            run->known_only = true;
        } else if (strcmp(argv[i], "-v") == 0) {
            run->is_verbose = true;
        } else if (strcmp(argv[i], "--skips") == 0 && i + 1 < argc) {
            if (!read_skips(run, argv[++i])) {
                return false;
            }
        } else if (argv[i][0] == '-') {
            (void)fprintf(stderr, "usage: golden [--known-only] [--skips FILE] [-v] PATH...\n");
            return false;
        } else {
            add_path(run, argv[i], 0);
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct run run;
    td_arena_init(&run.arena, SIZE_MAX);
    run.skips = td_json_new_object(&run.arena);
    bool is_ready = read_arguments(&run, argc, argv);
    for (size_t i = 0; i < run.path_count; i++) {
        if (is_ready) {
            run_file(&run, run.paths[i]);
        }
        free(run.paths[i]);
    }
    td_arena_done(&run.arena);
    if (!is_ready) {
        return 2;
    }
    (void)printf("%zu passed, %zu failed, %zu skipped\n", run.passed, run.failed + run.broken,
                 run.skipped);
    return run.failed + run.broken == 0 && run.passed > 0 ? 0 : 1;
}
