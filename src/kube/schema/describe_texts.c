/*
 * The texts are in describe_texts.inc: of a type (without a field), of a field of one type, and of
 * a field name wherever it means the same (without a type). The type of a custom kind's part is its
 * path from the kind's name on.
 */
#include "kube/schema/describe_texts.h"

#include <stdlib.h>

struct describe_row {
    const char *type;  /* empty: of any */
    const char *field; /* empty: of the type itself */
    const char *text;
};

static const struct describe_row describe_rows[] = {
#include "kube/schema/describe_texts.inc"
};

struct describe_key {
    td_str type;
    td_str field;
};

static int describe_compare(const void *key, const void *item)
{
    const struct describe_key *wanted = key;
    const struct describe_row *row = item;
    int order = td_str_compare(wanted->type, td_str_from(row->type));
    return order != 0 ? order : td_str_compare(wanted->field, td_str_from(row->field));
}

static const char *describe_find(td_str type, td_str field)
{
    const struct describe_key wanted = {.type = type, .field = field};
    const struct describe_row *row = bsearch(&wanted, describe_rows, TD_COUNT(describe_rows),
                                             sizeof(describe_rows[0]), describe_compare);
    return row ? row->text : NULL;
}

td_str td_describe_text(td_str type, td_str field)
{
    const char *text = describe_find(type, field);
    bool is_part = td_str_find(type, '.', 0) < type.len;
    return td_str_from(text || is_part ? text : describe_find(TD_STR_EMPTY, field));
}
