/*
 * YAML into the JSON tree, with the rules of Kubernetes' YAML library in its strict form
 * (sigs.k8s.io/yaml: YAML 1.1 words such as yes, on and off are booleans, 0o17 and 017 octal, whole
 * numbers of up to 64 bits kept exactly, keys turned into strings), and a writer of readable YAML.
 * Streams hold several documents; empty ones are left out. Aliases are expanded under a cap,
 * duplicate keys are rejected, also those that a merge key (<<) brings. Every node has its line, a
 * member that of its key. A text that begins with '{' or '[' is read by the same path. Nothing of
 * the text is referred to afterwards: the tree holds copies.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
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
 * order of the tree. Ends with a newline. Check out at the end; a tree nested deeper than
 * TD_JSON_DEPTH_MAX, which could not be read back, makes it full. */
void td_yaml_write(const struct td_json *node, struct td_buf *out);
/* The same value in ASCII: texts with other characters are in double quotes, with escapes. */
void td_yaml_write_ascii(const struct td_json *node, struct td_buf *out);
