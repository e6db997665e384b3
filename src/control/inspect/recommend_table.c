/*
 * Right sizes as rows, as a table and as data. A row is filled from the status of its VPA: with too
 * little data it has no target, and a target that is a floor is marked as one, so that tables,
 * totals and manifests can treat it as what it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/limits.h"
#include "control/inspect/recommend_once.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/resourcelist.h"

#define TABLE_COLUMNS 6
#define TABLE_CELL_BYTES 128
#define TABLE_WORTH_PERCENT 5 /* a smaller change is none */
#define TABLE_MEBI (INT64_C(1) << 20)

/* ---- Rows ---- */

const td_str td_right_names[TD_RIGHT_COUNT] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};

struct td_right_limits td_right_limits_default(void)
{
    return (struct td_right_limits){
        .samples_min = 100,
        .history_min = 6 * TD_HOUR,
        .cpu_min_milli = 10,
        .memory_min_bytes = 64 * TABLE_MEBI,
    };
}

bool td_right_amount(const struct td_resource_list *list, enum td_right_resource resource,
                     int64_t *ret)
{
    const struct td_quantity *quantity = td_resource_list_get(list, td_right_names[resource]);
    if (!quantity) {
        return false;
    }
    *ret = resource == TD_RIGHT_CPU ? td_quantity_milli(quantity) : td_quantity_value(quantity);
    return true;
}

/* A container that no autoscaler sizes has the floors of the command: what it used decides, not
 * what a controller would raise it to. */
static void table_floor(struct td_arena *arena, struct td_right_size *row,
                        enum td_right_resource resource, const struct td_bound_account *target,
                        int64_t floor)
{
    bool is_cpu = resource == TD_RIGHT_CPU;
    int64_t should = 0;
    int64_t now = 0;
    if (!td_right_amount(&row->should, resource, &should)) {
        return;
    }
    int64_t want = target->is_floor ? target->with_margin : should;
    /* An estimator with a floor of its own may not say what it would be without. */
    row->is_floor[resource] = want < floor || (target->is_floor && want >= should);
    row->is_kept[resource] =
        want < floor && td_right_amount(&row->now, resource, &now) && now >= want && now <= floor;
    int64_t amount = want < floor ? floor : want;
    if (amount != should) {
        struct td_quantity quantity = is_cpu ? td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI)
                                             : td_quantity_new(amount, TD_QUANTITY_BINARY_SI);
        td_resource_list_set(arena, &row->should, td_right_names[resource], &quantity);
    }
}

void td_right_size_fill(struct td_arena *arena, struct td_right_size *row,
                        const struct td_vpa_status *status, const struct td_right_limits *limits)
{
    for (size_t i = 0; i < status->recommendation.container_count && status->accounts; i++) {
        const struct td_container_recommendation *r = &status->recommendation.containers[i];
        const struct td_account *account = &status->accounts[i];
        if (!td_str_equal(r->container_name, row->container)) {
            continue;
        }
        row->samples = account->samples;
        row->ooms = account->ooms;
        row->confidence = td_account_confidence(account);
        row->history = account->samples > 0 ? td_time_from_instant(account->last_sample) -
                                                  td_time_from_instant(account->first_sample)
                                            : 0;
        if (row->samples < limits->samples_min && row->history < limits->history_min) {
            continue;
        }
        row->should = td_resource_list_copy(arena, &r->target);
        if (row->by.len > 0) {
            row->is_floor[TD_RIGHT_CPU] = account->cpu.target.is_floor;
            row->is_floor[TD_RIGHT_MEMORY] = account->memory.target.is_floor;
        } else {
            table_floor(arena, row, TD_RIGHT_CPU, &account->cpu.target, limits->cpu_min_milli);
            table_floor(arena, row, TD_RIGHT_MEMORY, &account->memory.target,
                        limits->memory_min_bytes);
        }
    }
}

