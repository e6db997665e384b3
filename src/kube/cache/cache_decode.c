/*
 * The plan is a tree over the parts of the paths ("spec", below it "nodeName"), so one walk over an
 * object serves all fields and everything else is passed by the reader's skip without being looked
 * at twice. Texts stay slices of the answer until the object is known to be new; then its struct
 * and all texts it owns become one piece of memory:
 *
 *     struct | key "namespace/name" | uid | version | owned texts, each with a NUL
 *
 * A name in the shared table is told from a text in the piece by its address, so a full table is
 * no failure: the object then owns the text.
 */
#include "kube/cache/cache_decode.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/intern.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "kube/objectkey.h"
#include "kube/quantity/quantity.h"

#define PLAN_NONE UINT16_MAX
#define PLAN_OWN_FIELDS 8 /* that the cache adds: identity, status, the end of a streaming list */
#define PLAN_NODES_MAX                                                                             \
    ((size_t)(TD_CACHE_FIELDS_MAX + PLAN_OWN_FIELDS) * TD_CACHE_PATH_PARTS_MAX + 1)

static_assert(PLAN_NODES_MAX < PLAN_NONE, "every node has an index");

enum { PLAN_SPAN = TD_CACHE_MADE + 1 }; /* td_str: the member, name and comma included */

struct plan_node {
    td_str key;
    uint16_t child; /* PLAN_NONE: no path goes on here */
    uint16_t sibling;
    uint16_t field; /* of this path; PLAN_NONE: none */
};

struct plan_field {
    int kind; /* enum td_cache_kind or PLAN_SPAN */
    size_t offset;
    bool is_own;   /* in td_cache_decoded instead of the caller's struct */
    uint16_t next; /* of the same path */
};

struct td_cache_plan {
    size_t struct_bytes;
    size_t kept_bytes;
    size_t node_count;
    size_t field_count;
    char *paths; /* copies of the caller's; owned */
    struct plan_field fields[TD_CACHE_FIELDS_MAX + PLAN_OWN_FIELDS];
    struct plan_node nodes[PLAN_NODES_MAX];
};

/* ---- The plan ---- */

static size_t kind_bytes(int kind)
{
    switch (kind) {
    case TD_CACHE_INT64:
    case TD_CACHE_MILLI:
    case TD_CACHE_WHOLE:
        return sizeof(int64_t);
    case TD_CACHE_TIME:
        return sizeof(td_time);
    case TD_CACHE_BOOL:
    case TD_CACHE_PRESENT:
        return sizeof(bool);
    default:
        return sizeof(td_str);
    }
}

static bool kind_is_raw(int kind)
{
    return kind == TD_CACHE_RAW || kind == TD_CACHE_RAW_ONCE;
}

static bool kind_is_text(int kind)
{
    return kind == TD_CACHE_TEXT || kind == TD_CACHE_NAME || kind == TD_CACHE_MADE ||
           kind_is_raw(kind);
}

static size_t plan_step(struct td_cache_plan *plan, size_t parent, td_str part)
{
    uint16_t *link = &plan->nodes[parent].child;
    while (*link != PLAN_NONE && !td_str_equal(plan->nodes[*link].key, part)) {
        link = &plan->nodes[*link].sibling;
    }
    if (*link == PLAN_NONE) {
        td_assert(plan->node_count < PLAN_NODES_MAX);
        *link = (uint16_t)plan->node_count;
        plan->nodes[plan->node_count++] = (struct plan_node){
            .key = part, .child = PLAN_NONE, .sibling = PLAN_NONE, .field = PLAN_NONE};
    }
    return *link;
}

static void plan_put(struct td_cache_plan *plan, size_t node, struct plan_field field)
{
    td_assert(plan->field_count < TD_CACHE_FIELDS_MAX + PLAN_OWN_FIELDS);
    field.next = plan->nodes[node].field;
    plan->nodes[node].field = (uint16_t)plan->field_count;
    plan->fields[plan->field_count++] = field;
}

static int plan_add(struct td_cache_plan *plan, td_str path, struct plan_field field,
                    struct td_error *err)
{
    size_t node = 0;
    size_t parts = 0;
    for (size_t at = 0; at < path.len; parts++) {
        if (parts == TD_CACHE_PATH_PARTS_MAX) {
            return td_error_set(err, TD_LIMIT, "path '%.*s' has more than %d parts",
                                TD_STR_ARG(path), TD_CACHE_PATH_PARTS_MAX);
        }
        size_t end = td_str_find(path, '.', at);
        node = plan_step(plan, node, td_str_slice(path, at, end));
        at = end + 1;
    }
    plan_put(plan, node, field);
    return TD_OK;
}

