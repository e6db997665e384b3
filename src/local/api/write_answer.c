/* How writes fail: Status objects in upstream's words, with the details that clients read. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "local/api/api_private.h"
#include "local/api/write.h"

enum td_write_step td_write_bad_request(struct td_write *write, const char *format, ...)
{
    char message[TD_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args); /* a longer message is cut */
    va_end(args);
    td_call_fail(write->call, 400, "BadRequest", "%s", message);
    return TD_STEP_ANSWERED;
}

/* "deployments.apps", or "pods" in the core group. */
static td_str answer_resource(const struct td_write *write)
{
    const struct td_resource *resource = write->resource;
    return resource->group.len > 0
               ? td_arena_format(write->arena, "%.*s.%.*s", TD_STR_ARG(resource->plural),
                                 TD_STR_ARG(resource->group))
               : resource->plural;
}

enum td_write_step td_write_fail(struct td_write *write, int status, const char *reason,
                                 td_str message)
{
    struct td_json *tree = td_call_status(write->call, status, reason, message);
    td_json_set(write->arena, tree, TD_STR("details"),
                td_status_details(write->arena, write->name, write->resource->group,
                                  write->resource->plural));
    td_call_reply_json(write->call, status, tree);
    return TD_STEP_ANSWERED;
}

enum td_write_step td_write_conflict(struct td_write *write)
{
    td_call_conflict(write->call, write->name,
                     "the object has been modified; please apply your changes to the latest "
                     "version and try again");
    return TD_STEP_ANSWERED;
}

enum td_write_step td_write_missing(struct td_write *write)
{
    td_call_not_found(write->call, write->name);
    return TD_STEP_ANSWERED;
}

enum td_write_step td_write_exists(struct td_write *write)
{
    const struct td_stored *there = td_collection_get(write->collection, write->ns, write->name);
    struct td_json *tree = NULL;
    bool is_going = there && td_json_parse(write->arena, there->json, NULL, &tree, NULL) == TD_OK &&
                    td_json_get_path(tree, "metadata.deletionTimestamp");
    td_str message = td_arena_format(write->arena, "%s%.*s \"%.*s\" already exists",
                                     is_going ? "object is being deleted: " : "",
                                     TD_STR_ARG(answer_resource(write)), TD_STR_ARG(write->name));
    return td_write_fail(write, 409, "AlreadyExists", message);
}

enum td_write_step td_write_too_large(struct td_write *write, const char *message)
{
    td_call_fail(write->call, 413, "RequestEntityTooLarge", "%s", message);
    return TD_STEP_ANSWERED;
}

enum td_write_step td_write_invalid(struct td_write *write, const struct td_field_errors *errors)
{
    td_call_invalid(write->call, write->resource->kind, write->name, errors);
    return TD_STEP_ANSWERED;
}

enum td_write_step td_write_invalid_part(struct td_write *write, td_str group, td_str kind,
                                         td_str name, const struct td_field_errors *errors)
{
    td_call_invalid_of(write->call, group, kind, name, errors);
    return TD_STEP_ANSWERED;
}
