#include "kube/paths.h"

#include "base/error.h"

static bool path_is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.' || byte == '~';
}

void td_path_escape(struct td_buf *out, td_str part)
{
    size_t plain = 0; /* where the run of bytes began that need no escape */
    for (size_t i = 0; i < part.len; i++) {
        unsigned char byte = (unsigned char)part.ptr[i];
        if (path_is_plain(byte)) {
            continue;
        }
        (void)td_buf_append(out, td_str_slice(part, plain, i)); /* a full buffer is sticky */
        (void)td_buf_append_format(out, "%%%02X", byte);
        plain = i + 1;
    }
    (void)td_buf_append(out, td_str_slice(part, plain, part.len));
}

struct path_part {
    const char *what;
    td_str text;
    bool is_required;
};

static int path_write_part(const struct path_part *part, struct td_buf *out, struct td_error *err)
{
    if (part->text.len == 0) {
        return part->is_required ? td_error_set(err, TD_INVALID, "API path: no %s", part->what)
                                 : TD_OK;
    }
    if (td_str_equal(part->text, TD_STR(".")) || td_str_equal(part->text, TD_STR(".."))) {
        return td_error_set(err, TD_INVALID, "API path: %s '%.*s' cannot stand in a path",
                            part->what, TD_STR_ARG(part->text));
    }
    (void)td_buf_append_char(out, '/'); /* checked at the end, as all appends */
    td_path_escape(out, part->text);
    return TD_OK;
}

int td_path_write(const struct td_api_path *path, struct td_buf *out, struct td_error *err)
{
    if (path->subresource.len > 0 && path->name.len == 0) {
        return td_error_set(err, TD_INVALID, "API path: subresource '%.*s' without a name",
                            TD_STR_ARG(path->subresource));
    }
    const struct path_part parts[] = {
        {"group", path->group, false},
        {"version", path->version, true},
        {"", path->namespace.len > 0 ? TD_STR("namespaces") : TD_STR_EMPTY, false},
        {"namespace", path->namespace, false},
        {"resource", path->plural, true},
        {"name", path->name, false},
        {"subresource", path->subresource, false},
    };
    (void)td_buf_append(out, path->group.len > 0 ? TD_STR("/apis") : TD_STR("/api"));
    for (size_t i = 0; i < TD_COUNT(parts); i++) {
        int code = path_write_part(&parts[i], out, err);
        if (code != TD_OK) {
            return code;
        }
    }
    return td_buf_check(out, "API path", err);
}

void td_path_add_query(struct td_buf *out, td_str key, td_str value)
{
    td_str so_far = td_buf_str(out);
    bool is_first = td_str_find(so_far, '?', 0) == so_far.len;
    (void)td_buf_append_char(out, is_first ? '?' : '&'); /* a full buffer is sticky */
    td_path_escape(out, key);
    (void)td_buf_append_char(out, '=');
    td_path_escape(out, value);
}

struct td_api_path td_path_scale(const struct td_served_resource *resource,
                                 struct td_object_key object)
{
    return (struct td_api_path){
        .group = resource->group,
        .version = resource->version,
        .namespace = resource->is_namespaced ? object.namespace : TD_STR_EMPTY,
        .plural = resource->plural,
        .name = object.name,
        .subresource = TD_STR("scale"),
    };
}
