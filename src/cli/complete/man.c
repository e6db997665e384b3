/*
 * Help text to mdoc: words are filled into short lines, each sentence begins one, and what a
 * formatter would take for a request is escaped. Manual pages are dated by the commit.
 */
#include "cli/complete/man.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/complete/help.h"
#include "cli/options.h"
#include "cli/run/run_flags.h"

#include <tandem_commit.h> /* written by the build */

#define MAN_WIDTH 72
#define MAN_TITLE_BYTES 64

/* As it stands, but for what formatters read. */
static void man_raw(td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        if (byte == '\\') {
            (void)fputs("\\e", stdout); /* main looks at the stream's state, here and below */
        } else if (byte == '-') {
            (void)fputs("\\-", stdout); /* so that it can be copied */
        } else if (byte != '`') {
            (void)putchar(byte);
        }
    }
}

static bool man_ends_sentence(td_str word)
{
    char last = word.ptr[word.len - 1];
    return last == '.' || last == '!' || last == '?';
}

/* A paragraph, in lines of its own. */
static void man_fill(td_str text)
{
    size_t column = 0;
    for (td_str word; td_help_next_word(&text, &word);) {
        if (column > 0 && column + 1 + word.len > MAN_WIDTH) {
            (void)putchar('\n');
            column = 0;
        }
        if (column > 0) {
            (void)putchar(' ');
        } else if (word.ptr[0] == '.' || word.ptr[0] == '\'') {
            (void)fputs("\\&", stdout);
        }
        man_raw(word);
        column += 1 + word.len;
        if (man_ends_sentence(word)) {
            (void)putchar('\n');
            column = 0;
        }
    }
    if (column > 0) {
        (void)putchar('\n');
    }
}

/* Lines as they are. */
static void man_literal(td_str lines, size_t indent)
{
    (void)puts(".Bd -literal -compact");
    for (td_str line; td_help_next_line(&lines, &line);) {
        (void)fputs("\\&", stdout);
        man_raw(td_str_slice(line, line.len < indent ? line.len : indent, line.len));
        (void)putchar('\n');
    }
    (void)puts(".Ed");
}

static void man_head(const char *name, td_str summary)
{
    char title[MAN_TITLE_BYTES];
    size_t len = 0;
    for (; name[len] != '\0' && len + 1 < sizeof(title); len++) {
        title[len] = name[len];
        if (name[len] >= 'a' && name[len] <= 'z') {
            title[len] = (char)(name[len] - 'a' + 'A');
        }
    }
    title[len] = '\0';
    (void)printf(".Dd %s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd ", TANDEM_COMMIT_DATE, title, name);
    td_str own = TD_STR("tandem "); /* the name stands before it already */
    size_t begin = td_str_starts_with(summary, own) ? own.len : 0;
    size_t end = summary.len - td_str_ends_with(summary, TD_STR("."));
    man_raw(td_str_slice(summary, begin, end));
    (void)putchar('\n');
}

static void man_usage(td_str text)
{
    (void)puts(".Sh SYNOPSIS");
    man_literal(text, strlen("usage: ")); /* which further lines have as spaces */
}

/* The sentences of paragraphs go to where readers of manuals look for them. */
enum man_place { MAN_DESCRIPTION, MAN_EXIT, MAN_GUIDE };

static td_str man_part(td_str text, enum man_place place)
{
    const td_str exits = TD_STR("Exit status:");
    const td_str guide = TD_STR("Guide:");
    size_t begin[3] = {0, text.len, text.len};
    for (size_t i = text.len; i-- > 0;) {
        td_str here = td_str_slice(text, i, text.len);
        begin[MAN_EXIT] = td_str_starts_with(here, exits) ? i : begin[MAN_EXIT];
        begin[MAN_GUIDE] = td_str_starts_with(here, guide) ? i : begin[MAN_GUIDE];
    }
    begin[MAN_EXIT] = begin[MAN_EXIT] < begin[MAN_GUIDE] ? begin[MAN_EXIT] : begin[MAN_GUIDE];
    size_t end = place == MAN_GUIDE ? text.len : begin[place + 1];
    size_t label = place == MAN_EXIT ? exits.len : place == MAN_GUIDE ? guide.len : 0;
    td_str part = td_str_slice(text, begin[place], end);
    return part.len > label ? td_str_trim(td_str_slice(part, label, part.len)) : TD_STR_EMPTY;
}

