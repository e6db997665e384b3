/*
 * One pass over libyaml's events straight into the JSON tree. A stack of frames holds the open
 * collections; a finished value is put where the top frame says. What needs care:
 *
 *  1. Aliases. An anchor remembers its finished node (a scalar as resolved, because a key and a
 *     value of the same scalar differ); an alias copies it. Anchors are known from their first byte
 *     on, so an alias inside its own anchor is seen as such and refused: it has no finite value.
 * The copies are counted before they are made, against our own cap and against the share that
 *     Kubernetes' library allows, so that a small text cannot make a large tree.
 *  2. Merge keys. "<<: {...}" writes straight into the mapping it stands in, as a list of such
 *     mappings does; only merges that carry an anchor are built on their own and copied, and those
 *     copies count too. Writing through, not moving level by level, keeps nested merges linear.
 *     A merge that sets a key which is there already, or is set later, is a duplicate: that is what
 *     the strict reader of the library does.
 *  3. Depth. It is checked before libyaml's own stacks can grow, and the height of an anchored
 * value is added to the depth of its alias, so no tree is deeper than the cap.
 *  4. libyaml's own cost. It looks at every open bracket for each token, so the product of the two
 * is bounded; and it compares each %TAG directive with all others of its document before it gives
 *     the first event, so they are counted beforehand.
 *  5. libyaml reads three things that the library's reader does not, or takes for something else:
 *     "%YAML 1.2", a '?' inside an unquoted scalar between brackets, and a tag before a comma or a
 *     bracket, which are part of the tag's name to the other. All are refused.
 */
#include "base/yaml/yaml.h"

#include <stdbool.h>
#include <stdint.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/yaml/yaml_scalar.h"

#define YAML_MERGE_KEY TD_STR("<<")
#define YAML_MERGE_TAG TD_STR("tag:yaml.org,2002:merge")

/* How many of all values may come from aliases, as the library decides it: up to 99 % while a
 * document is small, falling to 10 % for large ones. */
#define YAML_SHARE_ALIASED_MIN 100
#define YAML_SHARE_DECODED_MIN 1000
#define YAML_SHARE_SMALL 400000
#define YAML_SHARE_LARGE 4000000
#define YAML_SHARE_OF_SMALL 0.99
#define YAML_SHARE_OF_LARGE 0.10

struct yaml_anchor {
    bool is_open;                 /* its collection has not ended yet */
    bool is_scalar;               /* then `scalar` counts, else `node` */
    struct td_yaml_scalar scalar; /* texts in the reader's scratch arena */
    const struct td_json *node;   /* part of the document's tree, or of a merge */
    uint32_t height;              /* nested collections of node, itself included */
    size_t steps;                 /* what an alias of it adds to reader.decoded */
};

enum yaml_frame_kind {
    FRAME_OBJECT_KEY,   /* a mapping that expects a key or its end */
    FRAME_OBJECT_VALUE, /* ... the value of `key` */
    FRAME_OBJECT_MERGE, /* ... the value of a merge key */
    FRAME_ARRAY,
    FRAME_MERGE_LIST, /* the list behind a merge key: its items go into `node` */
};

struct yaml_frame {
    enum yaml_frame_kind kind;
    uint32_t flow_depth; /* brackets around its content; 0 in block style */
    bool is_through;     /* writes into the node of a frame below, which then owns it */
    struct td_json *node;
    struct yaml_anchor *anchor; /* or NULL */
    td_str key;
    uint32_t key_line;
    uint32_t line;
    uint32_t height;     /* of the tallest child so far */
    size_t steps_before; /* reader.decoded when it began */
};

struct yaml_reader {
    struct td_arena *arena;
    struct td_arena scratch; /* anchors of the current document */
    struct td_map anchors;   /* name to struct yaml_anchor */
    struct {
        TD_VEC_FIELDS(struct td_json *);
    } documents;
    struct td_json *root; /* of the current document, once finished */
    size_t decoded;       /* values of the current document, aliases expanded */
    size_t aliased;       /* of those, how many came from aliases */
    size_t copied;        /* nodes copied for aliases in the whole stream */
    size_t flow_steps;    /* events inside brackets, each counted once a bracket */
    size_t depth;         /* frames in use */
    struct yaml_frame frames[TD_YAML_DEPTH_MAX];
};