static void plan_add_own(struct td_cache_plan *plan, bool has_whole)
{
    static const struct {
        td_str path;
        struct plan_field field;
    } own[] = {
        {TD_STR_INIT("metadata.uid"),
         {.kind = TD_CACHE_TEXT, .offset = offsetof(struct td_cache_head, uid)}},
        {TD_STR_INIT("metadata.resourceVersion"),
         {.kind = TD_CACHE_TEXT, .offset = offsetof(struct td_cache_head, version)}},
        {TD_STR_INIT("metadata.namespace"),
         {.kind = TD_CACHE_TEXT, .offset = offsetof(struct td_cache_head, namespace)}},
        {TD_STR_INIT("metadata.name"),
         {.kind = TD_CACHE_TEXT, .offset = offsetof(struct td_cache_head, name)}},
        {TD_STR_INIT("code"),
         {.kind = TD_CACHE_INT64,
          .offset = offsetof(struct td_cache_decoded, status_code),
          .is_own = true}},
        {TD_STR_INIT("message"),
         {.kind = TD_CACHE_TEXT,
          .offset = offsetof(struct td_cache_decoded, status_message),
          .is_own = true}},
    };
    for (size_t i = 0; i < TD_COUNT(own); i++) {
        int code = plan_add(plan, own[i].path, own[i].field, NULL);
        td_assert(code == TD_OK); /* short paths */
    }
    size_t metadata = plan_step(plan, 0, TD_STR("metadata"));
    size_t annotations = plan_step(plan, metadata, TD_STR("annotations"));
    plan_put(plan, plan_step(plan, annotations, TD_STR("k8s.io/initial-events-end")),
             (struct plan_field){.kind = TD_CACHE_TEXT,
                                 .offset = offsetof(struct td_cache_decoded, initial_end),
                                 .is_own = true});
    if (has_whole) {
        plan_put(plan, plan_step(plan, metadata, TD_STR("managedFields")),
                 (struct plan_field){.kind = PLAN_SPAN,
                                     .offset = offsetof(struct td_cache_decoded, managed),
                                     .is_own = true});
    }
}

/* The caller's paths as one text, so that they need not outlive the call. */
static char *plan_copy_paths(const struct td_cache_field *fields, size_t count)
{
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++) {
        bytes += strlen(fields[i].path);
    }
    char *paths = td_alloc(bytes);
    char *at = paths;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(fields[i].path);
        memcpy(at, fields[i].path, len);
        at += len;
    }
    return paths;
}

int td_cache_plan_new(const struct td_cache_field *fields, size_t count, size_t struct_bytes,
                      struct td_cache_plan **ret, struct td_error *err)
{
    td_assert(struct_bytes >= sizeof(struct td_cache_head));
    if (count > TD_CACHE_FIELDS_MAX) {
        return td_error_set(err, TD_LIMIT, "%zu fields of one object, more than %d", count,
                            TD_CACHE_FIELDS_MAX);
    }
    struct td_cache_plan *plan = td_alloc_zero(1, sizeof(*plan));
    plan->struct_bytes = struct_bytes;
    plan->kept_bytes = struct_bytes;
    plan->node_count = 1;
    plan->nodes[0] = (struct plan_node){
        .key = TD_STR_EMPTY, .child = PLAN_NONE, .sibling = PLAN_NONE, .field = PLAN_NONE};
    plan->paths = plan_copy_paths(fields, count);
    bool has_whole = false;
    const char *at = plan->paths;
    for (size_t i = 0; i < count; i++) {
        td_assert(fields[i].offset >= sizeof(struct td_cache_head));
        td_assert(fields[i].offset + kind_bytes((int)fields[i].kind) <= struct_bytes);
        td_str path = {.ptr = at, .len = strlen(fields[i].path)};
        at += path.len;
        has_whole = has_whole || (path.len == 0 && kind_is_raw((int)fields[i].kind));
        int code = plan_add(
            plan, path,
            (struct plan_field){.kind = (int)fields[i].kind, .offset = fields[i].offset}, err);
        if (code != TD_OK) {
            td_cache_plan_free(plan);
            return code;
        }
    }
    plan_add_own(plan, has_whole);
    *ret = plan;
    return TD_OK;
}

