/*
 * Decoding refuses what Go would: fractions where a field is an integer, weights outside uint32,
 * other types. Encoding writes the zero time as null and leaves out buckets without weight, so that
 * upstream reads back what it would have written.
 */
#include "api/vpa/checkpoint.h"

#include "base/error.h"

static bool is_absent(const struct td_json *node)
{
    return !node || node->type == TD_JSON_TYPE_NULL;
}

static int checkpoint_time(const struct td_json *object, td_str key, struct td_instant *ret,
                           struct td_error *err)
{
    const struct td_json *node = td_json_get(object, key);
    if (is_absent(node)) {
        return TD_OK;
    }
    if (node->type != TD_JSON_TYPE_STRING) {
        return td_error_set(err, TD_INVALID, "%.*s: not a time", TD_STR_ARG(key));
    }
    int code = td_time_parse(node->text, ret, err);
    return code < 0 ? td_error_wrap(err, code, "%.*s", TD_STR_ARG(key)) : code;
}

static int checkpoint_text(const struct td_json *object, td_str key, td_str *ret,
                           struct td_error *err)
{
    const struct td_json *node = td_json_get(object, key);
    if (is_absent(node)) {
        return TD_OK;
    }
    if (node->type != TD_JSON_TYPE_STRING) {
        return td_error_set(err, TD_INVALID, "%.*s: not a string", TD_STR_ARG(key));
    }
    *ret = node->text;
    return TD_OK;
}

/* Go decodes whole numbers from digits only: 1.0 and 1e3 are refused. */
static int checkpoint_count(const struct td_json *object, td_str key, int64_t *ret,
                            struct td_error *err)
{
    const struct td_json *node = td_json_get(object, key);
    if (is_absent(node)) {
        return TD_OK;
    }
    if (node->type != TD_JSON_TYPE_NUMBER || !td_str_to_int64(node->text, ret)) {
        return td_error_set(err, TD_INVALID, "%.*s: not a whole number", TD_STR_ARG(key));
    }
    return TD_OK;
}

static int checkpoint_weight(const struct td_json *node, uint32_t *ret, struct td_error *err)
{
    int64_t weight = 0;
    if (node->type == TD_JSON_TYPE_NULL) {
        *ret = 0;
        return TD_OK;
    }
    if (node->type != TD_JSON_TYPE_NUMBER || node->text.ptr[0] == '-' ||
        !td_str_to_int64(node->text, &weight) || weight > UINT32_MAX) {
        return td_error_set(err, TD_INVALID, "bucketWeights[\"%.*s\"]: not a weight",
                            TD_STR_ARG(node->key));
    }
    *ret = (uint32_t)weight;
    return TD_OK;
}

static int checkpoint_weights(const struct td_json *weights, struct td_histogram_checkpoint *ret,
                              struct td_error *err)
{
    if (is_absent(weights)) {
        return TD_OK;
    }
    if (weights->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "bucketWeights: not an object");
    }
    for (const struct td_json *item = td_json_first_member(weights); item; item = item->next) {
        int64_t bucket = 0;
        if (!td_str_to_int64(item->key, &bucket)) {
            return td_error_set(err, TD_INVALID, "bucketWeights: '%.*s' is not a bucket",
                                TD_STR_ARG(item->key));
        }
        if (bucket < 0 || bucket >= TD_CHECKPOINT_BUCKETS_MAX) {
            return td_error_set(err, TD_INVALID, "bucketWeights: bucket %lld is not in 0..%d",
                                (long long)bucket, TD_CHECKPOINT_BUCKETS_MAX - 1);
        }
        int code = checkpoint_weight(item, &ret->weights[bucket], err);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

int td_histogram_checkpoint_decode(const struct td_json *object,
                                   struct td_histogram_checkpoint *ret, struct td_error *err)
{
    struct td_histogram_checkpoint made = {.reference = TD_INSTANT_ZERO};
    if (is_absent(object)) {
        *ret = made;
        return TD_OK;
    }
    if (object->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "not an object");
    }
    int code = checkpoint_time(object, TD_STR("referenceTimestamp"), &made.reference, err);
    if (code == TD_OK) {
        code = checkpoint_weights(td_json_get(object, TD_STR("bucketWeights")), &made, err);
    }
    if (code < 0) {
        return code;
    }
    const struct td_json *total = td_json_get(object, TD_STR("totalWeight"));
    if (!is_absent(total) &&
        (total->type != TD_JSON_TYPE_NUMBER || !td_json_to_double(total, &made.total_weight))) {
        return td_error_set(err, TD_INVALID, "totalWeight: not a number");
    }
    *ret = made;
    return TD_OK;
}

