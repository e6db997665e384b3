/* What was done to a pod, in the few words that a table has room for. */
#include "base/buf.h"
#include "base/limits.h"
#include "decide/vertical/resourcelist.h"
#include "decide/vertical/updater/pass_private.h"

/* "430m", "2.1"; "180Mi", "1.1Gi" */
static void words_amount(const struct td_quantity *quantity, bool is_cpu, struct td_buf *out)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    double amount =
        is_cpu ? (double)td_quantity_milli(quantity) : (double)td_quantity_value(quantity);
    size_t unit = 0;
    if (is_cpu) {
        (void)td_buf_append_format(out, amount < 1000 ? "%.0fm" : "%.3g",
                                   amount < 1000 ? amount : amount / 1000); /* cut when full */
        return;
    }
    while (amount >= 1000 && unit < TD_COUNT(units) - 1) {
        amount /= 1024;
        unit++;
    }
    (void)td_buf_append_format(out, "%.3g%s", amount, units[unit]);
}

static void words_change(td_str name, const struct td_quantity *now,
                         const struct td_quantity *target, struct td_buf *out)
{
    bool is_cpu = td_str_equal(name, TD_CPU);
    if (!target || (now && td_quantity_compare(now, target) == 0)) {
        return;
    }
    (void)td_buf_append_format(out, "%s%.*s ", out->len > 0 ? ", " : "", TD_STR_ARG(name));
    if (now) {
        words_amount(now, is_cpu, out);
    } else {
        (void)td_buf_append(out, TD_STR("none"));
    }
    (void)td_buf_append(out, TD_STR(" \u2192 "));
    words_amount(target, is_cpu, out);
}

/* The container's name is told where there are others. */
static void words_container(const struct td_pod *pod, const struct td_pod_container *container,
                            const struct td_recommendation *recommendation, struct td_buf *out)
{
    td_auto_buf changes = td_buf_capped(TD_EVENT_MESSAGE_BYTES_MAX);
    static const td_str names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_container_recommendation *r = &recommendation->containers[i];
        for (size_t n = 0; td_str_equal(r->container_name, container->name) && n < TD_COUNT(names);
             n++) {
            words_change(names[n], td_resource_list_get(&container->spec_requests, names[n]),
                         td_resource_list_get(&r->target, names[n]), &changes);
        }
    }
    if (changes.len > 0) {
        bool is_alone = pod->container_count == 1;
        (void)td_buf_append_format(out, "%s%.*s%s%.*s", out->len > 0 ? "; " : "",
                                   is_alone ? 0 : (int)container->name.len, container->name.ptr,
                                   is_alone ? "" : " ", TD_STR_ARG(td_buf_str(&changes)));
    }
}

td_str td_updater_words(struct td_arena *arena, const char *deed, const struct td_pod *pod,
                        const struct td_recommendation *recommendation)
{
    td_auto_buf text = td_buf_capped(TD_EVENT_MESSAGE_BYTES_MAX);
    for (size_t i = 0; recommendation && i < pod->container_count; i++) {
        words_container(pod, &pod->containers[i], recommendation, &text);
    }
    return text.len > 0 ? td_arena_format(arena, "%s: %.*s", deed, TD_STR_ARG(td_buf_str(&text)))
                        : td_arena_format(arena, "%s to apply the recommendation", deed);
}