static int yaml_at_line(struct td_error *err, int code, size_t line)
{
    return td_error_wrap(err, code, "line %zu", line);
}

static struct yaml_frame *yaml_top(struct yaml_reader *reader)
{
    return reader->depth > 0 ? &reader->frames[reader->depth - 1] : NULL;
}

static uint32_t yaml_flow_depth(const struct yaml_reader *reader)
{
    return reader->depth > 0 ? reader->frames[reader->depth - 1].flow_depth : 0;
}

/* Brackets around the content of a collection that begins now; inside one, all have brackets. */
static uint32_t yaml_flow_depth_inside(const struct yaml_reader *reader, bool is_flow)
{
    uint32_t around = yaml_flow_depth(reader);
    return is_flow || around > 0 ? around + 1 : 0;
}

/* Counts values, and refuses the document when aliases made too many of them. The checks inside one
 * expansion are left out: the share only grows there, so the one at its end finds the same. */
static int yaml_count(struct yaml_reader *reader, size_t decoded, size_t aliased,
                      struct td_error *err)
{
    reader->decoded += decoded;
    reader->aliased += aliased;
    if (reader->aliased <= YAML_SHARE_ALIASED_MIN || reader->decoded <= YAML_SHARE_DECODED_MIN) {
        return TD_OK;
    }
    double total = (double)reader->decoded;
    double allowed = YAML_SHARE_OF_SMALL;
    if (reader->decoded >= YAML_SHARE_LARGE) {
        allowed = YAML_SHARE_OF_LARGE;
    } else if (reader->decoded > YAML_SHARE_SMALL) {
        allowed -= (YAML_SHARE_OF_SMALL - YAML_SHARE_OF_LARGE) *
                   ((total - YAML_SHARE_SMALL) / (YAML_SHARE_LARGE - YAML_SHARE_SMALL));
    }
    if ((double)reader->aliased / total > allowed) {
        return td_error_set(err, TD_LIMIT, "aliases make up too much of the document");
    }
    return TD_OK;
}

static int yaml_count_copies(struct yaml_reader *reader, size_t nodes, struct td_error *err)
{
    if (nodes > TD_YAML_ALIAS_NODES_MAX - reader->copied) {
        return td_error_set(err, TD_LIMIT, "aliases expand to more than %zu values",
                            TD_YAML_ALIAS_NODES_MAX);
    }
    reader->copied += nodes;
    return TD_OK;
}

static int yaml_check_key(const struct td_json *object, td_str key, struct td_error *err)
{
    const struct td_json *other = td_json_get(object, key);
    if (other) {
        return td_error_set(err, TD_INVALID, "duplicate key '%.*s', first set in line %u",
                            TD_STR_ARG(key), other->line);
    }
    return TD_OK;
}

/* Copies of all members of `from`, which were counted. */
static int yaml_merge_object(struct yaml_reader *reader, struct td_json *into,
                             const struct td_json *from, struct td_error *err)
{
    for (const struct td_json *member = td_json_first_member(from); member; member = member->next) {
        int code = yaml_check_key(into, member->key, err);
        if (code < 0) {
            return code;
        }
        struct td_json *copy = td_json_copy(reader->arena, member, false);
        td_json_set(reader->arena, into, member->key, copy);
    }
    return TD_OK;
}

static int yaml_merge_refuse(struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "a merge key (<<) needs a mapping or a list of mappings");
}