void td_cache_plan_keep(struct td_cache_plan *plan, size_t kept_bytes)
{
    td_assert(kept_bytes >= sizeof(struct td_cache_head));
    td_assert(kept_bytes <= plan->struct_bytes);
    for (size_t i = 0; i < plan->field_count; i++) {
        const struct plan_field *field = &plan->fields[i];
        td_assert(field->is_own || field->kind == TD_CACHE_RAW_ONCE ||
                  field->offset + kind_bytes(field->kind) <= kept_bytes);
    }
    plan->kept_bytes = kept_bytes;
}

void td_cache_plan_free(struct td_cache_plan *plan)
{
    if (plan) {
        td_free(plan->paths);
        td_free(plan);
    }
}

/* ---- Decoding ---- */

/* One walk. */
struct walk {
    const struct td_cache_plan *plan;
    struct td_json_reader *reader;
    struct td_cache_decoded *decoded;
    const char *member; /* the quote before the last member's name */
};

void td_cache_decoded_init(struct td_cache_decoded *decoded, const struct td_cache_plan *plan)
{
    *decoded = (struct td_cache_decoded){.object = td_alloc_zero(1, plan->struct_bytes)};
    td_arena_init(&decoded->arena, TD_TREE_ARENA_BYTES_MAX);
}

void td_cache_decoded_done(struct td_cache_decoded *decoded)
{
    td_free(decoded->object);
    decoded->object = NULL;
    td_arena_done(&decoded->arena);
}

static void *field_in(const struct plan_field *field, void *object)
{
    return (char *)object + field->offset;
}

static void *field_place(const struct walk *walk, const struct plan_field *field)
{
    return field_in(field, field->is_own ? (void *)walk->decoded : walk->decoded->object);
}

static void decoded_reset(const struct td_cache_plan *plan, struct td_cache_decoded *decoded)
{
    td_arena_reset(&decoded->arena);
    decoded->status_code = 0;
    decoded->status_message = TD_STR_EMPTY;
    decoded->initial_end = TD_STR_EMPTY;
    decoded->managed = TD_STR_EMPTY;
    decoded->key = TD_STR_EMPTY;
    decoded->wrong_count = 0;
    memset(decoded->object, 0, plan->struct_bytes);
    for (size_t i = 0; i < plan->field_count; i++) {
        const struct plan_field *field = &plan->fields[i];
        if (field->is_own) {
            continue;
        }
        if (kind_is_text(field->kind)) {
            *(td_str *)field_in(field, decoded->object) = TD_STR_EMPTY;
        } else if (field->kind == TD_CACHE_TIME) {
            *(td_time *)field_in(field, decoded->object) = TD_CACHE_TIME_NONE;
        }
    }
}

static bool take_time(const struct walk *walk, enum td_json_token token, td_time *ret)
{
    struct td_instant instant;
    if (token != TD_JSON_STRING ||
        td_time_parse(td_json_reader_decode(walk->reader, &walk->decoded->arena), &instant, NULL) !=
            TD_OK) {
        return false;
    }
    td_time time = td_time_from_instant(instant);
    *ret = time == TD_CACHE_TIME_NONE ? time + 1 : time; /* however long ago, it is one */
    return true;
}

static bool take_quantity(const struct walk *walk, enum td_json_token token, bool is_milli,
                          int64_t *ret)
{
    struct td_quantity quantity;
    if ((token != TD_JSON_STRING && token != TD_JSON_NUMBER) ||
        td_quantity_parse(
            &walk->decoded->arena,
            td_str_trim(token == TD_JSON_STRING
                            ? td_json_reader_decode(walk->reader, &walk->decoded->arena)
                            : walk->reader->text),
            &quantity, NULL) != TD_OK) {
        return false;
    }
    *ret = is_milli ? td_quantity_milli(&quantity) : td_quantity_value(&quantity);
    return true;
}

/* The field from the first token of its value; false when that is of another type. Raw texts are
 * taken when the value has been read to its end. */