static int table_compare(const void *a, const void *b)
{
    const struct td_right_size *x = a;
    const struct td_right_size *y = b;
    const td_str *const parts[][2] = {
        {&x->namespace, &y->namespace}, {&x->kind, &y->kind},
        {&x->workload, &y->workload},   {&x->by, &y->by},
        {&x->container, &y->container},
    };
    for (size_t i = 0; i < TD_COUNT(parts); i++) {
        int order = td_str_compare(*parts[i][0], *parts[i][1]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

void td_right_sizes_sort(struct td_right_size *items, size_t count)
{
    if (count > 0) {
        qsort(items, count, sizeof(*items), table_compare);
    }
}

/* ---- Amounts ---- */

static void table_write(double amount, enum td_right_resource resource, struct td_buf *out)
{
    td_amount_write_short(amount, resource == TD_RIGHT_MEMORY, out);
}

/* "2 → 430m"; "none → ≤ 10m (floor)"; "?" when nothing is known. */
static void table_change(const struct td_right_size *row, enum td_right_resource resource,
                         struct td_buf *out)
{
    int64_t now = 0;
    int64_t should = 0;
    if (td_right_amount(&row->now, resource, &now)) {
        table_write((double)now, resource, out);
    } else {
        (void)td_buf_append(out, row->is_pod_level ? TD_STR("pod's") : TD_STR("none"));
    }
    bool is_floor = row->is_floor[resource];
    (void)td_buf_append_format(out, " → %s", is_floor ? "≤ " : "");
    if (td_right_amount(&row->should, resource, &should)) {
        table_write((double)should, resource, out);
    } else {
        (void)td_buf_append_char(out, '?');
    }
    (void)td_buf_append(out, is_floor ? TD_STR(" (floor)") : TD_STR_EMPTY);
}

static bool table_is_worth(int64_t now, int64_t should)
{
    double change = (double)should - (double)now;
    return change * 100 > (double)now * TABLE_WORTH_PERCENT ||
           -change * 100 > (double)now * TABLE_WORTH_PERCENT;
}

/* Is it a need, or a saving, that all pods have? A floor above the request is neither. */
static bool table_matters(const struct td_right_size *row, enum td_right_resource resource,
                          int64_t now, int64_t should)
{
    return !row->is_pod_level && table_is_worth(now, should) &&
           !(row->is_floor[resource] && should > now);
}

/* What all pods of it would save or need; an OOM first. */
static void table_verdict(const struct td_right_size *row, struct td_buf *out)
{
    if (row->ooms > 0) {
        (void)td_buf_append_format(out, "! out of memory %lldx, ", (long long)row->ooms);
    }
    for (enum td_right_resource resource = 0; resource < TD_RIGHT_COUNT; resource++) {
        int64_t now = 0;
        int64_t should = 0;
        bool has_now = td_right_amount(&row->now, resource, &now);
        bool is_known = td_right_amount(&row->should, resource, &should);
        if (is_known && !has_now && !row->is_pod_level) {
            (void)td_buf_append_format(out, "no %.*s request, ",
                                       TD_STR_ARG(td_right_names[resource]));
        } else if (is_known && has_now && table_matters(row, resource, now, should)) {
            double pods = row->pods > 0 ? (double)row->pods : 1; /* between two runs: of one */
            double change = ((double)should - (double)now) * pods;
            (void)td_buf_append(out, change > 0 ? TD_STR("+") : TD_STR("−"));
            table_write(change > 0 ? change : -change, resource, out);
            (void)td_buf_append(out, resource == TD_RIGHT_CPU ? TD_STR(" cpu, ") : TD_STR(", "));
        }
    }
    if (row->is_pod_level) {
        (void)td_buf_append(out, TD_STR("pod-level resources, "));
    }
    if (row->should.count == 0) {
        (void)td_buf_append_format(out, "not enough data (%lld sample%s), ",
                                   (long long)row->samples, TD_PLURAL(row->samples));
    }
    out->len -= out->len > 0 ? 2 : 0; /* the last ", " */
}

/* ---- The table ---- */

static td_str table_short(td_str kind)
{
    static const char *const names[][2] = {
        {"Deployment", "deploy"}, {"StatefulSet", "sts"}, {"DaemonSet", "ds"},
        {"ReplicaSet", "rs"},     {"CronJob", "cj"},      {"ReplicationController", "rc"},
        {"Job", "job"},
    };
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        if (td_str_equal(kind, td_str_from(names[i][0]))) {
            return td_str_from(names[i][1]);
        }
    }
    return kind;
}

static void table_cells(const struct td_right_size *row,
                        char cells[TABLE_COLUMNS][TABLE_CELL_BYTES])
{
    (void)snprintf(cells[0], TABLE_CELL_BYTES, "%.*s", TD_STR_ARG(row->namespace));
    (void)snprintf(cells[1], TABLE_CELL_BYTES, "%.*s/%.*s%s%zu", TD_STR_ARG(table_short(row->kind)),
                   TD_STR_ARG(row->workload), " x", row->pods);
    (void)snprintf(cells[2], TABLE_CELL_BYTES, "%.*s", TD_STR_ARG(row->container));
    (void)snprintf(cells[3], TABLE_CELL_BYTES, "%.*s",
                   TD_STR_ARG(row->by.len > 0 ? row->by : TD_STR("-")));
    for (enum td_right_resource resource = 0; resource < TD_RIGHT_COUNT; resource++) {
        td_auto_buf text = td_buf_capped(TABLE_CELL_BYTES - 1);
        table_change(row, resource, &text);
        (void)snprintf(cells[4 + resource], TABLE_CELL_BYTES, "%.*s",
                       TD_STR_ARG(td_buf_str(&text)));
    }
}

static void table_line(char cells[TABLE_COLUMNS][TABLE_CELL_BYTES], td_str last, struct td_buf *out)
{
    for (size_t i = 0; i < TABLE_COLUMNS; i++) {
        (void)td_buf_append_format(out, "%s\t", cells[i]);
    }
    (void)td_buf_append_format(out, "%.*s\n", TD_STR_ARG(last));
}

struct td_right_sum td_right_sizes_sum(const struct td_right_sizes *sizes,
                                       enum td_right_resource resource)
{
    struct td_right_sum sum = {.before = 0};
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_right_size *row = &sizes->items[i];
        int64_t now = 0;
        int64_t should = 0;
        if (row->should.count == 0) {
            continue;
        }
        (void)td_right_amount(&row->now, resource, &now); /* none counts nothing */
        if (row->is_pod_level || !td_right_amount(&row->should, resource, &should)) {
            should = now;
        }
        sum.before += (double)now * (double)row->pods;
        *(row->is_floor[resource] ? &sum.floors : &sum.after) += (double)should * (double)row->pods;
    }
    return sum;
}

static void table_total(const struct td_right_sizes *sizes, enum td_right_resource resource,
                        struct td_buf *out)
{
    struct td_right_sum sum = td_right_sizes_sum(sizes, resource);
    table_write(sum.before, resource, out);
    (void)td_buf_append(out, TD_STR(" → "));
    table_write(sum.after, resource, out);
    (void)td_buf_append_format(out, " %.*s", TD_STR_ARG(td_right_names[resource]));
    if (sum.floors > 0) {
        (void)td_buf_append(out, TD_STR(" (and floors of "));
        table_write(sum.floors, resource, out);
        (void)td_buf_append_char(out, ')');
    }
}

static size_t table_at_risk(const struct td_right_sizes *sizes)
{
    size_t count = 0;
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_right_size *row = &sizes->items[i];
        int64_t now = 0;
        int64_t should = 0;
        (void)td_right_amount(&row->now, TD_RIGHT_MEMORY, &now);
        bool is_known = td_right_amount(&row->should, TD_RIGHT_MEMORY, &should);
        count += row->ooms > 0 ||
                 (is_known && should > now && table_matters(row, TD_RIGHT_MEMORY, now, should));
    }
    return count;
}

