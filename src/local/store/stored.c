/*
 * Lays out one revision in one allocation: the struct, the texts found in it, then the object's
 * JSON.
 */
#include "local/store/stored.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json/json_reader.h"
#include "base/limits.h"
#include "base/text.h"

/* The texts lie behind the structure: namespace, name, json and its NUL. */
static struct td_stored *stored_alloc(td_str ns, td_str name, td_str json)
{
    size_t bytes = sizeof(struct td_stored) + ns.len + name.len + json.len + 1;
    struct td_stored *stored = td_alloc(bytes);
    char *at = (char *)(stored + 1);
    *stored = (struct td_stored){
        .refs = 1,
        .bytes = (uint32_t)bytes,
        .ns = td_text_place(&at, ns),
        .name = td_text_place(&at, name),
        .json = td_text_place(&at, json),
        .uid = TD_STR_EMPTY,
        .labels = TD_STR_EMPTY,
    };
    *at = '\0';
    return stored;
}

/* The members of metadata up to its end; what is null counts as none. */
static enum td_json_token stored_read_metadata(struct td_json_reader *reader,
                                               struct td_stored *stored)
{
    enum td_json_token token;
    while ((token = td_json_reader_next(reader)) == TD_JSON_KEY) {
        bool is_uid = td_json_reader_key_is(reader, TD_STR("uid"));
        bool is_labels = td_json_reader_key_is(reader, TD_STR("labels"));
        bool is_owners = td_json_reader_key_is(reader, TD_STR("ownerReferences"));
        bool is_deletion = td_json_reader_key_is(reader, TD_STR("deletionTimestamp"));
        token = td_json_reader_next(reader);
        const char *begin = reader->at - 1; /* of a collection: its bracket */
        td_str text = reader->text;
        bool is_whole = td_json_reader_skip(reader) == TD_OK; /* a failure is the next token */
        if (is_uid && token == TD_JSON_STRING) {
            stored->uid = text;
        } else if (is_labels && token == TD_JSON_BEGIN_OBJECT && is_whole) {
            stored->labels = (td_str){.ptr = begin, .len = (size_t)(reader->at - begin)};
        } else if (is_owners && token == TD_JSON_BEGIN_ARRAY && is_whole) {
            stored->owners = (td_str){.ptr = begin, .len = (size_t)(reader->at - begin)};
        } else if (is_deletion && token == TD_JSON_STRING) {
            stored->is_deleting = true;
        }
    }
    return token;
}

/* Reads only as far as the metadata goes: the text was made by our own writer. */
static int stored_find_slices(struct td_stored *stored, struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, stored->json, TD_JSON_DEPTH_MAX);
    enum td_json_token token = td_json_reader_next(&reader);
    if (token != TD_JSON_BEGIN_OBJECT && token != TD_JSON_ERROR) {
        return td_error_set(err, TD_INVALID, "the object's text is not a JSON object");
    }
    while (token != TD_JSON_ERROR && (token = td_json_reader_next(&reader)) == TD_JSON_KEY) {
        if (!td_json_reader_key_is(&reader, TD_STR("metadata"))) {
            (void)td_json_reader_skip(&reader); /* a failure is the next token */
            continue;
        }
        if (td_json_reader_next(&reader) != TD_JSON_BEGIN_OBJECT) {
            return td_error_set(err, TD_INVALID, "the object's metadata is not a JSON object");
        }
        token = stored_read_metadata(&reader, stored);
        break;
    }
    return token == TD_JSON_ERROR ? td_json_reader_error(&reader, err) : TD_OK;
}

int td_stored_new(uint64_t version, td_str ns, td_str name, td_str json, struct td_stored **ret,
                  struct td_error *err)
{
    if (name.len == 0) {
        return td_error_set(err, TD_INVALID, "an object without a name cannot be stored");
    }
    if (ns.len > TD_STORED_NAME_BYTES_MAX || name.len > TD_STORED_NAME_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT,
                            "the object's name or namespace is longer than %zu bytes",
                            TD_STORED_NAME_BYTES_MAX);
    }
    if (json.len > TD_STORED_JSON_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "the object has %zu bytes, more than the %zu allowed",
                            json.len, TD_STORED_JSON_BYTES_MAX);
    }
    struct td_stored *stored = stored_alloc(ns, name, json);
    stored->version = version;
    int code = stored_find_slices(stored, err);
    if (code < 0) {
        td_stored_unref(stored);
        return code;
    }
    *ret = stored;
    return TD_OK;
}

struct td_stored *td_stored_ref(struct td_stored *stored)
{
    td_assert(stored->refs > 0);
    td_assert(stored->refs < UINT32_MAX);
    stored->refs++;
    return stored;
}

void td_stored_unref(struct td_stored *stored)
{
    if (!stored) {
        return;
    }
    td_assert(stored->refs > 0);
    if (--stored->refs == 0) {
        td_free(stored);
    }
}
