/*
 * The table that the build writes (cmake/WebAssets.cmake), for assets.c.
 */
#pragma once

#include "web/assets.h"

extern const struct td_web_asset td_web_asset_rows[];
extern const size_t td_web_asset_row_count;
extern const char *const td_web_asset_charts; /* NULL: none */