size_t td_right_sizes_left_out(const struct td_right_sizes *sizes)
{
    size_t count = 0;
    for (size_t i = 0; i < sizes->count; i++) {
        count += sizes->items[i].should.count == 0;
    }
    return count;
}

static void table_totals(const struct td_right_sizes *sizes, struct td_buf *out)
{
    size_t risk = table_at_risk(sizes);
    size_t left_out = td_right_sizes_left_out(sizes);
    (void)td_buf_append(out, TD_STR("total: "));
    table_total(sizes, TD_RIGHT_CPU, out);
    (void)td_buf_append(out, TD_STR(", "));
    table_total(sizes, TD_RIGHT_MEMORY, out);
    (void)td_buf_append_format(out,
                               "; %zu container%s should have a larger memory request.  "
                               "YAML: --output yaml\n",
                               risk, TD_PLURAL(risk));
    if (left_out > 0) {
        (void)td_buf_append_format(out,
                                   "%zu container%s left out of the total: not enough data "
                                   "(--min-samples, --min-history)\n",
                                   left_out, TD_PLURAL(left_out));
    }
    if (sizes->unowned > 0) {
        (void)td_buf_append_format(out, "%zu pod%s without a controller %s not included\n",
                                   sizes->unowned, TD_PLURAL(sizes->unowned),
                                   sizes->unowned == 1 ? "is" : "are");
    }
}

void td_right_sizes_write(const struct td_right_sizes *sizes, struct td_buf *out)
{
    char head[TABLE_COLUMNS][TABLE_CELL_BYTES] = {"NAMESPACE",        "WORKLOAD",
                                                  "CONTAINER",        "SIZED BY",
                                                  "CPU now → should", "MEMORY now → should"};
    table_line(head, TD_STR("WASTE/RISK of all pods"), out);
    for (size_t row = 0; row < sizes->count; row++) {
        td_auto_buf verdict = td_buf_capped(TD_OBJECT_BYTES_MAX);
        table_verdict(&sizes->items[row], &verdict);
        char cells[TABLE_COLUMNS][TABLE_CELL_BYTES];
        table_cells(&sizes->items[row], cells);
        table_line(cells, td_buf_str(&verdict), out);
    }
    table_totals(sizes, out);
    if (sizes->problem.len > 0) {
        (void)td_buf_append_format(out, "warning: %.*s\n", TD_STR_ARG(sizes->problem));
    }
}

