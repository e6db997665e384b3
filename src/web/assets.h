/*
 * Files that travel inside the program: those of web/ and, where it was there at build time,
 * dygraphs (/dygraph.min.js, /dygraph.min.css) with its licence (/licences.txt). Read-only, alive
 * as long as the program; the build makes the table (cmake/TandemWeb.cmake).
 */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct td_web_asset {
    const char *path;           /* as in a URL: "/plot.js" */
    const char *type;           /* Content-Type */
    const char *etag;           /* with its quotes; changes with the bytes */
    const unsigned char *bytes; /* followed by a NUL that is not counted */
    size_t size;
};

/* By its path, without query; NULL: there is none. */
const struct td_web_asset *td_web_asset_find(td_str path);

td_str td_web_asset_text(const struct td_web_asset *asset);

/* The library that draws charts: "dygraphs 2.2.1". NULL: the build had none, plot.js draws SVG. */
const char *td_web_charts(void);
