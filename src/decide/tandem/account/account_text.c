/* The account laid out for a terminal: a word in the first column, sentences beside it. */
#include "decide/tandem/account/account.h"

#define LABEL_WIDTH 8

/* One line; the label only on the first of its block. */
static void write_line(const char *label, td_str text, struct td_buf *out)
{
    (void)td_buf_append_format(out, "  %-*s%.*s\n", LABEL_WIDTH, label, TD_STR_ARG(text));
}

static void write_wish(const char *label, const char *axis, const struct td_json *wish,
                       struct td_buf *out)
{
    td_str why = td_json_text(wish, "why");
    td_str says = td_json_text(wish, "says");
    if (why.len == 0) {
        (void)td_buf_append_format(out, "  %-*s%-14s%.*s\n", LABEL_WIDTH, label, axis,
                                   TD_STR_ARG(says));
        return;
    }
    (void)td_buf_append_format(out, "  %-*s%-14s%-20.*s  %.*s\n", LABEL_WIDTH, label, axis,
                               TD_STR_ARG(says), TD_STR_ARG(why));
}

static void write_wanted(const struct td_json *wanted, struct td_buf *out)
{
    write_wish("wanted", "horizontally", td_json_get(wanted, TD_STR("horizontal")), out);
    const struct td_json *list = td_json_get(wanted, TD_STR("vertical"));
    const char *axis = "vertically";
    for (const struct td_json *wish = td_json_first_item(list); wish; wish = wish->next) {
        write_wish("", axis, wish, out);
        axis = "";
    }
    if (list->count == 0) {
        (void)td_buf_append_format(out, "  %-*s%-14sunknown\n", LABEL_WIDTH, "", axis);
    }
}

/* A list of sentences, or of objects with one each. */
static void write_list(const char *label, const struct td_json *list, const char *otherwise,
                       struct td_buf *out)
{
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        bool is_text = td_json_is(item, TD_JSON_TYPE_STRING);
        write_line(label, is_text ? item->text : td_json_text(item, "says"), out);
        label = "";
    }
    if (list->count == 0 && otherwise) {
        write_line(label, td_str_from(otherwise), out);
    }
}

static void write_changes(const struct td_json *list, struct td_buf *out)
{
    if (list->count == 0) {
        return;
    }
    (void)td_buf_append(out, TD_STR("  would change it:"));
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        (void)td_buf_append_format(out, "%s %.*s", item == td_json_first_item(list) ? " " : "; ",
                                   TD_STR_ARG(item->text));
    }
    (void)td_buf_append_char(out, '\n');
}

void td_tandem_account_write(struct td_arena *arena, const struct td_tandem_account *account,
                             enum td_tandem_account_format format, struct td_buf *out)
{
    const struct td_json *tree = td_tandem_account_json(arena, account);
    if (format == TD_TANDEM_ACCOUNT_JSON) {
        td_json_write(tree, &(struct td_json_format){.indent = 2}, out);
        (void)td_buf_append_char(out, '\n');
        return;
    }
    (void)td_buf_append_format(out, "%.*s\n\n", TD_STR_ARG(td_json_text(tree, "title")));
    write_wanted(td_json_get(tree, TD_STR("wanted")), out);
    write_list("did", td_json_get_path(tree, "did.says"), NULL, out);
    write_list("held", td_json_get(tree, TD_STR("held")), "nothing", out);
    write_list("next", td_json_get(tree, TD_STR("next")), "no pending window", out);
    write_changes(td_json_get(tree, TD_STR("wouldChange")), out);
}
