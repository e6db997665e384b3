/*
 * Columns of characters by ranges of Unicode; bytes that a terminal would act on are replaced; and
 * the ASCII spelling of characters, as text and as a stream.
 */
#include "base/os/screen_text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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

/* Besides control characters: invisible ones, and those that change the direction of text. */
static const struct screen_range screen_hidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},    {0x180e, 0x180e},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0xe000, 0xf8ff},    {0xfeff, 0xfeff},
    {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f}, {0xf0000, 0x10ffff},
};

#define SCREEN_CHAR_BYTES_MAX 4
#define SCREEN_BROKEN 0xfffd               /* stands for bytes that are no character */
#define SCREEN_STREAM_BYTES ((size_t)4096) /* written at once */
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

/* What ASCII has for a character. */
static td_str screen_spelling(uint32_t point)
{
    static const struct {
        uint32_t point;
        td_str text;
    } spellings[] = {
        {0x00b5, TD_STR_INIT("u")},   {0x00b7, TD_STR_INIT("*")},  {0x00d7, TD_STR_INIT("x")},
        {0x2013, TD_STR_INIT("-")},   {0x2014, TD_STR_INIT("-")},  {0x2018, TD_STR_INIT("'")},
        {0x2019, TD_STR_INIT("'")},   {0x201c, TD_STR_INIT("\"")}, {0x201d, TD_STR_INIT("\"")},
        {0x2026, TD_STR_INIT("...")}, {0x2192, TD_STR_INIT("->")}, {0x2212, TD_STR_INIT("-")},
        {0x2248, TD_STR_INIT("~")},   {0x2264, TD_STR_INIT("<=")}, {0x2265, TD_STR_INIT(">=")},
        {0x2588, TD_STR_INIT("#")},   {0x2591, TD_STR_INIT(".")},
    };
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        if (spellings[i].point == point) {
            return spellings[i].text;
        }
    }
    return TD_STR("?");
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
            (void)td_buf_append(buf, screen_spelling(point));
        }
        at += len > 0 ? len : 1;
    }
}

void td_screen_ascii(struct td_buf *buf, td_str text)
{
    for (size_t at = 0; at < text.len && !buf->is_full;) {
        td_str rest = td_str_slice(text, at, text.len);
        size_t len = td_str_utf8_char(rest);
        uint32_t point = len > 0 ? screen_point(rest.ptr, len) : SCREEN_BROKEN;
        td_str spelled = len == 1 ? td_str_slice(rest, 0, 1) : screen_spelling(point);
        (void)td_buf_append(buf, spelled); /* the same */
        at += len > 0 ? len : 1;
    }
}

void td_screen_ascii_json(struct td_buf *buf, td_str json)
{
    for (size_t at = 0; at < json.len && !buf->is_full;) {
        td_str rest = td_str_slice(json, at, json.len);
        size_t len = td_str_utf8_char(rest);
        uint32_t point = len > 0 ? screen_point(rest.ptr, len) : SCREEN_BROKEN;
        if (len == 1) {
            (void)td_buf_append_char(buf, rest.ptr[0]); /* the same */
        } else if (point < 0x10000) {
            (void)td_buf_append_format(buf, "\\u%04x", (unsigned)point);
        } else {
            (void)td_buf_append_format(buf, "\\u%04x\\u%04x",
                                       (unsigned)(0xd800 + ((point - 0x10000) >> 10)),
                                       (unsigned)(0xdc00 + ((point - 0x10000) & 0x3ff)));
        }
        at += len > 0 ? len : 1;
    }
}

bool td_screen_has_utf8(td_env_fn env, void *context)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = env(names[i], context);
        if (value && value[0] != '\0') {
            const char *dot = strchr(value, '.');
            return dot && (strncasecmp(dot, ".UTF-8", 6) == 0 || strncasecmp(dot, ".UTF8", 5) == 0);
        }
    }
    return false;
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

