/*
 * What one YAML scalar means: the rules by which Kubernetes' YAML library turns the text between
 * the indicators into null, a boolean, a number or a string, what such a value is called when it is
 * a key, and what it is in JSON. Shared by the reader and the writer of yaml.h, which quotes what
 * these rules would misread; private to the YAML code. Texts of a result are slices of the input
 * unless an arena copy was needed. Failures are TD_INVALID with a message without the line: the
 * reader knows it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_error;

enum td_yaml_kind {
    TD_YAML_NULL,
    TD_YAML_BOOL,
    TD_YAML_INT,
    TD_YAML_UINT, /* a whole number above INT64_MAX */
    TD_YAML_FLOAT,
    TD_YAML_TIMESTAMP, /* a string in JSON; told apart because other readers make a date of it */
    TD_YAML_STRING,
};

struct td_yaml_scalar {
    enum td_yaml_kind kind;
    union {
        bool boolean;
        int64_t integer;
        uint64_t large; /* UINT */
        double number;  /* FLOAT; may be infinite or not a number */
        td_str text;    /* STRING and TIMESTAMP */
    };
};

/* An unquoted scalar without a tag. */
struct td_yaml_scalar td_yaml_resolve_plain(td_str text);

/* A scalar with a tag in its long form ("tag:yaml.org,2002:int"), quoted or not. Tags that are not
 * known make strings. */
int td_yaml_resolve_tagged(struct td_arena *arena, td_str tag, td_str text,
                           struct td_yaml_scalar *ret, struct td_error *err);

/* The member name it makes. Null and whole numbers above INT64_MAX are refused. */
int td_yaml_scalar_key(struct td_arena *arena, const struct td_yaml_scalar *scalar, td_str *ret,
                       struct td_error *err);

/* The JSON value it makes. Infinities and not-a-number are refused. */
int td_yaml_scalar_node(struct td_arena *arena, const struct td_yaml_scalar *scalar,
                        struct td_json **ret, struct td_error *err);
