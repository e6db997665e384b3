/*
 * Two lists are read, one after the other: the objects of the shadow, whose absence says that no
 * shadow was ever there, and the VPAs. A row is one resource of one container; containers that only
 * one of the two knows have a dash on the other side.
 */
#include "control/inspect/shadow_table.h"

#include "api/vpa/vpa.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "base/map.h"
#include "control/inspect/recommend_once.h"
#include "kube/client/client.h"
#include "kube/client/verbs.h"
#include "kube/objectkey.h"

#define SHADOW_APART_PERCENT 5 /* about a bucket of the histograms */
#define SHADOW_MEBI (INT64_C(1) << 20)

struct shadow_pods {
    size_t evict;
    size_t resize;
};

/* A VPA and its shadow. */
struct shadow_pair {
    td_str namespace;
    td_str name;
    bool has_shadow;
    struct td_recommendation sides[TD_SHADOW_SIDES];
    struct shadow_pods pods[TD_SHADOW_SIDES];
};

struct td_shadow_table {
    struct td_client *client;
    struct td_client_flow *flow;
    td_str namespace;
    struct td_client_call *call;
    struct td_arena arena;
    struct td_map shadows; /* trees, by "namespace/name" */
    struct shadow_pair *pairs;
    size_t count;
    td_shadow_table_fn fn;
    void *context;
};

/* ---- Reading ---- */

static struct shadow_pods shadow_count(const struct td_json *shadow, const char *side)
{
    const struct td_json *wishes = td_json_member(shadow, side);
    return (struct shadow_pods){
        .evict = td_json_item_count(td_json_member(wishes, "evict")),
        .resize = td_json_item_count(td_json_member(wishes, "resize")),
    };
}

static int shadow_read_pair(struct td_shadow_table *table, const struct td_json *object,
                            struct shadow_pair *ret, struct td_error *err)
{
    struct td_arena *arena = &table->arena;
    struct td_vpa vpa;
    int code = td_vpa_decode(arena, object, &vpa, err);
    if (code != TD_OK) {
        return code;
    }
    td_str key = td_object_key_text(arena, TD_OBJECT_KEY(vpa.meta.namespace, vpa.meta.name));
    const struct td_json *shadow = td_map_get(&table->shadows, key);
    *ret = (struct shadow_pair){.namespace = vpa.meta.namespace,
                                .name = vpa.meta.name,
                                .has_shadow = shadow != NULL,
                                .sides = {[TD_SHADOW_UPSTREAM] = vpa.recommendation},
                                .pods = {[TD_SHADOW_UPSTREAM] = shadow_count(shadow, "upstream"),
                                         [TD_SHADOW_TANDEM] = shadow_count(shadow, "tandem")}};
    const struct td_json *ours = td_json_member(shadow, "recommendation");
    return ours ? td_recommendation_decode(arena, ours, &ret->sides[TD_SHADOW_TANDEM], err) : TD_OK;
}

static int shadow_parse(struct td_shadow_table *table, const struct td_client_reply *reply,
                        const struct td_json **ret, struct td_error *err)
{
    const struct td_json_options options = {.copy_strings = true};
    struct td_json *list = NULL;
    if (reply->code != TD_OK) {
        *err = reply->err;
        return reply->code;
    }
    int code = td_json_parse(&table->arena, reply->body, &options, &list, err);
    *ret = td_json_get(list, TD_STR("items"));
    return code;
}

static void shadow_vpas_read(void *context, const struct td_client_reply *reply)
{
    struct td_shadow_table *table = context;
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *items = NULL;
    table->call = NULL;
    int code = shadow_parse(table, reply, &items, &err);
    size_t count = td_json_item_count(items);
    table->pairs = td_arena_array(&table->arena, struct shadow_pair, count + 1);
    for (const struct td_json *one = td_json_first_item(items); one && code == TD_OK;
         one = one->next) {
        code = shadow_read_pair(table, one, &table->pairs[table->count], &err);
        table->count += code == TD_OK;
    }
    code = code == TD_OK ? td_arena_check(&table->arena, &err) : code;
    table->fn(table->context, code, &err);
}

static int shadow_ask(struct td_shadow_table *table, td_str group, td_str version, td_str plural,
                      td_client_done_fn done)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_api_path path = {
        .group = group, .version = version, .namespace = table->namespace, .plural = plural};
    struct td_client_request request;
    int code = td_verb_get(&arena, &path, &request, NULL);
    if (code == TD_OK) {
        request.flow = table->flow;
        table->call = td_client_send(table->client, &request, done, table);
    }
    return code;
}

