#include "web/assets.h"

#include "web/assets_table.h"

const struct td_web_asset *td_web_asset_find(td_str path)
{
    for (size_t i = 0; i < td_web_asset_row_count; i++) {
        if (td_str_equal(td_str_from(td_web_asset_rows[i].path), path)) {
            return &td_web_asset_rows[i];
        }
    }
    return NULL;
}

td_str td_web_asset_text(const struct td_web_asset *asset)
{
    return (td_str){(const char *)asset->bytes, asset->size};
}

const char *td_web_charts(void)
{
    return td_web_asset_charts;
}