/* The value of a merge key that was built on its own because it has an anchor. */
static int yaml_merge_value(struct yaml_reader *reader, struct td_json *into,
                            const struct td_json *value, size_t steps, struct td_error *err)
{
    int code = yaml_count_copies(reader, steps, err);
    if (code == TD_OK && td_json_is(value, TD_JSON_TYPE_OBJECT)) {
        return yaml_merge_object(reader, into, value, err);
    }
    if (code == TD_OK && !td_json_is(value, TD_JSON_TYPE_ARRAY)) {
        return yaml_merge_refuse(err);
    }
    for (const struct td_json *item = td_json_first_item(value); code == TD_OK && item;
         item = item->next) {
        code = td_json_is(item, TD_JSON_TYPE_OBJECT) ? yaml_merge_object(reader, into, item, err)
                                                     : yaml_merge_refuse(err);
    }
    return code;
}

/* A finished value goes where the top frame expects one. `steps` counts the values in it. */
static int yaml_place(struct yaml_reader *reader, struct td_json *node, uint32_t line, size_t steps,
                      struct td_error *err)
{
    struct yaml_frame *top = yaml_top(reader);
    node->line = line;
    if (!top) {
        reader->root = node;
        return TD_OK;
    }
    switch (top->kind) {
    case FRAME_OBJECT_VALUE:
        top->kind = FRAME_OBJECT_KEY;
        node->line = top->key_line;
        td_json_set(reader->arena, top->node, top->key, node); /* the key was checked */
        return TD_OK;
    case FRAME_OBJECT_MERGE:
        top->kind = FRAME_OBJECT_KEY;
        return yaml_merge_value(reader, top->node, node, steps, err);
    case FRAME_ARRAY:
        td_json_append(top->node, node);
        return TD_OK;
    case FRAME_MERGE_LIST:
        return td_json_is(node, TD_JSON_TYPE_OBJECT)
                   ? yaml_merge_value(reader, top->node, node, steps, err)
                   : yaml_merge_refuse(err);
    case FRAME_OBJECT_KEY:
    default:
        td_assert(false); /* keys never become nodes */
        return TD_INVALID;
    }
}

/* Makes `name` mean the node that begins now; an earlier anchor of that name is forgotten. */
static int yaml_new_anchor(struct yaml_reader *reader, const yaml_char_t *name,
                           struct yaml_anchor **ret, struct td_error *err)
{
    if (!name) {
        *ret = NULL;
        return TD_OK;
    }
    struct yaml_anchor *anchor = td_arena_new(&reader->scratch, struct yaml_anchor);
    td_str key = td_arena_copy_str(&reader->scratch, td_str_from((const char *)name));
    if (td_map_put(&reader->anchors, key, anchor) < 0) {
        return td_error_set(err, TD_LIMIT, "more than %zu anchors", TD_YAML_ANCHORS_MAX);
    }
    *ret = anchor;
    return td_arena_check(&reader->scratch, err);
}

static int yaml_set_key(struct yaml_reader *reader, const struct td_yaml_scalar *scalar,
                        uint32_t line, struct td_error *err)
{
    struct yaml_frame *top = yaml_top(reader);
    int code = td_yaml_scalar_key(reader->arena, scalar, &top->key, err);
    if (code == TD_OK) {
        code = yaml_check_key(top->node, top->key, err);
    }
    if (code == TD_OK) {
        top->kind = FRAME_OBJECT_VALUE;
        top->key_line = line;
    }
    return code;
}

static bool yaml_expects_key(const struct yaml_reader *reader)
{
    return reader->depth > 0 && reader->frames[reader->depth - 1].kind == FRAME_OBJECT_KEY;
}

static bool yaml_expects_merge(const struct yaml_reader *reader)
{
    return reader->depth > 0 && (reader->frames[reader->depth - 1].kind == FRAME_OBJECT_MERGE ||
                                 reader->frames[reader->depth - 1].kind == FRAME_MERGE_LIST);
}

