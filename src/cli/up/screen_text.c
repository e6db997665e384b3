#include "cli/up/screen_text.h"

#include <stdint.h>

struct screen_range {
    uint32_t from;
    uint32_t to;
};

/* East Asian wide and full-width characters, and those that are shown as pictures. */
static const struct screen_range screen_wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},
    {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},
    {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},
    {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},   {0x26d4, 0x26d4},
    {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},
    {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},
    {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},
    {0x2b55, 0x2b55},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320},
    {0x1f32d, 0x1f335}, {0x1f337, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3},
    {0x1f3e0, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f567}, {0x1f57a, 0x1f57a},
    {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5},
    {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d7}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7eb}, {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

/* Characters that are drawn over the one before them. */
static const struct screen_range screen_combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x06d6, 0x06dc}, {0x093c, 0x093c}, {0x0941, 0x0948},   {0x094d, 0x094d}, {0x0e31, 0x0e31},
    {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

/* Beside control characters: those that nobody sees, or that turn the text around. */
static const struct screen_range screen_hidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},    {0x180e, 0x180e},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0xe000, 0xf8ff},    {0xfeff, 0xfeff},
    {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f}, {0xf0000, 0x10ffff},
};

#define SCREEN_ARROW 0x2192
#define SCREEN_RANGES(ranges) (ranges), sizeof(ranges) / sizeof((ranges)[0])

static bool screen_is_in(uint32_t point, const struct screen_range *ranges, size_t count)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point > ranges[middle].to) {
            low = middle + 1;
        } else if (point < ranges[middle].from) {
            high = middle;
        } else {
            return true;
        }
    }
    return false;
}

/* The character of `len` well-formed bytes. */
static uint32_t screen_point(const char *bytes, size_t len)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = (unsigned char)bytes[0] & masks[len];
    for (size_t i = 1; i < len; i++) {
        point = point << 6 | ((unsigned char)bytes[i] & 0x3f);
    }
    return point;
}

static size_t screen_point_width(uint32_t point)
{
    if (point < 0x300) {
        return 1;
    }
    if (screen_is_in(point, SCREEN_RANGES(screen_combining))) {
        return 0;
    }
    return screen_is_in(point, SCREEN_RANGES(screen_wide)) ? 2 : 1;
}

void td_screen_clean(struct td_buf *buf, td_str text, bool has_utf8)
{
    for (size_t at = 0; at < text.len && !buf->is_full;) {
        td_str rest = td_str_slice(text, at, text.len);
        size_t len = td_str_utf8_char(rest);
        uint32_t point = len > 0 ? screen_point(rest.ptr, len) : 0;
        /* A full buffer ends the loop, so results of appending need no look. */
        if (point == '\n' || point == '\t' || point == '\r') {
            (void)td_buf_append_char(buf, ' ');
        } else if (screen_is_in(point, SCREEN_RANGES(screen_hidden))) {
            (void)td_buf_append_char(buf, '?');
        } else if (len == 1 || has_utf8) {
            (void)td_buf_append(buf, td_str_slice(rest, 0, len));
        } else {
            (void)td_buf_append(buf, point == SCREEN_ARROW ? TD_STR("->") : TD_STR("?"));
        }
        at += len > 0 ? len : 1;
    }
}

td_str td_screen_cut(td_str text, size_t columns_max)
{
    size_t columns = 0;
    size_t at = 0;
    while (at < text.len) {
        td_str rest = td_str_slice(text, at, text.len);
        size_t len = td_str_utf8_char(rest);
        columns += len > 0 ? screen_point_width(screen_point(rest.ptr, len)) : 1;
        if (columns > columns_max) {
            break;
        }
        at += len > 0 ? len : 1;
    }
    return td_str_slice(text, 0, at);
}

size_t td_screen_width(td_str text)
{
    size_t columns = 0;
    for (size_t at = 0; at < text.len;) {
        td_str rest = td_str_slice(text, at, text.len);
        size_t len = td_str_utf8_char(rest);
        columns += len > 0 ? screen_point_width(screen_point(rest.ptr, len)) : 1;
        at += len > 0 ? len : 1;
    }
    return columns;
}

/* ---- Numbers ---- */

/* Results of appending are looked at by nobody: a cell that is full is cut. */

void td_screen_cpu(struct td_buf *buf, double milli)
{
    if (milli < 0.5) {
        (void)td_buf_append_char(buf, '0');
    } else if (milli < 999.5) {
        (void)td_buf_append_format(buf, "%.0fm", milli);
    } else {
        (void)td_buf_append_format(buf, milli < 99950 ? "%.1f" : "%.0f", milli / 1000);
    }
}

void td_screen_memory(struct td_buf *buf, double bytes)
{
    static const char *const units[] = {"Ki", "Mi", "Gi", "Ti", "Pi"};
    double value = bytes / 1024;
    size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    if (value < 0.5) {
        (void)td_buf_append_char(buf, '0');
    } else {
        /* Kibibytes and mebibytes are shown whole, as kubectl does. */
        (void)td_buf_append_format(buf, unit < 2 || value >= 99.95 ? "%.0f%s" : "%.1f%s", value,
                                   units[unit]);
    }
}

void td_screen_share(struct td_buf *buf, double share)
{
    if (share > 0 && share < 0.01) {
        (void)td_buf_append(buf, TD_STR("<1%"));
    } else {
        (void)td_buf_append_format(buf, "%.0f%%", share * 100);
    }
}

void td_screen_span(struct td_buf *buf, double seconds)
{
    if (seconds < 0.0005) {
        (void)td_buf_append(buf, TD_STR("<1ms"));
    } else if (seconds < 0.9995) {
        (void)td_buf_append_format(buf, "%.0fms", seconds * 1000);
    } else if (seconds < 119.5) {
        (void)td_buf_append_format(buf, seconds < 9.95 ? "%.1fs" : "%.0fs", seconds);
    } else if (seconds < 7200) {
        (void)td_buf_append_format(buf, "%.0fm", seconds / 60);
    } else {
        (void)td_buf_append_format(buf, "%.0fh", seconds / 3600);
    }
}
