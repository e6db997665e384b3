#include "web/assets.h"

#include "web/assets_table.h"

const struct td_web_asset *td_web_asset_at(size_t index)
{
    return index < td_web_asset_row_count ? &td_web_asset_rows[index] : NULL;
}

const struct td_web_asset *td_web_asset_find(td_str path)
{
    const struct td_web_asset *asset;
    for (size_t i = 0; (asset = td_web_asset_at(i)) != NULL; i++) {
        if (td_str_equal(td_str_from(asset->path), path)) {
            return asset;
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
