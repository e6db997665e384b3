/* The table of estimators, and which of them a name, or the annotations of a VPA, choose. */
#include "decide/vertical/estimator/estimator.h"

#include <stdio.h>

#define NAME_BYTES_MAX 64
#define NAMES_BYTES_MAX ((size_t)1024)

static const struct td_estimator *const estimators[] = {
#define ESTIMATOR_ROW(name) &name,
    TD_ESTIMATORS(ESTIMATOR_ROW)
#undef ESTIMATOR_ROW
};

const struct td_estimator *td_estimator_at(size_t index)
{
    return index < TD_COUNT(estimators) ? estimators[index] : NULL;
}

const struct td_estimator *td_estimator_find(td_str name)
{
    const struct td_estimator *estimator;
    for (size_t i = 0; (estimator = td_estimator_at(i)); i++) {
        if (td_str_equal(td_str_from(estimator->name), name)) {
            break;
        }
    }
    return estimator;
}

const char *td_resize_lack_text(enum td_resize_lack lack)
{
    static const char *const texts[] = {
        [TD_RESIZE_POSSIBLE] = NULL,
        [TD_RESIZE_LACKS_MODE] = "its update mode does not resize pods in place",
        [TD_RESIZE_LACKS_NODE] = "its node or the API server does not resize pods in place",
        [TD_RESIZE_RESTARTS] = "its resizePolicy of cpu is RestartContainer",
    };
    return texts[lack];
}

void td_estimator_write_names(struct td_buf *out)
{
    const struct td_estimator *estimator;
    for (size_t i = 0; (estimator = td_estimator_at(i)); i++) {
        (void)td_buf_append_format(out, "%s%s", i > 0 ? ", " : "", estimator->name);
    }
}

/* The name without a risk. */
static td_str stem_of(const struct td_estimator *estimator)
{
    td_str name = td_str_from(estimator->name);
    return td_str_slice(name, 0, td_str_find(name, '-', 0));
}

struct td_estimator_choice td_estimator_choose(const struct td_json *annotations,
                                               const struct td_estimator *fallback)
{
    struct td_estimator_choice choice = {.estimator = fallback};
    const struct td_json *named = td_json_get(annotations, TD_ESTIMATOR_ANNOTATION);
    if (td_json_is(named, TD_JSON_TYPE_STRING)) {
        const struct td_estimator *found = td_estimator_find(named->text);
        choice.estimator = found ? found : fallback;
        choice.unknown = found ? NULL : named;
    }
    const struct td_json *risk = td_json_get(annotations, TD_RISK_ANNOTATION);
    if (!td_json_is(risk, TD_JSON_TYPE_STRING)) {
        return choice;
    }
    /* "adaptive" under risk "careful" is registered as "adaptive-careful". */
    char name[NAME_BYTES_MAX];
    td_str stem = stem_of(choice.estimator);
    bool is_balanced = td_str_equal(risk->text, TD_STR("balanced"));
    int len = is_balanced ? snprintf(name, sizeof(name), "%.*s", TD_STR_ARG(stem))
                          : snprintf(name, sizeof(name), "%.*s-%.*s", TD_STR_ARG(stem),
                                     TD_STR_ARG(risk->text));
    const struct td_estimator *found =
        len > 0 && (size_t)len < sizeof(name) ? td_estimator_find(td_str_from(name)) : NULL;
    if (found) {
        choice.estimator = found;
    } else if (!choice.unknown) {
        choice.unknown = risk;
    }
    return choice;
}

/* The risks that are registered for an estimator, "balanced" first. */
static void write_risks(td_str stem, struct td_buf *out)
{
    const struct td_estimator *estimator;
    (void)td_buf_append(out, TD_STR("balanced"));
    for (size_t i = 0; (estimator = td_estimator_at(i)); i++) {
        td_str other = td_str_from(estimator->name);
        if (other.len > stem.len + 1 && td_str_starts_with(other, stem) &&
            other.ptr[stem.len] == '-') {
            (void)td_buf_append_format(out, ", %s", estimator->name + stem.len + 1);
        }
    }
}

td_str td_estimator_refusal(struct td_arena *arena, const struct td_estimator_choice *choice)
{
    td_auto_buf known = td_buf_capped(NAMES_BYTES_MAX);
    if (td_str_equal(choice->unknown->key, TD_RISK_ANNOTATION)) {
        write_risks(stem_of(choice->estimator), &known);
    } else {
        td_estimator_write_names(&known);
    }
    return td_arena_format(arena, "'%.*s': use one of %.*s", TD_STR_ARG(choice->unknown->text),
                           TD_STR_ARG(td_buf_str(&known)));
}

td_str td_estimator_problem(struct td_arena *arena, const struct td_estimator_choice *choice)
{
    if (!choice->unknown) {
        return TD_STR_EMPTY;
    }
    td_str refusal = td_estimator_refusal(arena, choice);
    return td_arena_format(arena, "annotation %.*s: %.*s; %s is used",
                           TD_STR_ARG(choice->unknown->key), TD_STR_ARG(refusal),
                           choice->estimator->name);
}
