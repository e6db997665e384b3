#include "cli/command.h"

#include <stdio.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <yaml.h>

#include <tandem_commit.h> /* written by the build */

#include "web/assets.h"

#if defined(__clang__)
#define VERSION_COMPILER "clang " __clang_version__
#else
#define VERSION_COMPILER "gcc " __VERSION__
#endif

td_str td_version_text(void)
{
    return TD_STR("tandem " TANDEM_VERSION " (commit " TANDEM_COMMIT ")");
}

void td_version_print(void)
{
    (void)printf("tandem %s (commit %s, %s)\n", TANDEM_VERSION, TANDEM_COMMIT, VERSION_COMPILER);
    (void)printf("libevent %s, libcurl %s, OpenSSL %s, libyaml %s\n", event_get_version(),
                 curl_version_info(CURLVERSION_NOW)->version,
                 OpenSSL_version(OPENSSL_VERSION_STRING), yaml_get_version_string());
    const char *charts = td_web_charts();
    (void)printf("charts: %s\n", charts ? charts : "plain SVG (libjs-dygraphs is not installed)");
}
