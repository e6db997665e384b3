#include "kube/client/lease_object.h"

#include "base/error.h"
#include "base/limits.h"

struct td_api_path td_lease_path(td_str namespace, td_str name)
{
    return (struct td_api_path){
        .group = TD_STR("coordination.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = namespace,
        .plural = TD_STR("leases"),
        .name = name,
    };
}

int td_lease_decode(struct td_arena *arena, td_str body, struct td_json **ret_object,
                    struct td_lease_record *ret, struct td_error *err)
{
    const struct td_json_options options = {.bytes_max = TD_LEASE_BYTES_MAX, .copy_strings = true};
    struct td_json *object;
    int code = td_json_parse(arena, body, &options, &object, err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_json *spec = td_json_get(object, TD_STR("spec"));
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT) || (spec && spec->type != TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "the answer is no Lease");
    }
    *ret = (struct td_lease_record){
        .holder = td_json_text(spec, "holderIdentity"),
        .duration_seconds = td_json_get_int64(spec, TD_STR("leaseDurationSeconds"), 0),
        .transitions = td_json_get_int64(spec, TD_STR("leaseTransitions"), 0),
        .acquire_time = td_json_text(spec, "acquireTime"),
        .spec = spec ? td_json_line(arena, spec) : TD_STR_EMPTY,
    };
    *ret_object = object;
    return TD_OK;
}

struct td_json *td_lease_new_object(struct td_arena *arena, td_str namespace, td_str name)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("coordination.k8s.io/v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("Lease"));
    struct td_json *meta = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_json_set_str(arena, meta, TD_STR("name"), name);
    td_json_set_str(arena, meta, TD_STR("namespace"), namespace);
    return object;
}

td_str td_lease_time(struct td_arena *arena, struct td_instant now)
{
    return td_time_text(arena, now, 6);
}

void td_lease_set(struct td_arena *arena, struct td_json *object,
                  const struct td_lease_record *record, struct td_instant now)
{
    td_str time = td_lease_time(arena, now);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    td_json_set_str(arena, spec, TD_STR("holderIdentity"), record->holder);
    td_json_set_int64(arena, spec, TD_STR("leaseDurationSeconds"), record->duration_seconds);
    td_json_set_str(arena, spec, TD_STR("acquireTime"),
                    record->acquire_time.len > 0 ? record->acquire_time : time);
    td_json_set_str(arena, spec, TD_STR("renewTime"), time);
    td_json_set_int64(arena, spec, TD_STR("leaseTransitions"), record->transitions);
}