static int yaml_resolve(struct yaml_reader *reader, const yaml_event_t *event,
                        struct td_yaml_scalar *ret, struct td_error *err)
{
    td_str text = {.ptr = (const char *)event->data.scalar.value, .len = event->data.scalar.length};
    td_str tag = td_str_from((const char *)event->data.scalar.tag);
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (is_plain && yaml_flow_depth(reader) > 0 && td_str_find(text, '?', 0) < text.len) {
        return td_error_set(err, TD_INVALID, "'%.*s' has a '?' between brackets: put it in quotes",
                            TD_STR_ARG(text));
    }
    if (is_plain && yaml_flow_depth(reader) > 0 && tag.len > 0 && text.len == 0) {
        return td_error_set(err, TD_INVALID,
                            "a tag between brackets has no value: put '' after it");
    }
    if (tag.len > 0) {
        return td_yaml_resolve_tagged(reader->arena, tag, text, ret, err);
    }
    if (event->data.scalar.plain_implicit) {
        *ret = td_yaml_resolve_plain(text);
    } else {
        *ret = (struct td_yaml_scalar){.kind = TD_YAML_STRING, .text = text};
    }
    return TD_OK;
}

static bool yaml_is_merge_key(const yaml_event_t *event)
{
    td_str text = {.ptr = (const char *)event->data.scalar.value, .len = event->data.scalar.length};
    td_str tag = td_str_from((const char *)event->data.scalar.tag);
    return td_str_equal(text, YAML_MERGE_KEY) &&
           (event->data.scalar.plain_implicit || td_str_equal(tag, YAML_MERGE_TAG));
}

static int yaml_on_scalar(struct yaml_reader *reader, const yaml_event_t *event, uint32_t line,
                          struct td_error *err)
{
    struct yaml_anchor *anchor = NULL;
    int code = yaml_new_anchor(reader, event->data.scalar.anchor, &anchor, err);
    struct td_yaml_scalar scalar;
    if (code == TD_OK) {
        code = yaml_resolve(reader, event, &scalar, err);
    }
    if (code < 0) {
        return code;
    }
    if (anchor) {
        *anchor = (struct yaml_anchor){.is_scalar = true, .scalar = scalar, .steps = 1};
        if (scalar.kind == TD_YAML_STRING || scalar.kind == TD_YAML_TIMESTAMP) {
            anchor->scalar.text = td_arena_copy_str(&reader->scratch, scalar.text);
        }
    }
    if (yaml_expects_key(reader) && yaml_is_merge_key(event)) {
        yaml_top(reader)->kind = FRAME_OBJECT_MERGE;
        return TD_OK;
    }
    if (yaml_expects_merge(reader)) {
        return yaml_merge_refuse(err);
    }
    code = yaml_count(reader, 1, 0, err);
    if (code < 0) {
        return code;
    }
    if (yaml_expects_key(reader)) {
        return yaml_set_key(reader, &scalar, line, err);
    }
    struct td_json *node;
    code = td_yaml_scalar_node(reader->arena, &scalar, &node, err);
    return code < 0 ? code : yaml_place(reader, node, line, 1, err);
}

/* An alias whose anchor is a collection. */
static int yaml_on_alias_node(struct yaml_reader *reader, const struct yaml_anchor *anchor,
                              uint32_t line, struct td_error *err)
{
    if (yaml_expects_key(reader)) {
        return td_error_set(err, TD_INVALID, "a key is a mapping or a list");
    }
    bool is_merge = yaml_expects_merge(reader);
    uint32_t height = anchor->height - (is_merge ? 1 : 0); /* merged members join their frame's */
    if (reader->depth + height > TD_YAML_DEPTH_MAX) {
        return td_error_set(err, TD_LIMIT, "nested more than %d levels deep", TD_YAML_DEPTH_MAX);
    }
    struct yaml_frame *top = yaml_top(reader);
    td_assert(top); /* an alias as a whole document has no anchor to name */
    top->height = height > top->height ? height : top->height;
    if (is_merge) {
        top->kind = top->kind == FRAME_OBJECT_MERGE ? FRAME_OBJECT_KEY : top->kind;
        return td_json_is(anchor->node, TD_JSON_TYPE_OBJECT)
                   ? yaml_merge_value(reader, top->node, anchor->node, anchor->steps, err)
                   : yaml_merge_refuse(err);
    }
    int code = yaml_count_copies(reader, anchor->steps, err);
    if (code < 0) {
        return code;
    }
    struct td_json *copy = td_json_copy(reader->arena, anchor->node, false);
    return yaml_place(reader, copy, line, anchor->steps, err);
}

