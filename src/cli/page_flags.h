/* Options that `up`, `page` and `run` share for the page. */
#pragma once

/* Into a double: a price, 0 or more. */
int td_page_parse_price(void *place, const char *value);
