#include "web/json_writer.h"

#include <math.h>

#include "base/json/json.h"

static void writer_begin(struct td_json_writer *writer, const char *name)
{
    if (writer->has_item) {
        (void)td_buf_append_char(writer->out, ',');
    }
    writer->has_item = true;
    if (name) {
        (void)td_buf_append_format(writer->out, "\"%s\":", name);
    }
}

void td_writer_open(struct td_json_writer *writer, const char *name, char bracket)
{
    writer_begin(writer, name);
    (void)td_buf_append_char(writer->out, bracket);
    writer->has_item = false;
}

void td_writer_close(struct td_json_writer *writer, char bracket)
{
    (void)td_buf_append_char(writer->out, bracket);
    writer->has_item = true;
}

void td_writer_text(struct td_json_writer *writer, const char *name, td_str text)
{
    writer_begin(writer, name);
    td_json_write_string(text, true, writer->out);
}

void td_writer_int(struct td_json_writer *writer, const char *name, int64_t value)
{
    writer_begin(writer, name);
    (void)td_buf_append_int64(writer->out, value);
}

void td_writer_bool(struct td_json_writer *writer, const char *name, bool value)
{
    writer_begin(writer, name);
    (void)td_buf_append(writer->out, value ? TD_STR("true") : TD_STR("false"));
}

void td_writer_null(struct td_json_writer *writer, const char *name)
{
    writer_begin(writer, name);
    (void)td_buf_append(writer->out, TD_STR("null"));
}

void td_writer_number(struct td_json_writer *writer, const char *name, double value, int places)
{
    double scale = places == 0 ? 1 : places == 1 ? 10 : places == 2 ? 100 : 10000;
    double rounded = round(value * scale) / scale;
    if (!isfinite(rounded) || fabs(rounded) > 9e15) {
        td_writer_null(writer, name);
        return;
    }
    writer_begin(writer, name);
    if (rounded == (double)(int64_t)rounded) {
        (void)td_buf_append_int64(writer->out, (int64_t)rounded);
    } else {
        td_json_write_double(rounded, writer->out);
    }
}

void td_writer_known(struct td_json_writer *writer, const char *name, double value, int places)
{
    if (value < 0) {
        td_writer_null(writer, name);
    } else {
        td_writer_number(writer, name, value, places);
    }
}

void td_writer_raw(struct td_json_writer *writer, const char *name, td_str json)
{
    writer_begin(writer, name);
    (void)td_buf_append(writer->out, json);
}
