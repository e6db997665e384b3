#include "model/template.h"

#include "base/error.h"

static bool decode_resources(struct td_arena *arena, const struct td_json *resources,
                             struct td_resource_list *ret_requests,
                             struct td_resource_list *ret_limits)
{
    return td_resource_list_decode(arena, td_json_get(resources, TD_STR("requests")), ret_requests,
                                   NULL) == TD_OK &&
           td_resource_list_decode(arena, td_json_get(resources, TD_STR("limits")), ret_limits,
                                   NULL) == TD_OK;
}

struct td_pod_template td_pod_template_decode(struct td_arena *arena,
                                              const struct td_json *template)
{
    const struct td_json *spec = td_json_get(template, TD_STR("spec"));
    const struct td_json *list = td_json_get(spec, TD_STR("containers"));
    struct td_pod_template made = {.is_set = false};
    if (!td_json_is(list, TD_JSON_TYPE_ARRAY) ||
        !decode_resources(arena, td_json_get(spec, TD_STR("resources")), &made.pod_requests,
                          &made.pod_limits)) {
        return (struct td_pod_template){.is_set = false};
    }
    struct td_template_container *containers =
        td_arena_array(arena, struct td_template_container, list->count);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_template_container *container = &containers[made.container_count++];
        *container = (struct td_template_container){.name = td_json_text(item, "name")};
        if (!decode_resources(arena, td_json_get(item, TD_STR("resources")), &container->requests,
                              &container->limits)) {
            return (struct td_pod_template){.is_set = false};
        }
    }
    made.containers = containers;
    made.labels = td_labels_from_json(arena, td_json_get_path(template, "metadata.labels"));
    made.is_set = true;
    return made;
}

/* By way of its text, which is what the arena then has of it. */
static struct td_quantity copy_quantity(struct td_arena *arena, const struct td_quantity *quantity)
{
    struct td_quantity copy = td_quantity_new(0, TD_QUANTITY_NONE);
    td_str text = td_quantity_text(arena, quantity);
    (void)td_quantity_parse(arena, text, &copy, NULL); /* it was written by its own rules */
    return copy;
}

static struct td_resource_list copy_resources(struct td_arena *arena,
                                              const struct td_resource_list *list)
{
    struct td_resource_list copy = {
        .items = td_arena_array(arena, struct td_resource_amount, list->count),
        .count = list->count,
    };
    for (size_t i = 0; i < list->count; i++) {
        copy.items[i].name = td_arena_copy_str(arena, list->items[i].name);
        copy.items[i].quantity = copy_quantity(arena, &list->items[i].quantity);
    }
    return copy;
}

struct td_pod_template td_pod_template_copy(struct td_arena *arena,
                                            const struct td_pod_template *template)
{
    struct td_pod_template copy = *template;
    struct td_label *labels = td_arena_array(arena, struct td_label, template->labels.count);
    for (size_t i = 0; i < template->labels.count; i++) {
        labels[i].key = td_arena_copy_str(arena, template->labels.items[i].key);
        labels[i].value = td_arena_copy_str(arena, template->labels.items[i].value);
    }
    copy.labels.items = labels;
    struct td_template_container *containers =
        td_arena_array(arena, struct td_template_container, template->container_count);
    for (size_t i = 0; i < template->container_count; i++) {
        const struct td_template_container *from = &template->containers[i];
        containers[i].name = td_arena_copy_str(arena, from->name);
        containers[i].requests = copy_resources(arena, &from->requests);
        containers[i].limits = copy_resources(arena, &from->limits);
    }
    copy.containers = containers;
    copy.pod_requests = copy_resources(arena, &template->pod_requests);
    copy.pod_limits = copy_resources(arena, &template->pod_limits);
    return copy;
}

const struct td_template_container *
td_pod_template_container(const struct td_pod_template *template, td_str name)
{
    for (size_t i = 0; i < template->container_count; i++) {
        if (td_str_equal(template->containers[i].name, name)) {
            return &template->containers[i];
        }
    }
    return NULL;
}
