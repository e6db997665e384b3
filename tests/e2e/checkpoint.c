/* Checkpoints in exchange with upstream's recommender.
 *
 *     checkpoint make            three days of samples, as the checkpoint that we would write
 * (YAML) checkpoint expect FILE     the recommendation that follows from a checkpoint object
 * (JSON), one line a value
 */
#include <stdio.h>
#include <string.h>

#include "api/vpa/checkpoint.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/yaml/yaml.h"
#include "decide/vertical/recommender/recommend.h"

#define START ((td_time)1772323200 * TD_SECOND) /* 2026-03-01T00:00:00Z */
#define MINUTES (3 * 24 * 60)

static struct td_vertical_config upstream_config(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    config.is_upstream_exact = true;
    return config;
}

/* A load that varies: a peak each hour, a window's memory that grows from day to day. */
static void feed(struct td_aggregate *aggregate, const struct td_vertical_config *config)
{
    struct td_container_state state;
    td_container_state_init(&state);
    struct td_oom_rule rule = td_learn_rule(&aggregate->policy, config);
    for (int64_t minute = 0; minute < MINUTES; minute++) {
        td_time now = START + minute * TD_MINUTE;
        int64_t milli = 200 + minute * 37 % 300 + (minute % 60 == 0 ? 700 : 0);
        int64_t bytes = (400 + minute / 20) << 20;
        if (td_container_cpu(&state, now, milli)) {
            td_aggregate_add_cpu(aggregate, config, now, milli);
        }
        struct td_peak_change change = td_container_memory(&state, &rule, now, bytes);
        td_aggregate_apply(aggregate, config, &change);
    }
}

static int make(struct td_arena *arena)
{
    struct td_vertical_config config = upstream_config();
    struct td_aggregate aggregate;
    td_aggregate_init(&aggregate, &config, START);
    feed(&aggregate, &config);
    struct td_checkpoint saved = {.last_update = td_time_to_instant(START)};
    td_aggregate_save(&aggregate, &saved);
    td_aggregate_done(&aggregate);
    saved.vpa_name = TD_STR("learned");
    saved.container_name = TD_STR("app");
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_yaml_write(td_checkpoint_encode(arena, TD_STR("shop"), &saved), &text);
    return fwrite(text.ptr, 1, text.len, stdout) == text.len ? 0 : 1;
}

static void print_list(struct td_arena *arena, const char *name,
                       const struct td_resource_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        (void)printf("%s %.*s %.*s\n", name, TD_STR_ARG(list->items[i].name),
                     TD_STR_ARG(td_quantity_text(arena, &list->items[i].quantity)));
    }
}

static int expect(struct td_arena *arena, const char *path, struct td_error *err)
{
    td_str text;
    struct td_json *object = NULL;
    struct td_checkpoint checkpoint;
    int code = td_file_read(path, arena, TD_JSON_BYTES_MAX, &text, err);
    code = code < 0 ? code : td_json_parse(arena, text, NULL, &object, err);
    code = code < 0 ? code : td_checkpoint_decode(arena, object, &checkpoint, err);
    if (code < 0) {
        return code;
    }
    struct td_vertical_config config = upstream_config();
    struct td_aggregate aggregate;
    td_aggregate_init(&aggregate, &config, START);
    code = td_aggregate_load(&aggregate, &config, &checkpoint, err);
    if (code == TD_OK) {
        const struct td_subject subject = {.container = checkpoint.container_name,
                                           .aggregate = &aggregate};
        const struct td_recommend_terms terms = {.config = &config,
                                                 .estimator = &td_estimator_upstream};
        struct td_recommendation made;
        td_recommend(arena, &terms, &subject, 1, &made, NULL);
        print_list(arena, "target", &made.containers[0].target);
        print_list(arena, "lowerBound", &made.containers[0].lower_bound);
        print_list(arena, "upperBound", &made.containers[0].upper_bound);
    }
    td_aggregate_done(&aggregate);
    return code;
}

int main(int argc, char **argv)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    if (argc == 2 && strcmp(argv[1], "make") == 0) {
        return make(&arena);
    }
    struct td_error err = TD_ERROR_INIT;
    if (argc != 3 || strcmp(argv[1], "expect") != 0) {
        (void)fputs("usage: checkpoint make | checkpoint expect FILE\n", stderr);
        return 2;
    }
    if (expect(&arena, argv[2], &err) < 0) {
        (void)fprintf(stderr, "checkpoint: %s: %s\n", argv[2], err.message);
        return 1;
    }
    return 0;
}
