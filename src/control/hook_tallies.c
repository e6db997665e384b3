#include "base/os/loop.h"
#include "control/hook_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const double hook_buckets[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8,
                                      0.9,  1,    2,    5,   10,  20,  30,  60,  120, 300};

void hook_tallies_init(struct td_hook *hook)
{
    static const struct td_tally_declaration pods = {
        .name = "vpa_admission_controller_admission_pods_total",
        .help = "Pods that were created, and whether a recommendation was applied.",
        .kind = TD_TALLY_COUNTER,
        .labels = {"applied"}};
    static const struct td_tally_declaration latency = {
        .name = "vpa_admission_controller_admission_latency_seconds",
        .help = "Time from a review to its answer.",
        .kind = TD_TALLY_HISTOGRAM,
        .labels = {"status", "resource"},
        .buckets = hook_buckets,
        .bucket_count = COUNT(hook_buckets)};
    static const struct td_tally_declaration steps = {
        .name = "vpa_admission_controller_execution_latency_seconds",
        .help = "Time spent in the steps of an answer.",
        .kind = TD_TALLY_HISTOGRAM,
        .labels = {"step"},
        .buckets = hook_buckets,
        .bucket_count = COUNT(hook_buckets)};
    static const struct td_tally_declaration undecided = {
        .name = "tandem_admission_undecided_total",
        .help = "Objects admitted as they were because something was not known, and what.",
        .kind = TD_TALLY_COUNTER,
        .labels = {"reason"}};
    static const struct td_tally_declaration siblings = {
        .name = "tandem_admission_siblings_total",
        .help =
            "Objects judged beside others of their target, and by what: a list of the namespace "
            "or, where there was none in time, the informer.",
        .kind = TD_TALLY_COUNTER,
        .labels = {"source"}};
    static const struct td_tally_declaration mutates = {
        .name = "tandem_admission_webhook_mutates",
        .help = "1 while the last probe pod came back changed by the webhook, else 0.",
        .kind = TD_TALLY_GAUGE};
    static const struct td_tally_declaration expiry = {
        .name = "tandem_admission_certificate_expiry_seconds",
        .help = "When the serving certificate ends, in seconds since 1970.",
        .kind = TD_TALLY_GAUGE};
    struct td_tally *tally = hook->options.control.tally;
    struct hook_tallies *tallies = &hook->tallies;
    struct td_tally_family *family = td_tally_declare(tally, &pods);
    tallies->pods[0] = td_tally_series(family, &TD_STR("false"));
    tallies->pods[1] = td_tally_series(family, &TD_STR("true"));
    tallies->latency = td_tally_declare(tally, &latency);
    tallies->steps = td_tally_declare(tally, &steps);
    tallies->undecided = td_tally_declare(tally, &undecided);
    tallies->siblings = td_tally_declare(tally, &siblings);
    tallies->mutates = td_tally_series(td_tally_declare(tally, &mutates), NULL);
    tallies->expiry = td_tally_series(td_tally_declare(tally, &expiry), NULL);
}

td_duration hook_tally_step(struct td_hook *hook, const char *step, td_duration since)
{
    td_duration now = td_clock_machine(td_loop_clock(hook->options.control.loop));
    td_str value = td_str_from(step);
    td_tally_observe(td_tally_series(hook->tallies.steps, &value),
                     (double)(now - since) / (double)TD_SECOND);
    return now;
}

void hook_tally_undecided(struct td_hook *hook, const char *reason)
{
    td_str value = td_str_from(reason);
    td_tally_add(td_tally_series(hook->tallies.undecided, &value), 1);
}

void hook_tally_siblings(struct td_hook *hook, const char *source)
{
    td_str value = td_str_from(source);
    td_tally_add(td_tally_series(hook->tallies.siblings, &value), 1);
}
