/*
 * The tree's parser: the state machine of json_scan.h with a node for every value. Each new
 * member's name must be looked for among those before it, since the last of two wins. Three steps
 * keep that cheap: a word of 64 bits in each open object remembers which short hashes it has seen,
 * so that a name with a new one is known to be new; otherwise up to TD_JSON_INDEX_FROM members are
 * compared one by one; and larger objects have their keyed index, whatever names arrive.
 */
#include "base/json/json.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/json/json_index.h"
#include "base/json/json_node.h"
#include "base/json/json_problem.h"
#include "base/json/json_scan.h"

struct parse_frame {
    struct td_json *node;
    uint64_t seen; /* one bit for each short hash of a name in it */
};

struct parse_state {
    struct td_json_reader reader;
    struct td_arena *arena;
    struct td_json_problems *problems; /* may be NULL */
    size_t duplicates;                 /* met so far */
    struct td_json *root;
    struct td_json *parent; /* the open collection, or NULL */
    uint64_t seen;          /* of the parent */
    td_str key;             /* of the member whose value comes next */
    uint32_t tag;           /* of the key, when the parent has an index */
    const char *line_at;    /* lines are counted up to here; NULL: not at all */
    uint32_t line;
    struct parse_frame frames[TD_JSON_DEPTH_MAX];
};

static void parse_count_lines(struct parse_state *state, const char *at)
{
    const char *from = state->line_at;
    while (from < at && (from = memchr(from, '\n', (size_t)(at - from)))) {
        state->line++;
        from++;
    }
    state->line_at = at;
}

static td_str parse_text(struct parse_state *state)
{
    if (!state->reader.has_escape) {
        return state->reader.text;
    }
    return td_json_reader_decode(&state->reader, state->arena);
}

/* A bit of a name's short hash: its length, first and last byte tell most siblings apart. */
static uint64_t parse_seen_bit(td_str key)
{
    if (key.len == 0) {
        return 1;
    }
    unsigned first = (unsigned char)key.ptr[0];
    unsigned last = (unsigned char)key.ptr[key.len - 1];
    return (uint64_t)1 << (((unsigned)key.len * 11 + first * 5 + last * 3) & 63);
}

/* `type` is the kind of the value that comes second: a collection is counted as open already. */
static void parse_report_duplicate(struct parse_state *state, enum td_json_type type)
{
    if (!state->problems) {
        return;
    }
    state->duplicates++;
    if (state->duplicates > TD_JSON_DUPLICATES_EXAMINED_MAX) {
        state->problems->is_cut = true;
        return;
    }
    const struct td_json *path[TD_JSON_DEPTH_MAX];
    uint32_t depth = state->reader.depth - (type >= TD_JSON_TYPE_ARRAY);
    for (uint32_t i = 0; i < depth; i++) {
        path[i] = i + 1 < depth ? state->frames[i + 1].node : state->parent;
    }
    td_json_problem_duplicate(state->problems, path, depth, state->key);
}

/* The member that has the coming value's name already, or NULL. */
static struct td_json *parse_find_duplicate(struct parse_state *state)
{
    const struct td_json *parent = state->parent;
    if (parent->index) {
        state->tag = td_json_index_tag(state->key);
        return td_json_index_find(parent, state->key, state->tag, NULL);
    }
    uint64_t bit = parse_seen_bit(state->key);
    if (!(state->seen & bit)) {
        state->seen |= bit;
        return NULL;
    }
    for (struct td_json *member = parent->head_child; member; member = member->next) {
        if (td_str_equal(member->key, state->key)) {
            return member;
        }
    }
    return NULL;
}

static void parse_link_member(struct parse_state *state, struct td_json *node)
{
    struct td_json *parent = state->parent;
    struct td_json *prev = parent->tail_child;
    json_node_link(parent, node);
    if (parent->index) {
        td_json_index_add(state->arena, parent, node, state->tag, prev);
    } else if (parent->count > TD_JSON_INDEX_FROM) {
        td_json_index_build(state->arena, parent);
    }
}

/* The place for the coming value, linked to its parent: a new node, or that of the member that it
 * replaces. */
JSON_INLINE struct td_json *parse_place(struct parse_state *state, enum td_json_type type)
{
    struct td_json *parent = state->parent;
    if (parent && parent->type == TD_JSON_TYPE_OBJECT) {
        struct td_json *old = parse_find_duplicate(state);
        if (old) {
            parse_report_duplicate(state, type);
            *old = (struct td_json){.type = (uint8_t)type, .key = old->key, .next = old->next};
            return old;
        }
        struct td_json *member = json_node_alloc(state->arena);
        *member = (struct td_json){.type = (uint8_t)type, .key = state->key};
        parse_link_member(state, member);
        return member;
    }
    struct td_json *node = json_node_alloc(state->arena);
    *node = (struct td_json){.type = (uint8_t)type, .key = TD_STR_EMPTY};
    if (parent) {
        json_node_link(parent, node);
    } else {
        state->root = node;
    }
    return node;
}

