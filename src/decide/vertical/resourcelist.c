#include "decide/vertical/resourcelist.h"

bool td_resource_is_scaled(td_str name)
{
    return td_str_equal(name, TD_CPU) || td_str_equal(name, TD_MEMORY);
}

struct td_resource_list td_resource_list_copy(struct td_arena *arena,
                                              const struct td_resource_list *list)
{
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, list->count);
    for (size_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
    }
    return (struct td_resource_list){.items = items, .count = list->count};
}

/* The first place whose name is not below `name`. */
static size_t list_place(const struct td_resource_list *list, td_str name)
{
    return td_str_place(list->items, list->count, sizeof(list->items[0]), name);
}

static bool list_has_at(const struct td_resource_list *list, size_t place, td_str name)
{
    return place < list->count && td_str_equal(list->items[place].name, name);
}

struct td_quantity *td_resource_list_edit(struct td_resource_list *list, td_str name)
{
    size_t place = list_place(list, name);
    return list_has_at(list, place, name) ? &list->items[place].quantity : NULL;
}

struct td_quantity td_resource_list_value(const struct td_resource_list *list, td_str name)
{
    const struct td_quantity *found = td_resource_list_get(list, name);
    return found ? *found : td_quantity_new(0, TD_QUANTITY_NONE);
}

void td_resource_list_set(struct td_arena *arena, struct td_resource_list *list, td_str name,
                          const struct td_quantity *quantity)
{
    size_t place = list_place(list, name);
    if (list_has_at(list, place, name)) {
        list->items[place].quantity = *quantity;
        return;
    }
    struct td_resource_amount *items =
        td_arena_array(arena, struct td_resource_amount, list->count + 1);
    for (size_t i = 0; i < list->count; i++) {
        items[i < place ? i : i + 1] = list->items[i];
    }
    items[place] = (struct td_resource_amount){.name = name, .quantity = *quantity};
    *list = (struct td_resource_list){.items = items, .count = list->count + 1};
}

void td_resource_list_drop(struct td_resource_list *list, td_str name)
{
    size_t place = list_place(list, name);
    if (!list_has_at(list, place, name)) {
        return;
    }
    list->count--;
    for (size_t i = place; i < list->count; i++) {
        list->items[i] = list->items[i + 1];
    }
}

bool td_resource_list_has_all(const struct td_resource_list *list,
                              const struct td_resource_list *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const struct td_quantity *has = td_resource_list_get(list, wanted->items[i].name);
        if (!has || td_quantity_compare(has, &wanted->items[i].quantity) != 0) {
            return false;
        }
    }
    return true;
}
