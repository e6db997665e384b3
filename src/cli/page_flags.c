#include "cli/page_flags.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "cli/command.h"

#define PAGE_PRICE_MAX 1e6

int td_page_parse_price(void *place, const char *value)
{
    td_auto_arena arena = td_arena_capped(TD_OBJECT_BYTES_MAX);
    double *price = place;
    struct td_json *number;
    return td_json_parse(&arena, td_str_from(value), NULL, &number, NULL) == TD_OK &&
                   td_json_is(number, TD_JSON_TYPE_NUMBER) && td_json_to_double(number, price) &&
                   *price >= 0 && *price <= PAGE_PRICE_MAX
               ? TD_EXIT_DONE
               : td_command_fail("--price: '%s': must be a number from 0 to %.0f", value,
                                 PAGE_PRICE_MAX);
}