/* `depth` collections were open before this one. */
static void parse_open(struct parse_state *state, struct td_json *node)
{
    state->frames[state->reader.depth - 1] =
        (struct parse_frame){.node = state->parent, .seen = state->seen};
    state->parent = node;
    state->seen = 0;
}

static void parse_close(struct parse_state *state)
{
    struct parse_frame frame = state->frames[state->reader.depth];
    state->parent = frame.node;
    state->seen = frame.seen;
}

JSON_INLINE struct td_json *parse_value(struct parse_state *state, enum td_json_token token)
{
    struct td_json *node;
    switch (token) {
    case TD_JSON_BEGIN_OBJECT:
        node = parse_place(state, TD_JSON_TYPE_OBJECT);
        parse_open(state, node);
        return node;
    case TD_JSON_BEGIN_ARRAY:
        node = parse_place(state, TD_JSON_TYPE_ARRAY);
        parse_open(state, node);
        return node;
    case TD_JSON_STRING:
        node = parse_place(state, TD_JSON_TYPE_STRING);
        node->text = parse_text(state);
        node->is_escaped = state->reader.has_escape;
        return node;
    case TD_JSON_NUMBER:
        node = parse_place(state, TD_JSON_TYPE_NUMBER);
        node->text = state->reader.text;
        return node;
    case TD_JSON_NULL:
        return parse_place(state, TD_JSON_TYPE_NULL);
    default:
        node = parse_place(state, TD_JSON_TYPE_BOOL);
        node->boolean = token == TD_JSON_TRUE;
        return node;
    }
}

static int parse_run(struct parse_state *state, struct td_error *err)
{
    const char *at = state->reader.at;
    const char *end = state->reader.end;
    uint8_t expect = state->reader.expect;
    for (;;) {
        enum td_json_token token = TD_JSON_ERROR;
        at = json_scan_step(&state->reader, at, end, &expect, &token);
        if (!at) {
            return td_json_reader_error(&state->reader, err);
        }
        if (token == TD_JSON_KEY) {
            state->key = parse_text(state);
            continue;
        }
        if (token == TD_JSON_END_OBJECT || token == TD_JSON_END_ARRAY) {
            parse_close(state);
            continue;
        }
        if (token == TD_JSON_END) {
            return td_arena_check(state->arena, err);
        }
        struct td_json *node = parse_value(state, token);
        if (state->line_at) {
            parse_count_lines(state, at);
            node->line = state->line;
        }
        if (state->arena->used_bytes > state->arena->max_bytes) {
            return td_arena_check(state->arena, err);
        }
    }
}

int td_json_parse(struct td_arena *arena, td_str text, const struct td_json_options *options,
                  struct td_json **ret, struct td_error *err)
{
    struct td_json_options defaults = {0};
    options = options ? options : &defaults;
    size_t bytes_max = options->bytes_max > 0 ? options->bytes_max : TD_JSON_BYTES_MAX;
    if (text.len > bytes_max) {
        return td_error_set(err, TD_LIMIT, "JSON text of %zu bytes is larger than %zu bytes",
                            text.len, bytes_max);
    }
    if (options->copy_strings) {
        text = td_arena_copy_str(arena, text); /* one copy costs less than one for each string */
    }
    struct parse_state state;
    td_json_reader_init(&state.reader, text, options->depth_max);
    state.arena = arena;
    state.problems = options->problems;
    state.duplicates = 0;
    state.root = NULL;
    state.parent = NULL;
    state.seen = 0;
    state.key = TD_STR_EMPTY;
    state.line_at = options->track_lines ? state.reader.begin : NULL;
    state.line = options->first_line > 0 ? options->first_line : 1;
    int code = parse_run(&state, err);
    if (code < 0) {
        return code;
    }
    *ret = state.root;
    return TD_OK;
}

struct td_json *td_json_parse_own(struct td_arena *arena, const char *text)
{
    size_t max_bytes = arena->max_bytes;
    struct td_json *tree = NULL;
    arena->max_bytes = SIZE_MAX;
    int code = td_json_parse(arena, td_str_from(text), NULL, &tree, NULL);
    arena->max_bytes = max_bytes;
    td_assert(code == TD_OK);
    return tree;
}
