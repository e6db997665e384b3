/* Pods as the updater decides on them: with the template of their owner as the origin of limits. */
#include "base/error.h"
#include "control/updater/update_private.h"
#include "decide/vertical/patch/origin.h"

static bool pod_has_limits(const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        if (td_vertical_limits(&pod->containers[i])->count > 0) {
            return true;
        }
    }
    return pod->pod_limits.count > 0;
}

/* The template outlives this turn of the loop, as the pod does; siblings share the copy. */
static const struct td_pod_template *pod_template(struct update_decoder *decoder,
                                                  const struct td_meta *pod)
{
    const struct td_pod_template *found =
        td_template_of_pod(td_informers_source(decoder->informers), pod);
    if (found && found != decoder->found) {
        decoder->found = found;
        decoder->copy = td_pod_template_copy(decoder->arena, found);
    }
    return found ? &decoder->copy : NULL;
}

bool update_decode_pod(struct update_decoder *decoder, const struct td_informer_object *object,
                       struct td_pod *ret)
{
    struct td_json *tree;
    if (td_informers_tree(decoder->arena, object, &tree, NULL) != TD_OK ||
        td_pod_decode(decoder->arena, tree, ret, NULL) != TD_OK) {
        return false;
    }
    if (pod_has_limits(ret)) {
        const struct td_limit_ranges *limits =
            td_informers_limits(decoder->informers, ret->meta.namespace);
        td_vertical_set_origin(decoder->arena, pod_template(decoder, &ret->meta),
                               limits ? &limits->container.default_limit : NULL, ret);
    }
    return true;
}
