#include "cli/up/screen_number.h"

/* Results of appending are not checked: a cell that is full is cut. */

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