static void shadow_shadows_read(void *context, const struct td_client_reply *reply)
{
    struct td_shadow_table *table = context;
    struct td_error err = TD_ERROR_INIT;
    const struct td_json *items = NULL;
    table->call = NULL;
    int code = shadow_parse(table, reply, &items, &err);
    if (reply->code == TD_NOT_FOUND) {
        (void)td_error_set(&err, TD_NOT_FOUND,
                           TD_SHADOW_PLURAL
                           "." TD_SHADOW_GROUP
                           " is not served: nothing was computed yet; 'tandem manifests --shadow' "
                           "installs what does");
    }
    for (const struct td_json *one = td_json_first_item(items); one && code == TD_OK;
         one = one->next) {
        const struct td_json *meta = td_json_get(one, TD_STR("metadata"));
        td_str key =
            td_object_key_text(&table->arena, TD_OBJECT_KEY(td_json_text(meta, "namespace"),
                                                            td_json_text(meta, "name")));
        code = td_map_put(&table->shadows, key, (void *)(uintptr_t)one);
    }
    if (code == TD_OK) {
        code = shadow_ask(table, TD_STR("autoscaling.k8s.io"), TD_STR("v1"),
                          TD_STR("verticalpodautoscalers"), shadow_vpas_read);
    }
    if (code != TD_OK) {
        table->fn(table->context, code, &err);
    }
}

struct td_shadow_table *td_shadow_table_start(struct td_client *client, struct td_client_flow *flow,
                                              td_str namespace, td_shadow_table_fn fn,
                                              void *context)
{
    struct td_shadow_table *table = td_alloc_zero(1, sizeof(*table));
    table->client = client;
    table->flow = flow;
    table->fn = fn;
    table->context = context;
    td_arena_init(&table->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&table->shadows, TD_CACHE_OBJECTS_MAX);
    table->namespace = td_arena_copy_str(&table->arena, namespace);
    if (shadow_ask(table, TD_STR(TD_SHADOW_GROUP), TD_STR(TD_SHADOW_VERSION),
                   TD_STR(TD_SHADOW_PLURAL), shadow_shadows_read) != TD_OK) {
        td_shadow_table_free(table);
        return NULL;
    }
    return table;
}

void td_shadow_table_free(struct td_shadow_table *table)
{
    if (table) {
        td_client_cancel(table->call);
        td_map_done(&table->shadows);
        td_arena_done(&table->arena);
        td_free(table);
    }
}

/* ---- Rows ---- */

static const struct td_container_recommendation *
shadow_container(const struct shadow_pair *pair, enum td_shadow_side side, td_str name)
{
    const struct td_recommendation *from = &pair->sides[side];
    for (size_t i = 0; i < from->container_count; i++) {
        if (td_str_equal(from->containers[i].container_name, name)) {
            return &from->containers[i];
        }
    }
    return NULL;
}

typedef void (*shadow_row_fn)(void *context, const struct shadow_pair *pair, td_str container,
                              const struct td_container_recommendation *sides[TD_SHADOW_SIDES]);

/* The containers of upstream's recommendation, then those that only ours has. */
static void shadow_walk(const struct shadow_pair *pair, shadow_row_fn fn, void *context)
{
    for (size_t side = 0; side < TD_SHADOW_SIDES; side++) {
        const struct td_recommendation *from = &pair->sides[side];
        for (size_t i = 0; i < from->container_count; i++) {
            td_str name = from->containers[i].container_name;
            const struct td_container_recommendation *sides[TD_SHADOW_SIDES] = {
                shadow_container(pair, TD_SHADOW_UPSTREAM, name),
                shadow_container(pair, TD_SHADOW_TANDEM, name)};
            if (side == TD_SHADOW_UPSTREAM || !sides[TD_SHADOW_UPSTREAM]) {
                fn(context, pair, name, sides);
            }
        }
    }
}

static td_str shadow_amount(struct td_arena *arena, const struct td_resource_list *list,
                            enum td_right_resource resource)
{
    int64_t amount;
    if (!td_right_amount(list, resource, &amount)) {
        return TD_STR("-");
    }
    int64_t mebis = (amount + SHADOW_MEBI - 1) / SHADOW_MEBI;
    return resource == TD_RIGHT_CPU ? td_arena_format(arena, "%lldm", (long long)amount)
                                    : td_arena_format(arena, "%lldMi", (long long)mebis);
}

/* How far ours is from upstream's, in percent of it; false: one of them has none. */
static bool shadow_apart(const struct td_container_recommendation *sides[TD_SHADOW_SIDES],
                         enum td_right_resource resource, double *ret)
{
    int64_t theirs;
    int64_t ours;
    if (!sides[TD_SHADOW_UPSTREAM] || !sides[TD_SHADOW_TANDEM] ||
        !td_right_amount(&sides[TD_SHADOW_UPSTREAM]->target, resource, &theirs) ||
        !td_right_amount(&sides[TD_SHADOW_TANDEM]->target, resource, &ours) || theirs == 0) {
        return false;
    }
    *ret = 100.0 * ((double)ours - (double)theirs) / (double)theirs;
    return true;
}

