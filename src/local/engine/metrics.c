#include "local/engine/metrics.h"

#include "base/error.h"
#include "base/timefmt.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "local/engine/faults.h"
#include "local/store/stored.h"

const struct td_engine *td_metrics_engine(const struct td_api_call *call)
{
    return call->api->measures ? call->api->measures->engine : NULL;
}

td_time td_metrics_now(const struct td_api_call *call)
{
    return td_time_from_instant(td_call_now(call));
}

td_str td_metrics_time(struct td_arena *arena, td_time time)
{
    return td_time_text(arena, td_time_to_instant(time), 0);
}

bool td_metrics_selector(struct td_api_call *call, struct td_selector *ret)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_selector_parse(&call->arena, call->query.label_selector, ret, &err) == TD_OK) {
        return true;
    }
    td_call_fail(call, 400, "BadRequest", "%s", err.message);
    return false;
}

bool td_metrics_selected(struct td_arena *scratch, const struct td_selector *selector,
                         const struct td_stored *stored)
{
    struct td_json *tree = NULL;
    if (td_selector_is_empty(selector)) {
        return true;
    }
    if (stored->labels.len > 0) {
        /* What we stored can be read; if not, it has no labels. */
        (void)td_json_parse(scratch, stored->labels, NULL, &tree, NULL);
    }
    struct td_labels labels = td_labels_from_json(scratch, tree);
    return td_selector_matches(selector, &labels);
}

/* What clients make of the aggregator's answer while no API server is behind it. */
static void metrics_unavailable(struct td_api_call *call)
{
    td_str name = call->path.name;
    td_call_fail(call, 503, "ServiceUnavailable",
                 "the server is currently unable to handle the request (get %.*s.%.*s%s%.*s)",
                 TD_STR_ARG(call->path.plural), TD_STR_ARG(call->path.group),
                 name.len > 0 ? " " : "", TD_STR_ARG(name));
}

void td_metrics_read(struct td_api_call *call)
{
    td_str group = call->path.group;
    if (call->api->faults && call->api->faults->is_metrics_gap) {
        metrics_unavailable(call);
    } else if (td_str_equal(group, TD_STR("metrics.k8s.io"))) {
        td_metrics_resource(call);
    } else if (td_str_equal(group, TD_STR("custom.metrics.k8s.io"))) {
        td_metrics_custom(call);
    } else {
        td_metrics_external(call);
    }
}