static int yaml_on_alias(struct yaml_reader *reader, const yaml_event_t *event, uint32_t line,
                         struct td_error *err)
{
    td_str name = td_str_from((const char *)event->data.alias.anchor);
    const struct yaml_anchor *anchor = td_map_get(&reader->anchors, name);
    if (!anchor) {
        return td_error_set(err, TD_INVALID, "alias '*%.*s' has no anchor before it",
                            TD_STR_ARG(name));
    }
    if (anchor->is_open) {
        return td_error_set(err, TD_INVALID, "the value of anchor '&%.*s' contains itself",
                            TD_STR_ARG(name));
    }
    int code = yaml_count(reader, 1 + anchor->steps, anchor->steps, err);
    if (code < 0) {
        return code;
    }
    if (!anchor->is_scalar) {
        return yaml_on_alias_node(reader, anchor, line, err);
    }
    if (yaml_expects_merge(reader)) {
        return yaml_merge_refuse(err);
    }
    if (yaml_expects_key(reader)) {
        return yaml_set_key(reader, &anchor->scalar, line, err);
    }
    struct td_json *node;
    code = td_yaml_scalar_node(reader->arena, &anchor->scalar, &node, err);
    return code < 0 ? code : yaml_place(reader, node, line, 1, err);
}

/* Begins a collection. `frame` says what it is; node, anchor and counters are filled in here. */
static int yaml_push(struct yaml_reader *reader, struct yaml_frame frame, const yaml_char_t *name,
                     struct td_error *err)
{
    if (yaml_expects_key(reader)) {
        return td_error_set(err, TD_INVALID, "a key is a mapping or a list");
    }
    if (reader->depth == TD_YAML_DEPTH_MAX) {
        return td_error_set(err, TD_LIMIT, "nested more than %d levels deep", TD_YAML_DEPTH_MAX);
    }
    frame.steps_before = reader->decoded;
    int code = yaml_new_anchor(reader, name, &frame.anchor, err);
    if (code == TD_OK && frame.kind != FRAME_MERGE_LIST) {
        code = yaml_count(reader, 1, 0, err); /* a list of merges is no value of its own */
    }
    if (code < 0) {
        return code;
    }
    if (frame.anchor) {
        frame.anchor->is_open = true;
    }
    if (!frame.node) {
        frame.node = frame.kind == FRAME_ARRAY ? td_json_new_array(reader->arena)
                                               : td_json_new_object(reader->arena);
    }
    reader->frames[reader->depth++] = frame;
    return TD_OK;
}

static int yaml_on_mapping(struct yaml_reader *reader, const yaml_event_t *event, uint32_t line,
                           struct td_error *err)
{
    const yaml_char_t *name = event->data.mapping_start.anchor;
    bool is_through = yaml_expects_merge(reader) && !name;
    struct yaml_frame frame = {
        .kind = FRAME_OBJECT_KEY,
        .flow_depth = yaml_flow_depth_inside(reader, event->data.mapping_start.style ==
                                                         YAML_FLOW_MAPPING_STYLE),
        .is_through = is_through,
        .node = is_through ? yaml_top(reader)->node : NULL,
        .line = line,
    };
    return yaml_push(reader, frame, name, err);
}

static int yaml_on_sequence(struct yaml_reader *reader, const yaml_event_t *event, uint32_t line,
                            struct td_error *err)
{
    const yaml_char_t *name = event->data.sequence_start.anchor;
    struct yaml_frame *top = yaml_top(reader);
    if (top && top->kind == FRAME_MERGE_LIST) {
        return yaml_merge_refuse(err);
    }
    bool is_through = yaml_expects_merge(reader) && !name;
    struct yaml_frame frame = {
        .kind = is_through ? FRAME_MERGE_LIST : FRAME_ARRAY,
        .flow_depth = yaml_flow_depth_inside(reader, event->data.sequence_start.style ==
                                                         YAML_FLOW_SEQUENCE_STYLE),
        .is_through = is_through,
        .node = is_through ? top->node : NULL,
        .line = line,
    };
    return yaml_push(reader, frame, name, err);
}