struct shadow_print {
    struct td_arena *arena;
    struct td_buf *out;
    const struct shadow_pair *last; /* the VPA of the row before */
};

/* "evict 1, resize 2", in the first row of a VPA. */
static td_str shadow_does(struct td_arena *arena, const struct shadow_pods *pods)
{
    td_str evict =
        pods->evict > 0 ? td_arena_format(arena, "evict %zu", pods->evict) : TD_STR_EMPTY;
    return pods->resize > 0 ? td_arena_format(arena, "%.*s%sresize %zu", TD_STR_ARG(evict),
                                              evict.len > 0 ? ", " : "", pods->resize)
           : evict.len > 0  ? evict
                            : TD_STR("-");
}

static td_str shadow_bounds(struct td_arena *arena, const struct td_container_recommendation *side,
                            enum td_right_resource resource)
{
    return side ? td_arena_format(arena, "%.*s..%.*s",
                                  TD_STR_ARG(shadow_amount(arena, &side->lower_bound, resource)),
                                  TD_STR_ARG(shadow_amount(arena, &side->upper_bound, resource)))
                : TD_STR("-");
}

static td_str shadow_target(struct td_arena *arena, const struct td_container_recommendation *side,
                            enum td_right_resource resource)
{
    return side ? shadow_amount(arena, &side->target, resource) : TD_STR("-");
}

static void shadow_print_row(void *context, const struct shadow_pair *pair, td_str container,
                             const struct td_container_recommendation *sides[TD_SHADOW_SIDES])
{
    struct shadow_print *print = context;
    struct td_arena *arena = print->arena;
    const struct td_container_recommendation *theirs = sides[TD_SHADOW_UPSTREAM];
    const struct td_container_recommendation *ours = sides[TD_SHADOW_TANDEM];
    for (size_t i = 0; i < TD_RIGHT_COUNT; i++) {
        enum td_right_resource resource = (enum td_right_resource)i;
        double apart = 0;
        bool is_first = print->last != pair;
        bool has_both = shadow_apart(sides, resource, &apart);
        (void)td_buf_append_format(
            print->out, "%.*s/%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\n",
            TD_STR_ARG(pair->namespace), TD_STR_ARG(pair->name), TD_STR_ARG(container),
            TD_STR_ARG(td_right_names[i]), TD_STR_ARG(shadow_target(arena, theirs, resource)),
            TD_STR_ARG(shadow_target(arena, ours, resource)),
            TD_STR_ARG(has_both ? td_arena_format(arena, "%+.0f%%", apart) : TD_STR("-")),
            TD_STR_ARG(shadow_bounds(arena, theirs, resource)),
            TD_STR_ARG(shadow_bounds(arena, ours, resource)),
            TD_STR_ARG(is_first ? shadow_does(arena, &pair->pods[TD_SHADOW_UPSTREAM])
                                : TD_STR_EMPTY),
            TD_STR_ARG(is_first ? shadow_does(arena, &pair->pods[TD_SHADOW_TANDEM])
                                : TD_STR_EMPTY));
        print->last = pair;
    }
}

struct shadow_alike {
    size_t values; /* that both have */
    size_t alike;
};

static void shadow_count_alike(void *context, const struct shadow_pair *pair, td_str container,
                               const struct td_container_recommendation *sides[TD_SHADOW_SIDES])
{
    struct shadow_alike *sum = context;
    (void)pair;
    (void)container;
    for (size_t i = 0; i < TD_RIGHT_COUNT; i++) {
        double apart = 0;
        bool has_both = shadow_apart(sides, (enum td_right_resource)i, &apart);
        bool is_alike = apart <= SHADOW_APART_PERCENT && apart >= -SHADOW_APART_PERCENT;
        sum->values += has_both;
        sum->alike += has_both && is_alike;
    }
}

void td_shadow_table_sum(struct td_shadow_table *table, struct td_buf *out)
{
    struct shadow_alike targets = {0};
    struct shadow_pods sums[TD_SHADOW_SIDES] = {{0}};
    size_t without = 0;
    for (size_t i = 0; i < table->count; i++) {
        shadow_walk(&table->pairs[i], shadow_count_alike, &targets);
        for (size_t side = 0; side < TD_SHADOW_SIDES; side++) {
            sums[side].evict += table->pairs[i].pods[side].evict;
            sums[side].resize += table->pairs[i].pods[side].resize;
        }
        without += !table->pairs[i].has_shadow;
    }
    (void)td_buf_append_format(out, "%zu of %zu targets are within %d %% of upstream's.\n",
                               targets.alike, targets.values, SHADOW_APART_PERCENT);
    (void)td_buf_append_format(
        out,
        "The next pass of an updater by upstream's recommendations evicts %zu and resizes %zu "
        "pods, by Tandem's %zu and %zu.\n",
        sums[TD_SHADOW_UPSTREAM].evict, sums[TD_SHADOW_UPSTREAM].resize,
        sums[TD_SHADOW_TANDEM].evict, sums[TD_SHADOW_TANDEM].resize);
    if (without > 0) {
        (void)td_buf_append_format(out,
                                   "%zu VPA%s no shadow yet: look at the log of 'tandem run "
                                   "--shadow'.\n",
                                   without, without == 1 ? " has" : "s have");
    }
}