/* ---- As data ---- */

/* The resources whose target is a floor. */
static struct td_json *table_floors_json(struct td_arena *arena, const struct td_right_size *row)
{
    struct td_json *list = td_json_new_array(arena);
    for (enum td_right_resource resource = 0; resource < TD_RIGHT_COUNT; resource++) {
        if (row->is_floor[resource]) {
            td_json_append(list, td_json_new_string(arena, td_right_names[resource]));
        }
    }
    return list;
}

struct td_json *td_right_sizes_json(struct td_arena *arena, const struct td_right_sizes *sizes)
{
    struct td_json *report = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_right_size *row = &sizes->items[i];
        struct td_json *object = td_json_new_object(arena);
        td_json_set_str(arena, object, TD_STR("namespace"), row->namespace);
        td_json_set_str(arena, object, TD_STR("kind"), row->kind);
        td_json_set_str(arena, object, TD_STR("workload"), row->workload);
        td_json_set_str(arena, object, TD_STR("container"), row->container);
        td_json_set_str(arena, object, TD_STR("sizedBy"), row->by);
        td_json_set_int64(arena, object, TD_STR("pods"), (int64_t)row->pods);
        td_json_set(arena, object, TD_STR("now"), td_resource_list_json(arena, &row->now));
        td_json_set(arena, object, TD_STR("should"), td_resource_list_json(arena, &row->should));
        td_json_set(arena, object, TD_STR("floors"), table_floors_json(arena, row));
        td_json_set_bool(arena, object, TD_STR("enoughData"), row->should.count > 0);
        td_json_set_int64(arena, object, TD_STR("samples"), row->samples);
        td_json_set_int64(arena, object, TD_STR("historySeconds"), row->history / TD_SECOND);
        td_json_set_double(arena, object, TD_STR("confidence"), row->confidence);
        td_json_set_int64(arena, object, TD_STR("ooms"), row->ooms);
        td_json_append(list, object);
    }
    td_json_set(arena, report, TD_STR("containers"), list);
    td_json_set_int64(arena, report, TD_STR("podsWithoutController"), (int64_t)sizes->unowned);
    td_json_set_str(arena, report, TD_STR("problem"), sizes->problem);
    return report;
}

/* ---- As CSV ---- */

/* Behind a comma, in quotes where there is need. */
static void csv_text(td_str text, struct td_buf *out)
{
    bool is_plain = true;
    for (size_t i = 0; i < text.len; i++) {
        is_plain = is_plain && !strchr(",\"\r\n", text.ptr[i]);
    }
    (void)td_buf_append(out, is_plain ? TD_STR_EMPTY : TD_STR("\""));
    for (size_t i = 0; i < text.len; i++) {
        (void)td_buf_append(out, text.ptr[i] == '"' ? TD_STR("\"") : TD_STR_EMPTY);
        (void)td_buf_append_char(out, text.ptr[i]);
    }
    (void)td_buf_append(out, is_plain ? TD_STR(",") : TD_STR("\","));
}

static void csv_amounts(const struct td_right_size *row, enum td_right_resource resource,
                        struct td_buf *out)
{
    const struct td_resource_list *lists[] = {&row->now, &row->should};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        int64_t amount;
        if (td_right_amount(lists[i], resource, &amount)) {
            (void)td_buf_append_int64(out, amount);
        }
        (void)td_buf_append_char(out, ',');
    }
    (void)td_buf_append_format(out, "%s,", row->is_floor[resource] ? "true" : "false");
}

void td_right_sizes_csv(const struct td_right_sizes *sizes, struct td_buf *out)
{
    (void)td_buf_append(
        out, TD_STR("namespace,kind,workload,container,sizedBy,pods,cpuRequestMilli,cpuShouldMilli,"
                    "cpuIsFloor,memoryRequestBytes,memoryShouldBytes,memoryIsFloor,enoughData,"
                    "samples,historySeconds,confidence,ooms\r\n"));
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_right_size *row = &sizes->items[i];
        csv_text(row->namespace, out);
        csv_text(row->kind, out);
        csv_text(row->workload, out);
        csv_text(row->container, out);
        csv_text(row->by, out);
        (void)td_buf_append_format(out, "%zu,", row->pods);
        csv_amounts(row, TD_RIGHT_CPU, out);
        csv_amounts(row, TD_RIGHT_MEMORY, out);
        (void)td_buf_append_format(out, "%s,%lld,%lld,%.3f,%lld\r\n",
                                   row->should.count > 0 ? "true" : "false",
                                   (long long)row->samples, (long long)(row->history / TD_SECOND),
                                   row->confidence, (long long)row->ooms);
    }
}
