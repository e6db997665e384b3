/*
 * Our JSON reading judged by jansson: the same texts accepted, the same values found. Used by the
 * fuzz target and by a unit test. Differences that are meant, and that make a text prove nothing:
 *
 * 1. jansson holds numbers as long long or double and refuses what overflows them; we keep texts.
 * 2. jansson nests 2048 deep, we stop at TD_JSON_DEPTH_MAX with TD_LIMIT.
 * 3. jansson refuses a NUL in a member's name even when NULs are allowed in strings; we take it.
 * 4. jansson loses a raw NUL byte that follows a number or a word; we refuse it, as the RFC does.
 *
 * Duplicate members (the last wins), lone surrogate escapes and malformed UTF-8 (refused) are the
 * same in both.
 */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/json/json.h"

enum json_oracle_verdict { JSON_ORACLE_AGREES, JSON_ORACLE_SKIPPED, JSON_ORACLE_DIFFERS };

static bool json_oracle_same_number(const struct td_json *ours, const json_t *theirs)
{
    if (ours->type != TD_JSON_TYPE_NUMBER) {
        return false;
    }
    if (json_is_integer(theirs)) {
        int64_t whole;
        return td_json_to_int64(ours, &whole) && whole == json_integer_value(theirs);
    }
    double value;
    double expected = json_real_value(theirs);
    return td_json_to_double(ours, &value) && memcmp(&value, &expected, sizeof(value)) == 0;
}

static bool json_oracle_same(const struct td_json *ours, const json_t *theirs, uint32_t depth);

static bool json_oracle_same_array(const struct td_json *ours, const json_t *theirs, uint32_t depth)
{
    if (ours->type != TD_JSON_TYPE_ARRAY || ours->count != json_array_size(theirs)) {
        return false;
    }
    size_t index = 0;
    for (const struct td_json *item = td_json_first_child(ours); item; item = item->next) {
        if (!json_oracle_same(item, json_array_get(theirs, index), depth + 1)) {
            return false;
        }
        index++;
    }
    return true;
}

static bool json_oracle_same_object(const struct td_json *ours, json_t *theirs, uint32_t depth)
{
    if (ours->type != TD_JSON_TYPE_OBJECT || ours->count != json_object_size(theirs)) {
        return false;
    }
    const char *key;
    json_t *value;
    json_object_foreach(theirs, key, value)
    {
        const struct td_json *member = td_json_get(ours, td_str_from(key));
        if (!member || !json_oracle_same(member, value, depth + 1)) {
            return false;
        }
    }
    return true;
}

/* Bounded by the depth that our parser accepts. */
static bool json_oracle_same(const struct td_json *ours, const json_t *theirs, uint32_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return false;
    }
    switch (json_typeof(theirs)) {
    case JSON_NULL:
        return ours->type == TD_JSON_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return ours->type == TD_JSON_TYPE_BOOL && ours->boolean == json_is_true(theirs);
    case JSON_STRING:
        return ours->type == TD_JSON_TYPE_STRING &&
               td_str_equal(ours->text, (td_str){.ptr = json_string_value(theirs),
                                                 .len = json_string_length(theirs)});
    case JSON_ARRAY:
        return json_oracle_same_array(ours, theirs, depth);
    case JSON_OBJECT: {
        json_t *object = json_incref((json_t *)(uintptr_t)theirs); /* iterating wants it writable */
        bool is_same = json_oracle_same_object(ours, object, depth);
        json_decref(object);
        return is_same;
    }
    default:
        return json_oracle_same_number(ours, theirs);
    }
}

/* `code` and `ours` are what td_json_parse made of the text. */
static enum json_oracle_verdict json_oracle_judge(td_str text, int code, const struct td_json *ours)
{
    json_error_t error;
    json_t *theirs = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!theirs) {
        enum json_error_code why = json_error_code(&error);
        if (why == json_error_numeric_overflow || why == json_error_null_byte_in_key) {
            return JSON_ORACLE_SKIPPED;
        }
        return code < 0 ? JSON_ORACLE_AGREES : JSON_ORACLE_DIFFERS;
    }
    enum json_oracle_verdict verdict = JSON_ORACLE_DIFFERS;
    bool has_nul = memchr(text.ptr, '\0', text.len) != NULL;
    if (code == TD_LIMIT || (code == TD_INVALID && has_nul)) {
        verdict = JSON_ORACLE_SKIPPED;
    } else if (code == TD_OK && json_oracle_same(ours, theirs, 0)) {
        verdict = JSON_ORACLE_AGREES;
    }
    json_decref(theirs);
    return verdict;
}
