#include "decide/tandem/requests.h"

#include "decide/vertical/resourcelist.h"

const struct td_quantity *td_tandem_request_of(const struct td_hvpa_requests *requests,
                                               td_str container, enum td_hvpa_resource resource)
{
    for (size_t i = 0; i < requests->count; i++) {
        if (td_str_equal(requests->items[i].container, container)) {
            return td_resource_list_get(&requests->items[i].resources,
                                        td_hvpa_resource_name(resource));
        }
    }
    return NULL;
}

int64_t td_tandem_amount_of(enum td_hvpa_resource resource, const struct td_quantity *quantity)
{
    if (!quantity) {
        return 0;
    }
    int64_t amount =
        resource == TD_HVPA_CPU ? td_quantity_milli(quantity) : td_quantity_value(quantity);
    return amount < 0 ? 0 : amount;
}

struct td_quantity td_tandem_quantity_of(enum td_hvpa_resource resource, int64_t amount)
{
    bool is_mebi = amount % (INT64_C(1) << 20) == 0;
    if (resource == TD_HVPA_CPU) {
        return td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI);
    }
    return td_quantity_new(amount, is_mebi ? TD_QUANTITY_BINARY_SI : TD_QUANTITY_DECIMAL_SI);
}

/* The list of a container, made when it is missing; the array is the caller's own afterwards. */
static struct td_resource_list *list_of(struct td_arena *arena, struct td_hvpa_requests *requests,
                                        td_str container)
{
    struct td_hvpa_container_resources *items =
        td_arena_array(arena, struct td_hvpa_container_resources, requests->count + 1);
    size_t at = requests->count;
    for (size_t i = 0; i < requests->count; i++) {
        items[i] = requests->items[i];
        items[i].resources = td_resource_list_copy(arena, &items[i].resources);
        at = td_str_equal(items[i].container, container) ? i : at;
    }
    if (at == requests->count) {
        items[at].container = container;
        requests->count++;
    }
    requests->items = items;
    return &items[at].resources;
}

void td_tandem_request_put(struct td_arena *arena, struct td_hvpa_requests *requests,
                           td_str container, enum td_hvpa_resource resource,
                           const struct td_quantity *quantity)
{
    const struct td_quantity *known = td_tandem_request_of(requests, container, resource);
    if (!known || td_tandem_amount_of(resource, known) != td_tandem_amount_of(resource, quantity)) {
        td_resource_list_set(arena, list_of(arena, requests, container),
                             td_hvpa_resource_name(resource), quantity);
    }
}

bool td_tandem_requests_equal(const struct td_hvpa_requests *a, const struct td_hvpa_requests *b)
{
    for (size_t i = 0; i < a->count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            td_str container = a->items[i].container;
            if (td_tandem_amount_of(resource, td_tandem_request_of(a, container, resource)) !=
                td_tandem_amount_of(resource, td_tandem_request_of(b, container, resource))) {
                return false;
            }
        }
    }
    return a->count == b->count;
}
