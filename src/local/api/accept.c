/*
 * Content negotiation as the API server does it: the clauses of Accept by their weight, the first
 * that names something there is wins; a clause whose as=, g= and v= name nothing is passed over, so
 * that clients can list fallbacks. Answers are JSON, or YAML for reads. Protobuf is taken as a wish
 * for JSON: such a client reads the Content-Type of the response.
 */
#include "local/api/api_private.h"

#include "base/limits.h"

#define ACCEPT_WEIGHT_FULL 1000 /* q=1, in thousandths */

enum accept_type { ACCEPT_NOTHING, ACCEPT_JSON, ACCEPT_YAML };

struct accept_clause {
    td_str type;
    td_str as;
    td_str group;
    td_str version;
    int weight; /* thousandths */
};

/* "0.8" as 800; what is no weight counts fully. */
static int accept_weight(td_str text)
{
    if (text.len == 0 || text.ptr[0] != '0') {
        return ACCEPT_WEIGHT_FULL;
    }
    int weight = 0;
    int unit = ACCEPT_WEIGHT_FULL / 10;
    for (size_t i = 2; i < text.len && unit > 0; i++) {
        char c = text.ptr[i];
        weight += c >= '0' && c <= '9' ? (c - '0') * unit : 0;
        unit /= 10;
    }
    return weight;
}

static struct accept_clause accept_read_clause(td_str text)
{
    size_t end = td_str_find(text, ';', 0);
    struct accept_clause clause = {.type = td_str_trim(td_str_slice(text, 0, end)),
                                   .weight = ACCEPT_WEIGHT_FULL};
    while (end < text.len) {
        size_t from = end + 1;
        end = td_str_find(text, ';', from);
        td_str parameter = td_str_slice(text, from, end);
        size_t equals = td_str_find(parameter, '=', 0);
        td_str name = td_str_trim(td_str_slice(parameter, 0, equals));
        td_str value = td_str_trim(td_str_slice(parameter, equals + 1, parameter.len));
        if (td_str_equal(name, TD_STR("as"))) {
            clause.as = value;
        } else if (td_str_equal(name, TD_STR("g"))) {
            clause.group = value;
        } else if (td_str_equal(name, TD_STR("v"))) {
            clause.version = value;
        } else if (td_str_equal(name, TD_STR("q"))) {
            clause.weight = accept_weight(value);
        }
    }
    return clause;
}

static enum accept_type accept_type_of(td_str type, bool is_stream)
{
    static const td_str json_types[] = {
        TD_STR_INIT("application/json"),
        TD_STR_INIT("application/vnd.kubernetes.protobuf"),
        TD_STR_INIT("*/*"),
        TD_STR_INIT("application/*"),
    };
    for (size_t i = 0; i < TD_COUNT(json_types); i++) {
        if (td_str_equal(type, json_types[i])) {
            return ACCEPT_JSON;
        }
    }
    return !is_stream && td_str_equal(type, TD_STR("application/yaml")) ? ACCEPT_YAML
                                                                        : ACCEPT_NOTHING;
}

/* Does the clause name something there is? */
static bool accept_take(const struct accept_clause *clause, bool is_stream, struct td_accept *ret)
{
    enum accept_type type = accept_type_of(clause->type, is_stream);
    if (type == ACCEPT_NOTHING) {
        return false;
    }
    struct td_accept accept = {.form = TD_FORM_OBJECT, .is_yaml = type == ACCEPT_YAML};
    if (clause->as.len > 0) {
        if (!td_str_equal(clause->group, TD_STR("meta.k8s.io")) ||
            !td_str_equal(clause->version, TD_STR("v1"))) {
            return false;
        }
        accept.is_list_form = td_str_equal(clause->as, TD_STR("PartialObjectMetadataList"));
        if (td_str_equal(clause->as, TD_STR("Table"))) {
            accept.form = TD_FORM_TABLE;
        } else if (accept.is_list_form ||
                   td_str_equal(clause->as, TD_STR("PartialObjectMetadata"))) {
            accept.form = TD_FORM_PARTIAL;
        } else {
            return false;
        }
    }
    *ret = accept;
    return true;
}

bool td_accept_parse(td_str header, bool is_stream, struct td_accept *ret)
{
    if (td_str_trim(header).len == 0) {
        *ret = (struct td_accept){.form = TD_FORM_OBJECT};
        return true;
    }
    int best = -1;
    size_t from = 0;
    for (size_t i = 0; i < TD_ACCEPT_CLAUSES_MAX && from <= header.len; i++) {
        size_t end = td_str_find(header, ',', from);
        struct accept_clause clause = accept_read_clause(td_str_slice(header, from, end));
        struct td_accept accept;
        if (clause.weight > best && accept_take(&clause, is_stream, &accept)) {
            best = clause.weight;
            *ret = accept;
        }
        from = end + 1;
    }
    return best >= 0;
}
