/*
 * Reads a help text by its layout, which all commands share: blocks parted by empty lines; two
 * spaces before an example or a row of options; two spaces or a line end between an option and
 * what it does; more than two before what goes on.
 */
#include "cli/complete/help.h"

#include "base/assert.h"

#define HELP_INDENT 2
#define HELP_BLOCKS_MAX 32  /* of one command */
#define HELP_OPTIONS_MAX 64 /* likewise */

bool td_help_next_line(td_str *rest, td_str *ret)
{
    if (rest->len == 0) {
        return false;
    }
    size_t end = td_str_find(*rest, '\n', 0);
    *ret = td_str_slice(*rest, 0, end);
    *rest = td_str_slice(*rest, end < rest->len ? end + 1 : end, rest->len);
    return true;
}

bool td_help_next_word(td_str *rest, td_str *ret)
{
    size_t at = 0;
    while (at < rest->len && (rest->ptr[at] == ' ' || rest->ptr[at] == '\n')) {
        at++;
    }
    size_t end = at;
    while (end < rest->len && rest->ptr[end] != ' ' && rest->ptr[end] != '\n') {
        end++;
    }
    *ret = td_str_slice(*rest, at, end);
    *rest = td_str_slice(*rest, end, rest->len);
    return ret->len > 0;
}

static size_t help_indent(td_str line)
{
    size_t count = 0;
    while (count < line.len && line.ptr[count] == ' ') {
        count++;
    }
    return count;
}

/* The place of two spaces in a row, or the end. */
static size_t help_gap(td_str line)
{
    for (size_t i = 0; i + 1 < line.len; i++) {
        if (line.ptr[i] == ' ' && line.ptr[i + 1] == ' ') {
            return i;
        }
    }
    return line.len;
}

bool td_help_next_row(struct td_arena *arena, td_str *rest, td_str *ret_head, td_str *ret_text)
{
    td_str line;
    if (!td_help_next_line(rest, &line)) {
        return false;
    }
    line = td_str_trim(line);
    size_t gap = help_gap(line);
    td_str head = td_str_slice(line, 0, gap);
    td_str text = td_str_trim(td_str_slice(line, gap, line.len));
    td_str after = *rest;
    while (td_help_next_line(&after, &line) && help_indent(line) > HELP_INDENT) {
        td_str more = td_str_trim(line);
        text = text.len > 0
                   ? td_arena_format(arena, "%.*s %.*s", TD_STR_ARG(text), TD_STR_ARG(more))
                   : more;
        *rest = after;
    }
    *ret_head = head;
    *ret_text = text;
    return true;
}

/* "--name" or "--name=value". */
static struct td_help_option help_named(td_str word, char letter, td_str text)
{
    size_t equals = td_str_find(word, '=', 0);
    return (struct td_help_option){
        .letter = letter,
        .name = td_str_slice(word, 2, equals),
        .value = td_str_slice(word, equals < word.len ? equals + 1 : word.len, word.len),
        .text = text,
    };
}

/* "-o, --output FORMAT", "--cpu-min, --memory-min QUANTITY", "--min-samples N, --min-history SPAN",
 * "SCENARIO". */
static void help_add_row(struct td_help *help, td_str head, td_str text)
{
    size_t first = help->option_count;
    char letter = 0;
    for (td_str word; td_help_next_word(&head, &word);) {
        td_assert(help->option_count < HELP_OPTIONS_MAX);
        word = td_str_ends_with(word, TD_STR(",")) ? td_str_slice(word, 0, word.len - 1) : word;
        if (td_str_starts_with(word, TD_STR("--"))) {
            help->options[help->option_count++] = help_named(word, letter, text);
            letter = 0;
        } else if (word.ptr[0] == '-') {
            letter = word.ptr[1];
        } else if (help->option_count > first) {
            td_str *value = &help->options[help->option_count - 1].value;
            *value = value->len > 0 ? *value : word; /* "--from prometheus URL": the first */
        } else {
            help->options[help->option_count++] =
                (struct td_help_option){.name = word, .text = text, .is_word = true};
        }
    }
    for (size_t i = first; i + 1 < help->option_count; i++) { /* one value for both */
        struct td_help_option *option = &help->options[i];
        option->value =
            option->value.len > 0 ? option->value : help->options[help->option_count - 1].value;
    }
}

static enum td_help_kind help_kind(td_str line, bool has_usage)
{
    if (td_str_starts_with(line, TD_STR("usage:"))) {
        return TD_HELP_USAGE;
    }
    if (help_indent(line) < HELP_INDENT) {
        return TD_HELP_PARAGRAPH;
    }
    return has_usage ? TD_HELP_ROWS : TD_HELP_EXAMPLES;
}

struct td_help td_help_read(struct td_arena *arena, const char *text)
{
    struct td_help help = {.blocks = td_arena_array(arena, struct td_help_block, HELP_BLOCKS_MAX),
                           .options =
                               td_arena_array(arena, struct td_help_option, HELP_OPTIONS_MAX)};
    td_str rest = td_str_from(text);
    struct td_help_block *block = NULL; /* that goes on */
    bool has_usage = false;
    (void)td_help_next_line(&rest, &help.summary); /* an empty text has an empty one */
    for (td_str line; td_help_next_line(&rest, &line);) {
        bool begins_rows = block && block->kind == TD_HELP_PARAGRAPH &&
                           help_kind(line, has_usage) == TD_HELP_ROWS; /* a heading stands above */
        block = begins_rows ? NULL : block;
        if (line.len == 0) {
            block = NULL;
        } else if (block) {
            block->text.len = (size_t)(line.ptr + line.len - block->text.ptr);
        } else {
            td_assert(help.block_count < HELP_BLOCKS_MAX);
            block = &help.blocks[help.block_count++];
            *block = (struct td_help_block){help_kind(line, has_usage), line};
            has_usage = has_usage || block->kind == TD_HELP_USAGE;
        }
    }
    for (size_t i = 0; i < help.block_count; i++) {
        td_str rows = help.blocks[i].kind == TD_HELP_ROWS ? help.blocks[i].text : TD_STR_EMPTY;
        for (td_str head, what; td_help_next_row(arena, &rows, &head, &what);) {
            help_add_row(&help, head, what);
        }
    }
    return help;
}

const struct td_help_option *td_help_find(const struct td_help *help, td_str name)
{
    for (size_t i = 0; i < help->option_count; i++) {
        if (!help->options[i].is_word && td_str_equal(help->options[i].name, name)) {
            return &help->options[i];
        }
    }
    return NULL;
}
