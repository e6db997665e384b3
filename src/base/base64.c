#include "base/base64.h"

#include <stddef.h>
#include <stdint.h>

static const char base64_standard[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void td_base64_write(td_str bytes, enum td_base64 alphabet, struct td_buf *out)
{
    const char *digits = alphabet == TD_BASE64_URL ? base64_url : base64_standard;
    const unsigned char *in = (const unsigned char *)bytes.ptr;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)in[i] << 16;
        group |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        group |= left > 2 ? (uint32_t)in[i + 2] : 0;
        char text[4] = {digits[group >> 18 & 63], digits[group >> 12 & 63], digits[group >> 6 & 63],
                        digits[group & 63]};
        size_t len = left > 2 ? 4 : left + 1;
        (void)td_buf_append(out, (td_str){.ptr = text, .len = len}); /* a full buffer stays full */
        for (; len < 4 && alphabet == TD_BASE64_STANDARD; len++) {
            (void)td_buf_append_char(out, '=');
        }
    }
}

static int base64_value(char c, enum td_base64 alphabet)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (alphabet == TD_BASE64_URL) {
        return c == '-' ? 62 : c == '_' ? 63 : -1;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The last group holds 2 or 3 digits; pads are what was written in place of the others. */
static bool base64_is_end(size_t digits, size_t pads, enum td_base64 alphabet)
{
    if (alphabet == TD_BASE64_URL) {
        return digits != 1 && pads == 0;
    }
    return digits + pads == 0 || digits + pads == 4;
}

bool td_base64_read(struct td_arena *arena, td_str text, enum td_base64 alphabet, td_str *ret)
{
    char *out = td_arena_alloc(arena, text.len / 4 * 3 + 3);
    size_t len = 0;
    uint32_t group = 0;
    size_t digits = 0; /* of the current group of four */
    size_t pads = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((c == '\n' || c == '\r') && alphabet == TD_BASE64_STANDARD) {
            continue;
        }
        int value = base64_value(c, alphabet);
        bool is_pad = c == '=' && digits + pads >= 2 && digits + pads < 4;
        if (is_pad) {
            pads++;
        } else if (value < 0 || pads > 0) {
            return false;
        } else {
            group = group << 6 | (uint32_t)value;
            digits++;
        }
        if (digits == 4) {
            out[len++] = (char)(group >> 16 & 0xFF);
            out[len++] = (char)(group >> 8 & 0xFF);
            out[len++] = (char)(group & 0xFF);
            group = 0;
            digits = 0;
        }
    }
    if (!base64_is_end(digits, pads, alphabet)) {
        return false;
    }
    if (digits > 0) {
        group <<= 6 * (4 - digits);
        out[len++] = (char)(group >> 16 & 0xFF);
        if (digits == 3) {
            out[len++] = (char)(group >> 8 & 0xFF);
        }
    }
    *ret = (td_str){.ptr = out, .len = len};
    return true;
}