static bool walk_take(const struct walk *walk, const struct plan_field *field,
                      enum td_json_token token)
{
    void *place = field_place(walk, field);
    switch (field->kind) {
    case TD_CACHE_TEXT:
    case TD_CACHE_NAME:
        if (token == TD_JSON_STRING) {
            *(td_str *)place = td_json_reader_decode(walk->reader, &walk->decoded->arena);
        }
        return token == TD_JSON_STRING;
    case TD_CACHE_INT64:
        return token == TD_JSON_NUMBER && td_json_reader_int64(walk->reader, place);
    case TD_CACHE_BOOL:
        *(bool *)place = token == TD_JSON_TRUE;
        return token == TD_JSON_TRUE || token == TD_JSON_FALSE;
    case TD_CACHE_TIME:
        return take_time(walk, token, place);
    case TD_CACHE_MILLI:
    case TD_CACHE_WHOLE:
        return take_quantity(walk, token, field->kind == TD_CACHE_MILLI, place);
    case TD_CACHE_PRESENT:
        *(bool *)place = true;
        return true;
    default:
        return true;
    }
}

/* Where the value begins whose first token was just read. */
static const char *value_start(const struct td_json_reader *reader, enum td_json_token token)
{
    switch (token) {
    case TD_JSON_STRING:
        return reader->text.ptr - 1;
    case TD_JSON_NUMBER:
        return reader->text.ptr;
    case TD_JSON_FALSE:
        return reader->at - 5;
    case TD_JSON_TRUE:
    case TD_JSON_NULL:
        return reader->at - 4;
    default:
        return reader->at - 1;
    }
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* A member from its name to `end` and the comma that goes with it: the one behind, or of the last
 * member the one before. */
static td_str member_span(const struct td_json_reader *reader, const char *from, const char *end)
{
    const char *after = end;
    while (after < reader->end && is_space(*after)) {
        after++;
    }
    if (after < reader->end && *after == ',') {
        return (td_str){.ptr = from, .len = (size_t)(after + 1 - from)};
    }
    const char *before = from;
    while (before > reader->begin && is_space(before[-1])) {
        before--;
    }
    if (before > reader->begin && before[-1] == ',') {
        from = before - 1;
    }
    return (td_str){.ptr = from, .len = (size_t)(end - from)};
}

static int walk_fail(const struct walk *walk, struct td_error *err)
{
    return td_json_reader_error(walk->reader, err);
}

static uint16_t walk_find(const struct walk *walk, const struct plan_node *node)
{
    uint16_t child = node->child;
    while (child != PLAN_NONE &&
           !td_json_reader_key_is(walk->reader, walk->plan->nodes[child].key)) {
        child = walk->plan->nodes[child].sibling;
    }
    return child;
}

static int walk_value(struct walk *walk, uint16_t index, enum td_json_token token, unsigned depth,
                      struct td_error *err);

/* The members of the object that was just begun. */
static int walk_members(struct walk *walk, const struct plan_node *node, unsigned depth,
                        struct td_error *err)
{
    td_assert(depth <= TD_CACHE_PATH_PARTS_MAX);
    enum td_json_token token;
    while ((token = td_json_reader_next(walk->reader)) == TD_JSON_KEY) {
        uint16_t child = walk_find(walk, node);
        if (child == PLAN_NONE) {
            if (td_json_reader_skip(walk->reader) != TD_OK) {
                return walk_fail(walk, err);
            }
            continue;
        }
        walk->member = walk->reader->text.ptr - 1;
        int code = walk_value(walk, child, td_json_reader_next(walk->reader), depth, err);
        if (code != TD_OK) {
            return code;
        }
    }
    return token == TD_JSON_ERROR ? walk_fail(walk, err) : TD_OK;
}

static void walk_take_raw(const struct walk *walk, const struct plan_node *node, const char *member,
                          const char *from)
{
    const char *end = walk->reader->at;
    for (uint16_t i = node->field; i != PLAN_NONE; i = walk->plan->fields[i].next) {
        const struct plan_field *field = &walk->plan->fields[i];
        if (kind_is_raw(field->kind)) {
            *(td_str *)field_place(walk, field) =
                (td_str){.ptr = from, .len = (size_t)(end - from)};
        } else if (field->kind == PLAN_SPAN) {
            *(td_str *)field_place(walk, field) = member_span(walk->reader, member, end);
        }
    }
}

static int walk_value(struct walk *walk, uint16_t index, enum td_json_token token, unsigned depth,
                      struct td_error *err)
{
    if (token == TD_JSON_ERROR) {
        return walk_fail(walk, err);
    }
    if (token == TD_JSON_NULL) {
        return TD_OK;
    }
    const struct plan_node *node = &walk->plan->nodes[index];
    const char *member = walk->member;
    const char *from = value_start(walk->reader, token);
    for (uint16_t i = node->field; i != PLAN_NONE; i = walk->plan->fields[i].next) {
        const struct plan_field *field = &walk->plan->fields[i];
        bool is_right = walk_take(walk, field, token);
        walk->decoded->wrong_count += !is_right && !field->is_own;
    }
    if (token == TD_JSON_BEGIN_OBJECT && node->child != PLAN_NONE) {
        int code = walk_members(walk, node, depth + 1, err);
        if (code != TD_OK) {
            return code;
        }
    } else if (td_json_reader_skip(walk->reader) != TD_OK) {
        return walk_fail(walk, err);
    }
    walk_take_raw(walk, node, member, from);
    return TD_OK;
}

int td_cache_decode(const struct td_cache_plan *plan, struct td_json_reader *reader,
                    enum td_json_token token, struct td_cache_decoded *decoded,
                    struct td_error *err)
{
    decoded_reset(plan, decoded);
    struct walk walk = {.plan = plan, .reader = reader, .decoded = decoded, .member = reader->at};
    return walk_value(&walk, 0, token, 0, err);
}

const struct td_cache_head *td_cache_decoded_head(const struct td_cache_decoded *decoded)
{
    return decoded->object;
}

int td_cache_decode_key(struct td_cache_decoded *decoded, struct td_error *err)
{
    const struct td_cache_head *head = td_cache_decoded_head(decoded);
    if (head->name.len == 0 || head->version.len == 0) {
        return td_error_set(err, TD_INVALID, "an object '%.*s' without name or resourceVersion",
                            TD_STR_ARG(td_str_cut_utf8(head->name, TD_OBJECT_KEY_BYTES_MAX)));
    }
    if (head->version.len > TD_CACHE_VERSION_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "a resourceVersion of %zu bytes, more than %zu",
                            head->version.len, TD_CACHE_VERSION_BYTES_MAX);
    }
    char *out = td_arena_alloc(&decoded->arena, TD_OBJECT_KEY_BYTES_MAX);
    decoded->key = td_object_key_write(TD_OBJECT_KEY(head->namespace, head->name), out);
    if (decoded->key.len == 0) {
        return td_error_set(err, TD_LIMIT, "an object's namespace and name are above %zu bytes",
                            TD_OBJECT_KEY_BYTES_MAX);
    }
    return TD_OK;
}

