#include "local/resources/version_rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct version_rank {
    int stage; /* 3 stable, 2 beta, 1 alpha, 0 not of the form */
    int64_t major;
    int64_t minor;
};

/* A number without leading zeros at *at, which is moved behind it. */
static bool version_number(td_str name, size_t *at, int64_t *ret)
{
    size_t end = *at;
    while (end < name.len && name.ptr[end] >= '0' && name.ptr[end] <= '9') {
        end++;
    }
    td_str digits = td_str_slice(name, *at, end);
    *at = end;
    return digits.len > 0 && digits.ptr[0] != '0' && td_str_to_int64(digits, ret);
}

static struct version_rank version_rank(td_str name)
{
    static const char *const words[] = {"alpha", "beta"};
    const struct version_rank other = {.stage = 0};
    struct version_rank rank = {.stage = 3};
    size_t at = 1;
    if (!td_str_starts_with(name, TD_STR("v")) || !version_number(name, &at, &rank.major)) {
        return other;
    }
    td_str rest = td_str_slice(name, at, name.len);
    for (size_t i = 0; i < TD_COUNT(words); i++) {
        td_str word = td_str_from(words[i]);
        if (td_str_starts_with(rest, word)) {
            at += word.len;
            rank.stage = (int)i + 1;
            return version_number(name, &at, &rank.minor) && at == name.len ? rank : other;
        }
    }
    return rest.len == 0 ? rank : other;
}

int td_version_compare(td_str a, td_str b)
{
    struct version_rank left = version_rank(a);
    struct version_rank right = version_rank(b);
    if (left.stage != right.stage) {
        return left.stage > right.stage ? -1 : 1;
    }
    if (left.major != right.major) {
        return left.major > right.major ? -1 : 1;
    }
    if (left.minor != right.minor) {
        return left.minor > right.minor ? -1 : 1;
    }
    return td_str_compare(a, b);
}
