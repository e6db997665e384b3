/*
 * YAML into the JSON tree, with the scalar rules of Kubernetes' YAML library (sigs.k8s.io/yaml:
 * YAML 1.1 words such as yes, on and off are booleans, 0o17 and 017 octal, big integers kept
 * exactly, keys turned into strings), and a writer for people. Streams hold several documents;
 * empty ones are left out. Aliases are expanded under a cap, duplicate keys are rejected, merge
 * keys (<<) are honoured. Every node has its line. A text that begins with '{' or '[' is read by
 * the same path.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

struct td_error;

struct td_yaml_documents {
    struct td_json **items; /* in the arena */
    size_t count;
};

/* On failure the message has the line ("line 3: duplicate key 'name'") and *ret is untouched. */
int td_yaml_parse(struct td_arena *arena, td_str text, struct td_yaml_documents *ret,
                  struct td_error *err);

/* Block style, two spaces, list items not indented under their key, quotes only where a reader
 * would otherwise get another value, literal blocks for texts of several lines. Members in the
 * order of the tree. Ends with a newline. */
void td_yaml_write(const struct td_json *node, struct td_buf *out);