void td_screen_clip(struct td_buf *buf, td_str text, size_t columns_max, bool has_utf8)
{
    td_str dots = has_utf8 ? TD_STR("\u2026") : TD_STR("...");
    size_t dots_width = has_utf8 ? 1 : 3;
    if (td_screen_width(text) <= columns_max) {
        (void)td_buf_append(buf, text); /* as above: a buffer that is full ends short */
        return;
    }
    if (columns_max < dots_width) {
        return;
    }
    td_str start = td_screen_cut(text, columns_max - dots_width);
    size_t end = start.len;
    while (end > 0 && end < text.len && text.ptr[end] != ' ') {
        end--;
    }
    td_str kept = td_str_trim(td_str_slice(text, 0, end > 0 ? end : start.len));
    while (kept.len > 0 && memchr(",;:", kept.ptr[kept.len - 1], 3)) {
        kept.len--;
    }
    (void)td_buf_append(buf, kept);
    (void)td_buf_append(buf, dots);
}

/* ---- A stream ---- */

#define SCREEN_STREAMS_MAX 4 /* two are in use */

struct screen_stream {
    int fd;
    char rest[SCREEN_CHAR_BYTES_MAX]; /* the begin of a character whose end is yet to come */
    size_t rest_len;
    bool is_open;
};

static bool stream_send(int fd, td_str text)
{
    while (text.len > 0) {
        ssize_t written = write(fd, text.ptr, text.len);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        text = td_str_slice(text, written > 0 ? (size_t)written : 0, text.len);
    }
    return true;
}

/* Bytes at the end that may be the begin of a character. */
static size_t stream_open_bytes(td_str text)
{
    for (size_t n = 1; n < SCREEN_CHAR_BYTES_MAX && n <= text.len; n++) {
        unsigned char byte = (unsigned char)text.ptr[text.len - n];
        if (byte >= 0xc0) {
            size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            return n < whole ? n : 0;
        }
        if (byte < 0x80) {
            return 0;
        }
    }
    return 0;
}

/* The type is that of the C library. */
static ssize_t stream_write(void *cookie, const char *bytes, size_t len)
{
    struct screen_stream *stream = cookie;
    for (size_t at = 0; at < len;) {
        char piece[SCREEN_STREAM_BYTES];
        size_t had = stream->rest_len;
        size_t more = len - at < sizeof(piece) - had ? len - at : sizeof(piece) - had;
        memcpy(piece, stream->rest, had);
        memcpy(piece + had, bytes + at, more);
        td_str text = {.ptr = piece, .len = had + more};
        stream->rest_len = stream_open_bytes(text);
        text.len -= stream->rest_len;
        memcpy(stream->rest, piece + text.len, stream->rest_len);
        td_auto_buf ascii = td_buf_capped(3 * SCREEN_STREAM_BYTES);
        td_screen_ascii(&ascii, text);
        if (!stream_send(stream->fd, td_buf_str(&ascii))) {
            return 0; /* an error of the stream */
        }
        at += more;
    }
    return (ssize_t)len;
}

static int stream_close(void *cookie)
{
    struct screen_stream *stream = cookie;
    stream->is_open = false;
    return 0;
}

/* Standard output and standard error are never closed, so what they need is the process' own. */
static struct screen_stream screen_streams[SCREEN_STREAMS_MAX];

FILE *td_screen_stream(int fd, int mode)
{
    size_t free_slot = 0;
    while (free_slot < SCREEN_STREAMS_MAX && screen_streams[free_slot].is_open) {
        free_slot++;
    }
    if (free_slot == SCREEN_STREAMS_MAX) {
        return NULL;
    }
    struct screen_stream *stream = &screen_streams[free_slot];
    *stream = (struct screen_stream){.fd = fd, .is_open = true};
    const cookie_io_functions_t functions = {.write = stream_write, .close = stream_close};
    FILE *file = fopencookie(stream, "w", functions);
    if (!file) {
        stream->is_open = false;
        return NULL;
    }
    (void)setvbuf(file, NULL, mode, 0); /* else it is buffered as the library likes */
    return file;
}