void td_shadow_table_write(struct td_shadow_table *table, struct td_buf *out)
{
    struct shadow_print print = {.arena = &table->arena, .out = out};
    (void)td_buf_append(out, TD_STR("VPA\tCONTAINER\tRESOURCE\tUPSTREAM\tTANDEM\tAPART\tUPSTREAM "
                                    "BOUNDS\tTANDEM BOUNDS\tUPSTREAM DOES\tTANDEM DOES\n"));
    for (size_t i = 0; i < table->count; i++) {
        shadow_walk(&table->pairs[i], shadow_print_row, &print);
    }
    td_shadow_table_sum(table, out);
}

/* ---- For others ---- */

struct shadow_visit {
    td_shadow_row_fn fn;
    void *context;
    const struct shadow_pair *last;
};

static void shadow_visit_row(void *context, const struct shadow_pair *pair, td_str container,
                             const struct td_container_recommendation *sides[TD_SHADOW_SIDES])
{
    struct shadow_visit *visit = context;
    struct td_shadow_row row = {.namespace = pair->namespace,
                                .vpa = pair->name,
                                .container = container,
                                .is_first = visit->last != pair};
    for (size_t side = 0; side < TD_SHADOW_SIDES; side++) {
        row.sides[side].recommendation = sides[side];
        row.sides[side].evicts = pair->pods[side].evict;
        row.sides[side].resizes = pair->pods[side].resize;
    }
    visit->last = pair;
    visit->fn(visit->context, &row);
}

size_t td_shadow_table_count(const struct td_shadow_table *table)
{
    return table->count;
}

void td_shadow_table_walk(const struct td_shadow_table *table, td_shadow_row_fn fn, void *context)
{
    struct shadow_visit visit = {.fn = fn, .context = context};
    for (size_t i = 0; i < table->count; i++) {
        shadow_walk(&table->pairs[i], shadow_visit_row, &visit);
    }
}

/* ---- As data ---- */

struct shadow_data {
    struct td_arena *arena;
    struct td_json *containers;
};

static void shadow_add_container(void *context, const struct shadow_pair *pair, td_str container,
                                 const struct td_container_recommendation *sides[TD_SHADOW_SIDES])
{
    static const char *const names[TD_SHADOW_SIDES] = {"upstream", "tandem"};
    struct shadow_data *data = context;
    struct td_json *item = td_json_new_object(data->arena);
    (void)pair;
    td_json_set_str(data->arena, item, TD_STR("container"), container);
    for (size_t side = 0; side < TD_SHADOW_SIDES; side++) {
        if (sides[side]) {
            td_recommendation_put_lists(
                data->arena, td_json_ensure_object(data->arena, item, td_str_from(names[side])),
                sides[side], true);
        }
    }
    td_json_append(data->containers, item);
}

struct td_json *td_shadow_table_json(struct td_shadow_table *table)
{
    struct td_arena *arena = &table->arena;
    struct td_json *report = td_json_new_object(arena);
    struct td_json *list = td_json_ensure_array(arena, report, TD_STR("vpas"));
    for (size_t i = 0; i < table->count; i++) {
        const struct shadow_pair *pair = &table->pairs[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("namespace"), pair->namespace);
        td_json_set_str(arena, item, TD_STR("name"), pair->name);
        td_json_set_bool(arena, item, TD_STR("hasShadow"), pair->has_shadow);
        struct shadow_data data = {
            .arena = arena, .containers = td_json_ensure_array(arena, item, TD_STR("containers"))};
        shadow_walk(pair, shadow_add_container, &data);
        const struct {
            const char *name;
            size_t value;
        } sums[] = {{"upstreamEvicts", pair->pods[TD_SHADOW_UPSTREAM].evict},
                    {"upstreamResizes", pair->pods[TD_SHADOW_UPSTREAM].resize},
                    {"tandemEvicts", pair->pods[TD_SHADOW_TANDEM].evict},
                    {"tandemResizes", pair->pods[TD_SHADOW_TANDEM].resize}};
        for (size_t sum = 0; sum < TD_COUNT(sums); sum++) {
            td_json_set_int64(arena, item, td_str_from(sums[sum].name), (int64_t)sums[sum].value);
        }
        td_json_append(list, item);
    }
    return report;
}