static int yaml_on_collection_end(struct yaml_reader *reader, struct td_error *err)
{
    td_assert(reader->depth > 0);
    struct yaml_frame done = reader->frames[--reader->depth];
    struct yaml_frame *top = yaml_top(reader);
    uint32_t height = done.is_through ? done.height : done.height + 1;
    size_t steps = reader->decoded - done.steps_before;
    if (top) {
        top->height = height > top->height ? height : top->height;
    }
    if (done.anchor) {
        *done.anchor = (struct yaml_anchor){.node = done.node, .height = height, .steps = steps};
    }
    if (!done.is_through) {
        return yaml_place(reader, done.node, done.line, steps, err);
    }
    if (top->kind == FRAME_OBJECT_MERGE) {
        top->kind = FRAME_OBJECT_KEY;
    }
    return TD_OK;
}

static int yaml_on_document_start(struct yaml_reader *reader, const yaml_event_t *event,
                                  struct td_error *err)
{
    const yaml_version_directive_t *version = event->data.document_start.version_directive;
    if (version && (version->major != 1 || version->minor != 1)) {
        return td_error_set(err, TD_INVALID, "%%YAML %d.%d is not supported, only 1.1",
                            version->major, version->minor);
    }
    if (reader->anchors.entry_count > 0) {
        /* Given back, not reset: clearing a large map once for each of many small documents would
         * be quadratic. */
        td_map_done(&reader->anchors);
    }
    td_arena_reset(&reader->scratch);
    reader->root = NULL;
    reader->decoded = 1;
    reader->aliased = 0;
    return TD_OK;
}

static void yaml_keep_document(struct yaml_reader *reader)
{
    td_assert(reader->root);
    if (reader->root->type != TD_JSON_TYPE_NULL) {
        struct td_json **slot = td_vec_push(&reader->documents);
        td_assert(slot);
        *slot = reader->root;
    }
}

static int yaml_on_event(struct yaml_reader *reader, const yaml_event_t *event,
                         struct td_error *err)
{
    uint32_t line = (uint32_t)event->start_mark.line + 1;
    reader->flow_steps += yaml_flow_depth(reader);
    if (reader->flow_steps > TD_YAML_FLOW_STEPS_MAX) {
        return td_error_set(err, TD_LIMIT, "too much text between deeply nested brackets");
    }
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return yaml_on_document_start(reader, event, err);
    case YAML_DOCUMENT_END_EVENT:
        yaml_keep_document(reader);
        return TD_OK;
    case YAML_SCALAR_EVENT:
        return yaml_on_scalar(reader, event, line, err);
    case YAML_ALIAS_EVENT:
        return yaml_on_alias(reader, event, line, err);
    case YAML_MAPPING_START_EVENT:
        return yaml_on_mapping(reader, event, line, err);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_on_sequence(reader, event, line, err);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return yaml_on_collection_end(reader, err);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    default:
        return TD_OK;
    }
}

static size_t yaml_count_lines(td_str text, size_t end)
{
    size_t lines = 1;
    for (size_t at = td_str_find(text, '\n', 0); at < end && at < text.len;
         at = td_str_find(text, '\n', at + 1)) {
        lines++;
    }
    return lines;
}

/* What libyaml found wrong. Its reader (encoding, control characters) knows an offset, its scanner
 * and parser know lines. */
static int yaml_syntax_error(const yaml_parser_t *parser, td_str text, struct td_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        td_out_of_memory();
    }
    const char *problem = parser->problem ? parser->problem : "malformed YAML";
    if (parser->error == YAML_READER_ERROR) {
        return td_error_set(err, TD_INVALID, "line %zu: %s",
                            yaml_count_lines(text, parser->problem_offset), problem);
    }
    size_t line = parser->problem_mark.line + 1;
    size_t context_line = parser->context_mark.line + 1;
    if (parser->context && context_line < line) {
        return td_error_set(err, TD_INVALID, "line %zu: %s (%s that begins in line %zu)", line,
                            problem, parser->context, context_line);
    }
    return td_error_set(err, TD_INVALID, "line %zu: %s", line, problem);
}