/* ---- Objects ---- */

/* `raw` without white space between its tokens; returns the length. */
static size_t raw_compact(td_str raw, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < raw.len;) {
        if (raw.ptr[i] != '"') {
            out[len] = raw.ptr[i];
            len += !is_space(raw.ptr[i]);
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < raw.len && raw.ptr[end] != '"') {
            end += raw.ptr[end] == '\\' ? 2 : 1;
        }
        end = end < raw.len ? end + 1 : raw.len; /* what was read ends with its quote */
        memcpy(out + len, raw.ptr + i, end - i);
        len += end - i;
        i = end;
    }
    return len;
}

/* The part of `hole` that is to be left out of `raw`: all of it, or nothing. */
static td_str raw_hole(td_str raw, td_str hole)
{
    uintptr_t begin = (uintptr_t)raw.ptr;
    uintptr_t at = (uintptr_t)hole.ptr;
    bool is_inside = hole.len > 0 && at >= begin && at + hole.len <= begin + raw.len;
    return is_inside ? hole : TD_STR_EMPTY;
}

static size_t raw_write(td_str raw, td_str managed, char *out)
{
    td_str hole = raw_hole(raw, managed);
    size_t from = hole.len > 0 ? (size_t)(hole.ptr - raw.ptr) : raw.len;
    size_t len = raw_compact(td_str_slice(raw, 0, from), out);
    return len + raw_compact(td_str_slice(raw, from + hole.len, raw.len), out + len);
}

static bool object_owns(const struct td_cache_head *head, td_str text)
{
    uintptr_t begin = (uintptr_t)head;
    uintptr_t at = (uintptr_t)text.ptr;
    return at >= begin && at < begin + head->bytes;
}

static bool field_is_identity(const struct plan_field *field)
{
    return field->offset == offsetof(struct td_cache_head, namespace) ||
           field->offset == offsetof(struct td_cache_head, name);
}

/* Has the object a copy of its own? Names in the table are marked in `is_shared`. */
static bool field_is_copied(const struct td_cache_plan *plan, size_t index, const bool *is_shared)
{
    const struct plan_field *field = &plan->fields[index];
    return !field->is_own && kind_is_text(field->kind) && field->kind != TD_CACHE_RAW_ONCE &&
           !field_is_identity(field) && !is_shared[index];
}

