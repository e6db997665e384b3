/*
 * Validation of names, labels and annotations: upstream's rules, those of keys and label values
 * in its sentences (messages about selectors quote them), the others in words of our own. Each
 * check appends its messages to `out`, each ended by a newline, and returns how many there are: 0
 * means valid. `out` may be NULL. Appends are not checked: the owner of a small `out` asks it at
 * the end.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/json/json.h"
#include "base/str.h"

size_t td_name_check_dns1123_subdomain(td_str name, struct td_buf *out); /* most object names */
size_t td_name_check_dns1123_label(td_str name, struct td_buf *out); /* namespaces, containers */
size_t td_name_check_dns1035_label(td_str name, struct td_buf *out); /* services */
size_t td_name_check_subdomain_prefix(td_str prefix, struct td_buf *out); /* generateName */
size_t td_name_check_qualified(td_str name,
                               struct td_buf *out); /* label and annotation keys, finalizers */
size_t td_name_check_label_value(td_str value, struct td_buf *out);
size_t td_name_check_config_map_key(td_str key, struct td_buf *out);
size_t td_name_check_env_var(td_str name, struct td_buf *out); /* relaxed rule */
size_t td_name_check_port(td_str name, struct td_buf *out);

/* Whole maps, as JSON objects of strings, at `path` ("metadata.labels"). */
size_t td_name_check_labels(const struct td_json *labels, td_str path, struct td_buf *out);
size_t td_name_check_annotations(const struct td_json *annotations, td_str path,
                                 struct td_buf *out);