static size_t yaml_skip_zeros(td_str text, size_t at)
{
    while (at < text.len && text.ptr[at] == '\0') {
        at++;
    }
    return at;
}

/* "%TAG" at `at`; the zero bytes of UTF-16 may stand between the letters. */
static bool yaml_is_tag_directive(td_str text, size_t at)
{
    static const char name[] = {'%', 'T', 'A', 'G'};
    for (size_t i = 0; i < sizeof(name); i++) {
        at = yaml_skip_zeros(text, at);
        if (at >= text.len || text.ptr[at] != name[i]) {
            return false;
        }
        at++;
    }
    return true;
}

/* Directives stand at the start of a line, and YAML knows five line breaks; in UTF-16, where they
 * look different, every mention counts. */
static int yaml_check_tag_directives(td_str text, struct td_error *err)
{
    bool is_utf16 = td_str_starts_with(text, TD_STR("\xFF\xFE")) ||
                    td_str_starts_with(text, TD_STR("\xFE\xFF"));
    size_t count = 0;
    for (size_t at = td_str_find(text, '%', 0); at < text.len;
         at = td_str_find(text, '%', at + 1)) {
        bool is_start = at == 0 || is_utf16 || memchr("\n\r\x85\xA8\xA9\xBF", text.ptr[at - 1], 6);
        count += is_start && yaml_is_tag_directive(text, at) ? 1 : 0;
        if (count > TD_YAML_TAG_DIRECTIVES_MAX) {
            return td_error_set(err, TD_LIMIT, "line %zu: more than %d %%TAG directives",
                                yaml_count_lines(text, at), TD_YAML_TAG_DIRECTIVES_MAX);
        }
    }
    return TD_OK;
}

static int yaml_read_stream(struct yaml_reader *reader, yaml_parser_t *parser, td_str text,
                            struct td_error *err)
{
    for (bool is_last = false; !is_last;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            return yaml_syntax_error(parser, text, err);
        }
        is_last = event.type == YAML_STREAM_END_EVENT;
        size_t line = event.start_mark.line + 1;
        int code = yaml_on_event(reader, &event, err);
        yaml_event_delete(&event);
        if (code == TD_OK) {
            code = td_arena_check(reader->arena, err);
        }
        if (code < 0) {
            return yaml_at_line(err, code, line);
        }
    }
    return TD_OK;
}

static void yaml_take_documents(const struct yaml_reader *reader, struct td_yaml_documents *ret)
{
    size_t count = reader->documents.count;
    struct td_json **items = td_arena_array(reader->arena, struct td_json *, count);
    for (size_t i = 0; i < count; i++) {
        items[i] = reader->documents.items[i];
    }
    *ret = (struct td_yaml_documents){.items = items, .count = count};
}

int td_yaml_parse(struct td_arena *arena, td_str text, struct td_yaml_documents *ret,
                  struct td_error *err)
{
    if (text.len > TD_YAML_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "line 1: the text is larger than %zu bytes",
                            TD_YAML_BYTES_MAX);
    }
    td_str input = text.ptr ? text : TD_STR_EMPTY;
    int code = yaml_check_tag_directives(input, err);
    if (code < 0) {
        return code;
    }
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        td_out_of_memory();
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)input.ptr, input.len);

    struct yaml_reader *reader = td_alloc_zero(1, sizeof(*reader));
    reader->arena = arena;
    reader->documents.count_max = text.len; /* a document that is not empty takes a byte or more */
    td_arena_init(&reader->scratch, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&reader->anchors, TD_YAML_ANCHORS_MAX);

    code = yaml_read_stream(reader, &parser, input, err);
    if (code == TD_OK) {
        yaml_take_documents(reader, ret);
    }
    td_vec_done(&reader->documents);
    td_map_done(&reader->anchors);
    td_arena_done(&reader->scratch);
    td_free(reader);
    yaml_parser_delete(&parser);
    return code;
}
