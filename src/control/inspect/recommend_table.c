/* Right sizes as a table, as data, and as YAML to paste. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json/json.h"
#include "base/limits.h"
#include "control/inspect/recommend_once.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/resourcelist.h"

#define TABLE_COLUMNS 6
#define TABLE_CELL_BYTES 96
#define TABLE_WORTH_PERCENT 5 /* a smaller change is none */
#define TABLE_SAMPLES_MIN 60  /* an hour of them */

/* ---- Rows ---- */

void td_right_size_fill(struct td_right_size *row, const struct td_vpa_status *status)
{
    for (size_t i = 0; i < status->recommendation.container_count; i++) {
        const struct td_container_recommendation *r = &status->recommendation.containers[i];
        const struct td_account *account = status->accounts ? &status->accounts[i] : NULL;
        if (td_str_equal(r->container_name, row->container)) {
            row->should = r->target;
            row->samples = account ? account->samples : 0;
            row->ooms = account ? account->ooms : 0;
            row->confidence = account ? td_account_confidence(account) : 0;
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
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
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

/* Milli-cores or bytes; false: the list has none. */
static bool table_amount(const struct td_resource_list *list, td_str name, int64_t *ret)
{
    const struct td_quantity *quantity = td_resource_list_get(list, name);
    if (!quantity) {
        return false;
    }
    *ret = td_str_equal(name, TD_CPU) ? td_quantity_milli(quantity) : td_quantity_value(quantity);
    return true;
}

/* "430m", "2.1", "1.1Gi". */
static void table_write(double amount, bool is_cpu, char *out, size_t size)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    if (is_cpu && amount < 1000 && amount > -1000) {
        (void)snprintf(out, size, "%.0fm", amount);
        return;
    }
    if (is_cpu) {
        (void)snprintf(out, size, "%.4g", amount / 1000);
        return;
    }
    size_t unit = 0;
    while ((amount >= 1000 || amount <= -1000) && unit < sizeof(units) / sizeof(units[0]) - 1) {
        amount /= 1024;
        unit++;
    }
    (void)snprintf(out, size, "%.3g%s", amount, units[unit]);
}

/* "2 → 430m"; "none → 430m"; "?" when nothing is known. */
static void table_change(const struct td_right_size *row, td_str name, char *out, size_t size)
{
    bool is_cpu = td_str_equal(name, TD_CPU);
    int64_t now = 0;
    int64_t should = 0;
    char from[32];
    (void)snprintf(from, sizeof(from), "%s", row->is_pod_level ? "pod's" : "none");
    char to[32] = "?";
    if (table_amount(&row->now, name, &now)) {
        table_write((double)now, is_cpu, from, sizeof(from));
    }
    if (table_amount(&row->should, name, &should)) {
        table_write((double)should, is_cpu, to, sizeof(to));
    }
    (void)snprintf(out, size, "%s → %s", from, to);
}

static bool table_is_worth(int64_t now, int64_t should)
{
    double change = (double)should - (double)now;
    return change * 100 > (double)now * TABLE_WORTH_PERCENT ||
           -change * 100 > (double)now * TABLE_WORTH_PERCENT;
}

/* What all pods of it would save or need; an OOM first. */
static void table_verdict(const struct td_right_size *row, struct td_buf *out)
{
    static const td_str names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    const char *separator = "";
    if (row->ooms > 0) {
        (void)td_buf_append_format(out, "! out of memory %lldx", (long long)row->ooms);
        separator = ", ";
    }
    for (size_t i = 0; i < 2; i++) {
        int64_t now = 0;
        int64_t should = 0;
        bool has_now = table_amount(&row->now, names[i], &now);
        bool is_known = table_amount(&row->should, names[i], &should);
        char text[32];
        if (!is_known || row->is_pod_level || (has_now && !table_is_worth(now, should))) {
            continue;
        }
        if (!has_now) {
            (void)td_buf_append_format(out, "%sno %.*s request", separator, TD_STR_ARG(names[i]));
        } else {
            double pods = row->pods > 0 ? (double)row->pods : 1; /* between two runs: of one */
            double change = ((double)should - (double)now) * pods;
            table_write(change > 0 ? change : -change, i == 0, text, sizeof(text));
            (void)td_buf_append_format(out, "%s%s%s%s", separator, change > 0 ? "+" : "−", text,
                                       i == 0 ? " cpu" : "");
        }
        separator = ", ";
    }
    if (row->is_pod_level) {
        (void)td_buf_append_format(out, "%sresources are the pod's", separator);
        separator = ", ";
    }
    if (row->samples < TABLE_SAMPLES_MIN) {
        (void)td_buf_append_format(out, "%sonly %lld samples", separator, (long long)row->samples);
    }
}

/* ---- The table ---- */

static td_str table_short(td_str kind)
{
    static const char *const names[][2] = {
        {"Deployment", "deploy"}, {"StatefulSet", "sts"}, {"DaemonSet", "ds"},
        {"ReplicaSet", "rs"},     {"CronJob", "cj"},      {"ReplicationController", "rc"},
        {"Job", "job"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (td_str_equal(kind, td_str_from(names[i][0]))) {
            return td_str_from(names[i][1]);
        }
    }
    return kind;
}

/* Columns of a terminal, not bytes: what continues a character does not count. */
static size_t table_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
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
    table_change(row, TD_CPU, cells[4], TABLE_CELL_BYTES);
    table_change(row, TD_MEMORY, cells[5], TABLE_CELL_BYTES);
}

static void table_line(char cells[TABLE_COLUMNS][TABLE_CELL_BYTES], const size_t *widths,
                       td_str last, struct td_buf *out)
{
    for (size_t i = 0; i < TABLE_COLUMNS; i++) {
        size_t width = table_width(cells[i]);
        (void)td_buf_append_format(out, " %s%*s", cells[i],
                                   (int)(widths[i] - width) + (i + 1 < TABLE_COLUMNS ? 1 : 2), "");
    }
    (void)td_buf_append_format(out, "%.*s", TD_STR_ARG(last));
    while (out->len > 0 && out->ptr[out->len - 1] == ' ') {
        out->len--;
    }
    (void)td_buf_append_char(out, '\n');
}

/* Requests of all pods, now and as they should be; what is not known stays. */
static void table_total(const struct td_right_sizes *sizes, td_str name, char *out, size_t size)
{
    bool is_cpu = td_str_equal(name, TD_CPU);
    double before = 0;
    double after = 0;
    for (size_t i = 0; i < sizes->count; i++) {
        int64_t now = 0;
        (void)table_amount(&sizes->items[i].now, name, &now); /* none counts nothing */
        int64_t should = now;
        if (!sizes->items[i].is_pod_level) {
            (void)table_amount(&sizes->items[i].should, name, &should);
        }
        before += (double)now * (double)sizes->items[i].pods;
        after += (double)should * (double)sizes->items[i].pods;
    }
    char from[32];
    char to[32];
    table_write(before, is_cpu, from, sizeof(from));
    table_write(after, is_cpu, to, sizeof(to));
    (void)snprintf(out, size, "%s → %s", from, to);
}

static size_t table_at_risk(const struct td_right_sizes *sizes)
{
    size_t count = 0;
    for (size_t i = 0; i < sizes->count; i++) {
        int64_t now = 0;
        int64_t should = 0;
        bool is_known = !sizes->items[i].is_pod_level &&
                        table_amount(&sizes->items[i].should, TD_MEMORY, &should);
        (void)table_amount(&sizes->items[i].now, TD_MEMORY, &now);
        count +=
            sizes->items[i].ooms > 0 || (is_known && should > now && table_is_worth(now, should));
    }
    return count;
}

void td_right_sizes_write(const struct td_right_sizes *sizes, struct td_buf *out)
{
    char head[TABLE_COLUMNS][TABLE_CELL_BYTES] = {"NAMESPACE",        "WORKLOAD",
                                                  "CONTAINER",        "SIZED BY",
                                                  "CPU now → should", "MEMORY now → should"};
    char cells[TABLE_COLUMNS][TABLE_CELL_BYTES];
    size_t widths[TABLE_COLUMNS];
    for (size_t i = 0; i < TABLE_COLUMNS; i++) {
        widths[i] = table_width(head[i]);
    }
    for (size_t row = 0; row < sizes->count; row++) {
        table_cells(&sizes->items[row], cells);
        for (size_t i = 0; i < TABLE_COLUMNS; i++) {
            size_t width = table_width(cells[i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    table_line(head, widths, TD_STR("WASTE/RISK of all pods"), out);
    for (size_t row = 0; row < sizes->count; row++) {
        td_auto_buf verdict;
        td_buf_init(&verdict, TD_OBJECT_BYTES_MAX);
        table_verdict(&sizes->items[row], &verdict);
        table_cells(&sizes->items[row], cells);
        table_line(cells, widths, td_buf_str(&verdict), out);
    }
    char cpu[TABLE_CELL_BYTES];
    char memory[TABLE_CELL_BYTES];
    table_total(sizes, TD_CPU, cpu, sizeof(cpu));
    table_total(sizes, TD_MEMORY, memory, sizeof(memory));
    (void)td_buf_append_format(
        out,
        "total: %s cpu, %s memory; %zu containers want more memory than they "
        "ask for.  YAML: --output yaml\n",
        cpu, memory, table_at_risk(sizes));
    if (sizes->unowned > 0) {
        (void)td_buf_append_format(out, "%zu pods without a controller are not in it\n",
                                   sizes->unowned);
    }
    if (sizes->trouble.len > 0) {
        (void)td_buf_append_format(out, "beware: %.*s\n", TD_STR_ARG(sizes->trouble));
    }
}

/* ---- As data ---- */

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
        td_json_set_int64(arena, object, TD_STR("samples"), row->samples);
        td_json_set(arena, object, TD_STR("confidence"),
                    td_json_new_double(arena, row->confidence));
        td_json_set_int64(arena, object, TD_STR("ooms"), row->ooms);
        td_json_append(list, object);
    }
    td_json_set(arena, report, TD_STR("containers"), list);
    td_json_set_int64(arena, report, TD_STR("podsWithoutController"), (int64_t)sizes->unowned);
    td_json_set_str(arena, report, TD_STR("trouble"), sizes->trouble);
    return report;
}

/* ---- To paste ---- */

/* Requests, and limits that would be below them. */
static struct td_json *patch_container(struct td_arena *arena, const struct td_right_size *row)
{
    struct td_json *container = td_json_new_object(arena);
    struct td_json *limits = td_json_new_object(arena);
    td_json_set_str(arena, container, TD_STR("name"), row->container);
    struct td_json *resources = td_json_ensure_object(arena, container, TD_STR("resources"));
    td_json_set(arena, resources, TD_STR("requests"), td_resource_list_json(arena, &row->should));
    for (size_t i = 0; i < row->should.count; i++) {
        td_str name = row->should.items[i].name;
        const struct td_quantity *limit = td_resource_list_get(&row->limits, name);
        if (limit && td_quantity_compare(limit, &row->should.items[i].quantity) < 0) {
            td_json_set_str(arena, limits, name,
                            td_quantity_text(arena, &row->should.items[i].quantity));
        }
    }
    if (limits->count > 0) {
        td_json_set(arena, resources, TD_STR("limits"), limits);
    }
    return container;
}

static bool patch_is_same(const struct td_right_size *a, const struct td_right_size *b)
{
    return td_str_equal(a->namespace, b->namespace) && td_str_equal(a->kind, b->kind) &&
           td_str_equal(a->workload, b->workload);
}

static struct td_json *patch_workload(struct td_arena *arena, const struct td_right_size *row,
                                      struct td_json **ret_containers)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), row->api_version);
    td_json_set_str(arena, object, TD_STR("kind"), row->kind);
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, meta, TD_STR("name"), row->workload);
    td_json_set_str(arena, meta, TD_STR("namespace"), row->namespace);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    if (td_str_equal(row->kind, TD_STR("CronJob"))) {
        spec = td_json_ensure_object(arena, spec, TD_STR("jobTemplate"));
        spec = td_json_ensure_object(arena, spec, TD_STR("spec"));
    }
    spec = td_json_ensure_object(arena, spec, TD_STR("template"));
    spec = td_json_ensure_object(arena, spec, TD_STR("spec"));
    *ret_containers = td_json_new_array(arena);
    td_json_set(arena, spec, TD_STR("containers"), *ret_containers);
    return object;
}

struct td_json *td_right_sizes_patches(struct td_arena *arena, const struct td_right_sizes *sizes)
{
    struct td_json *list = td_json_new_array(arena);
    struct td_json *containers = NULL;
    const struct td_right_size *before = NULL;
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_right_size *row = &sizes->items[i];
        bool is_fixed = td_str_equal(row->kind, TD_STR("Job")) || /* its template cannot change */
                        row->api_version.len == 0;                /* nobody knows what it is */
        if (row->by.len > 0 || row->should.count == 0 || row->is_pod_level || is_fixed) {
            continue;
        }
        if (!before || !patch_is_same(before, row)) {
            td_json_append(list, patch_workload(arena, row, &containers));
        }
        td_json_append(containers, patch_container(arena, row));
        before = row;
    }
    return list;
}