/* Names become those of the table where it has room for them. */
static void object_share(const struct td_cache_plan *plan, struct td_cache_decoded *decoded,
                         struct td_intern *names, bool *is_shared)
{
    for (size_t i = 0; i < plan->field_count; i++) {
        if (plan->fields[i].kind != TD_CACHE_NAME || plan->fields[i].is_own || !names) {
            continue;
        }
        td_str *place = field_in(&plan->fields[i], decoded->object);
        td_str name =
            place->len > 0 ? td_intern_ref(names, *place) : (td_str){.ptr = NULL, .len = 0};
        if (name.ptr) {
            *place = name;
            is_shared[i] = true;
        }
    }
}

static size_t object_size(const struct td_cache_plan *plan, const struct td_cache_decoded *decoded,
                          const bool *is_shared)
{
    size_t bytes = plan->kept_bytes + decoded->key.len + 1;
    for (size_t i = 0; i < plan->field_count; i++) {
        if (!field_is_copied(plan, i, is_shared)) {
            continue;
        }
        td_str text = *(td_str *)field_in(&plan->fields[i], decoded->object);
        bytes += text.len > 0 ? text.len - raw_hole(text, decoded->managed).len + 1 : 0;
    }
    return bytes;
}

static td_str object_put(char **at, td_str text)
{
    td_str copy = td_text_place(at, text);
    *(*at)++ = '\0';
    return copy;
}

static td_str object_put_field(int kind, td_str text, td_str hole, char **at)
{
    if (text.len == 0) {
        return TD_STR_EMPTY;
    }
    if (kind != TD_CACHE_RAW) {
        return object_put(at, text);
    }
    td_str raw = {.ptr = *at, .len = raw_write(text, hole, *at)};
    (*at)[raw.len] = '\0';
    *at += raw.len + 1;
    return raw;
}

static void object_empty_once(const struct td_cache_plan *plan, void *object)
{
    for (size_t i = 0; i < plan->field_count; i++) {
        const struct plan_field *field = &plan->fields[i];
        if (field->kind == TD_CACHE_RAW_ONCE && field->offset < plan->kept_bytes) {
            *(td_str *)field_in(field, object) = TD_STR_EMPTY;
        }
    }
}

void *td_cache_object_new(const struct td_cache_plan *plan, struct td_cache_decoded *decoded,
                          struct td_intern *names)
{
    td_assert(decoded->key.len > 0);
    bool is_shared[TD_CACHE_FIELDS_MAX + PLAN_OWN_FIELDS] = {false};
    object_share(plan, decoded, names, is_shared);
    size_t size = object_size(plan, decoded, is_shared);
    const struct td_cache_head *read = td_cache_decoded_head(decoded);
    struct td_cache_head *head = td_alloc(size);
    memcpy(head, read, plan->kept_bytes);
    char *at = (char *)head + plan->kept_bytes;
    td_str key = object_put(&at, decoded->key);
    head->name = td_str_slice(key, key.len - read->name.len, key.len);
    head->namespace = td_str_slice(key, 0, read->namespace.len);
    for (size_t i = 0; i < plan->field_count; i++) {
        if (field_is_copied(plan, i, is_shared)) {
            td_str *place = field_in(&plan->fields[i], head);
            *place = object_put_field(plan->fields[i].kind, *place, decoded->managed, &at);
        }
    }
    object_empty_once(plan, head);
    td_assert((size_t)(at - (char *)head) <= size);
    head->bytes = size;
    return head;
}

td_str td_cache_object_key(const void *object)
{
    const struct td_cache_head *head = object;
    size_t prefix = head->namespace.len > 0 ? head->namespace.len + 1 : 0;
    return (td_str){.ptr = head->name.ptr - prefix, .len = prefix + head->name.len};
}

void td_cache_object_free(const struct td_cache_plan *plan, void *object, struct td_intern *names)
{
    if (!object) {
        return;
    }
    for (size_t i = 0; i < plan->field_count; i++) {
        const struct plan_field *field = &plan->fields[i];
        if (field->kind != TD_CACHE_NAME || field->is_own) {
            continue;
        }
        td_str text = *(td_str *)field_in(field, object);
        if (text.len > 0 && !object_owns(object, text)) {
            td_intern_unref(names, text);
        }
    }
    td_free(object);
}