static void man_options(struct td_arena *arena, const struct td_help *help)
{
    bool is_begun = false;
    for (size_t i = 0; i < help->block_count; i++) {
        td_str rows = help->blocks[i].kind == TD_HELP_ROWS ? help->blocks[i].text : TD_STR_EMPTY;
        for (td_str head, text; td_help_next_row(arena, &rows, &head, &text);) {
            (void)fputs(is_begun ? "" : ".Sh OPTIONS\n.Bl -tag -width Ds\n", stdout);
            is_begun = true;
            (void)fputs(".It Li ", stdout);
            for (td_str word; td_help_next_word(&head, &word);) {
                (void)fputs("\\&", stdout); /* no word of it is a macro or a delimiter */
                man_raw(word);
                (void)fputs(head.len > 0 ? "\\ " : "", stdout);
            }
            (void)putchar('\n');
            man_fill(text);
        }
    }
    (void)fputs(is_begun ? ".El\n" : "", stdout);
}

/* The flags of the controllers, as `tandem run --flags` has them. */
static void man_flags(void)
{
    struct td_run_flag flag;
    (void)puts(".Sh FLAGS");
    (void)puts("All flags with their defaults.\n.Ql _\nmay stand for\n.Ql \\- .");
    for (size_t i = 0; td_run_flags_at(i, &flag); i++) {
        td_auto_buf value = td_buf_capped(TD_OBJECT_BYTES_MAX);
        if (flag.group) {
            (void)printf("%s.Ss %s\n.Bl -tag -width Ds\n", i > 0 ? ".El\n" : "", flag.group);
        }
        td_run_flags_default(i, &value);
        (void)fputs(".It Li \\&\\-\\-", stdout);
        man_raw(td_str_from(flag.name));
        (void)putchar('\n');
        td_auto_buf text = td_buf_capped(TD_OBJECT_BYTES_MAX);
        (void)td_buf_append_format(&text, value.len > 0 ? "%s (%.*s)" : "%s", flag.help,
                                   (int)value.len, value.ptr);
        man_fill(td_buf_str(&text));
    }
    (void)puts(".El");
}

static void man_paragraphs(const struct td_help *help, enum man_place place, const char *title)
{
    bool is_begun = false;
    for (size_t i = 0; i < help->block_count; i++) {
        const struct td_help_block *block = &help->blocks[i];
        td_str part =
            block->kind == TD_HELP_PARAGRAPH ? man_part(block->text, place) : TD_STR_EMPTY;
        if (part.len > 0) {
            (void)printf("%s%s\n", is_begun ? ".Pp" : ".Sh ", is_begun ? "" : title);
            is_begun = true;
            man_fill(part);
        }
    }
}

/* Behind the other manuals: the page of the guide. */
static void man_guide(const struct td_help *help)
{
    for (size_t i = 0; i < help->block_count; i++) {
        td_str page = help->blocks[i].kind == TD_HELP_PARAGRAPH
                          ? man_part(help->blocks[i].text, MAN_GUIDE)
                          : TD_STR_EMPTY;
        if (page.len > 0) {
            (void)puts(".Pp\nIn the guide:");
            man_fill(page);
        }
    }
}

static void man_blocks(const struct td_help *help, enum td_help_kind kind)
{
    for (size_t i = 0; i < help->block_count; i++) {
        const struct td_help_block *block = &help->blocks[i];
        if (block->kind == kind && kind == TD_HELP_USAGE) {
            man_usage(block->text);
        } else if (block->kind == kind) {
            (void)puts(".Sh EXAMPLES");
            man_literal(block->text, 2);
        }
    }
}

int td_man_print(const struct td_options *options)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_help help = td_help_read(&arena, options->help);
    td_str name = td_arena_format(&arena, "tandem-%s", options->command);
    man_head(name.ptr, help.summary);
    man_blocks(&help, TD_HELP_USAGE);
    man_paragraphs(&help, MAN_DESCRIPTION, "DESCRIPTION");
    man_options(&arena, &help);
    if (strcmp(options->command, "run") == 0) {
        man_flags();
    }
    man_paragraphs(&help, MAN_EXIT, "EXIT STATUS");
    man_blocks(&help, TD_HELP_EXAMPLES);
    (void)puts(".Sh SEE ALSO\n.Xr tandem 1 ,\n.Xr tandem-scenario 5 ,\n.Xr tandem-concepts 7");
    man_guide(&help);
    return TD_EXIT_DONE;
}

void td_man_print_program(const char *text, const struct td_command *commands, size_t count)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_help help = td_help_read(&arena, text);
    man_head("tandem", help.summary);
    man_blocks(&help, TD_HELP_USAGE);
    (void)puts(".Sh COMMANDS\n.Bl -tag -width Ds");
    for (size_t i = 0; i < count; i++) {
        (void)printf(".It Xr tandem-%s 1\n", commands[i].name);
        man_fill(td_str_from(commands[i].summary));
    }
    (void)puts(".El");
    man_paragraphs(&help, MAN_DESCRIPTION, "DESCRIPTION");
    man_paragraphs(&help, MAN_EXIT, "EXIT STATUS");
    man_blocks(&help, TD_HELP_EXAMPLES);
    (void)puts(".Sh SEE ALSO\n.Xr tandem-scenario 5 ,\n.Xr tandem-concepts 7");
}