int td_checkpoint_decode_status(const struct td_json *status, struct td_checkpoint *ret,
                                struct td_error *err)
{
    struct td_checkpoint made = {
        .vpa_name = TD_STR_EMPTY,
        .container_name = TD_STR_EMPTY,
        .version = TD_STR_EMPTY,
        .last_update = TD_INSTANT_ZERO,
        .first_sample = TD_INSTANT_ZERO,
        .last_sample = TD_INSTANT_ZERO,
        .cpu.reference = TD_INSTANT_ZERO,
        .memory.reference = TD_INSTANT_ZERO,
    };
    if (!is_absent(status) && status->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "status: not an object");
    }
    int code = checkpoint_time(status, TD_STR("lastUpdateTime"), &made.last_update, err);
    if (code == TD_OK) {
        code = checkpoint_text(status, TD_STR("version"), &made.version, err);
    }
    if (code == TD_OK) {
        code = checkpoint_time(status, TD_STR("firstSampleStart"), &made.first_sample, err);
    }
    if (code == TD_OK) {
        code = checkpoint_time(status, TD_STR("lastSampleStart"), &made.last_sample, err);
    }
    if (code == TD_OK) {
        code = checkpoint_count(status, TD_STR("totalSamplesCount"), &made.total_samples, err);
    }
    if (code < 0) {
        return code;
    }
    const struct td_json *cpu = td_json_get(status, TD_STR("cpuHistogram"));
    code = td_histogram_checkpoint_decode(cpu, &made.cpu, err);
    if (code < 0) {
        return td_error_wrap(err, code, "cpuHistogram");
    }
    const struct td_json *memory = td_json_get(status, TD_STR("memoryHistogram"));
    code = td_histogram_checkpoint_decode(memory, &made.memory, err);
    if (code < 0) {
        return td_error_wrap(err, code, "memoryHistogram");
    }
    *ret = made;
    return TD_OK;
}

static struct td_json *checkpoint_time_json(struct td_arena *arena, struct td_instant time)
{
    const struct td_instant zero = TD_INSTANT_ZERO;
    if (time.unix_seconds == zero.unix_seconds && time.nanos == 0) {
        return td_json_new_null(arena);
    }
    return td_json_new_string(arena, td_time_text(arena, time, 0));
}

struct td_json *td_histogram_checkpoint_encode(struct td_arena *arena,
                                               const struct td_histogram_checkpoint *histogram)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *weights = td_json_new_object(arena);
    td_json_set(arena, object, TD_STR("referenceTimestamp"),
                checkpoint_time_json(arena, histogram->reference));
    for (int bucket = 0; bucket < TD_CHECKPOINT_BUCKETS_MAX; bucket++) {
        if (histogram->weights[bucket] > 0) {
            td_json_set_int64(arena, weights, td_arena_format(arena, "%d", bucket),
                              histogram->weights[bucket]);
        }
    }
    if (weights->count > 0) {
        td_json_sort(arena, weights); /* Go writes "1", "10", "2" */
        td_json_set(arena, object, TD_STR("bucketWeights"), weights);
    }
    if (histogram->total_weight != 0) {
        td_json_set_double(arena, object, TD_STR("totalWeight"), histogram->total_weight);
    }
    return object;
}

struct td_json *td_checkpoint_encode_status(struct td_arena *arena,
                                            const struct td_checkpoint *checkpoint)
{
    struct td_json *status = td_json_new_object(arena);
    td_json_set(arena, status, TD_STR("lastUpdateTime"),
                checkpoint_time_json(arena, checkpoint->last_update));
    td_json_set_str(arena, status, TD_STR("version"), checkpoint->version);
    td_json_set(arena, status, TD_STR("cpuHistogram"),
                td_histogram_checkpoint_encode(arena, &checkpoint->cpu));
    td_json_set(arena, status, TD_STR("memoryHistogram"),
                td_histogram_checkpoint_encode(arena, &checkpoint->memory));
    td_json_set(arena, status, TD_STR("firstSampleStart"),
                checkpoint_time_json(arena, checkpoint->first_sample));
    td_json_set(arena, status, TD_STR("lastSampleStart"),
                checkpoint_time_json(arena, checkpoint->last_sample));
    if (checkpoint->total_samples != 0) {
        td_json_set_int64(arena, status, TD_STR("totalSamplesCount"), checkpoint->total_samples);
    }
    return status;
}

struct td_json *td_checkpoint_encode(struct td_arena *arena, td_str namespace,
                                     const struct td_checkpoint *checkpoint)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *meta = td_json_new_object(arena);
    struct td_json *spec = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), TD_STR("autoscaling.k8s.io/v1"));
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("VerticalPodAutoscalerCheckpoint"));
    td_str name = td_arena_format(arena, "%.*s-%.*s", TD_STR_ARG(checkpoint->vpa_name),
                                  TD_STR_ARG(checkpoint->container_name));
    td_json_set_str(arena, meta, TD_STR("name"), name);
    td_json_set_str(arena, meta, TD_STR("namespace"), namespace);
    td_json_set(arena, object, TD_STR("metadata"), meta);
    td_json_set_str(arena, spec, TD_STR("vpaObjectName"), checkpoint->vpa_name);
    td_json_set_str(arena, spec, TD_STR("containerName"), checkpoint->container_name);
    td_json_set(arena, object, TD_STR("spec"), spec);
    td_json_set(arena, object, TD_STR("status"), td_checkpoint_encode_status(arena, checkpoint));
    return object;
}

int td_checkpoint_decode(struct td_arena *arena, const struct td_json *object,
                         struct td_checkpoint *ret, struct td_error *err)
{
    struct td_checkpoint made;
    (void)arena; /* texts are slices of the tree */
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "checkpoint: not an object");
    }
    int code = td_checkpoint_decode_status(td_json_get(object, TD_STR("status")), &made, err);
    if (code < 0) {
        return td_error_wrap(err, code, "status");
    }
    const struct td_json *spec = td_json_get(object, TD_STR("spec"));
    code = checkpoint_text(spec, TD_STR("vpaObjectName"), &made.vpa_name, err);
    if (code == TD_OK) {
        code = checkpoint_text(spec, TD_STR("containerName"), &made.container_name, err);
    }
    if (code < 0) {
        return td_error_wrap(err, code, "spec");
    }
    *ret = made;
    return TD_OK;
}
