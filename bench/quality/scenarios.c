/*
 * Every set-up gets a workload of its own name and the same load. Requests take 10 ms of a
 * processor, so 100 a second keep one core busy. Templates are 500m and 512Mi with limits half as
 * large again and twice as large, but where the scenario is about a template that is wrong.
 */
#include "scenarios.h"

#include <math.h>
#include <stdio.h>

#define PI 3.14159265358979323846
#define HOURS 96
#define HPA_USUAL 70

const struct quality_scenario quality_scenarios[QUALITY_SCENARIOS] = {
    {"steady", "{value: 150/s, noise: 5%}", "", 5, 20, "500m", "750m", "512Mi", "1Gi", false,
     false},
    {"daily", "{shape: day, low: 20/s, high: 150/s, peakAt: \"13:00\", noise: 5%}", "", 5, 20,
     "500m", "750m", "512Mi", "1Gi", false, true},
    {"week", NULL, "", 5, 20, "500m", "750m", "512Mi", "1Gi", false, false},
    {"flash", "{shape: spikes, low: 30/s, high: 250/s, every: 8h, for: 10m, noise: 5%}", "", 9, 20,
     "500m", "750m", "512Mi", "1Gi", false, true},
    {"leak", "{shape: spikes, low: 20/s, high: 80/s, every: 1h, for: 15m, noise: 5%}",
     "    memoryHabits: {leakPerHour: 60Mi}\n", 3, 20, "500m", "750m", "512Mi", "1Gi", false, true},
    {"too-big", "{shape: day, low: 20/s, high: 150/s, peakAt: \"13:00\", noise: 5%}", "", 2, 20,
     "2", "3", "2Gi", "4Gi", false, false},
    {"too-small", "{shape: day, low: 20/s, high: 250/s, peakAt: \"13:00\", noise: 5%}", "", 10, 10,
     "125m", "187m", "128Mi", "256Mi", false, false},
    {"roles", "{shape: day, low: 20/s, high: 80/s, peakAt: \"13:00\", noise: 5%}",
     "    roles: {label: role, leader: {weight: 4}, follower: {weight: 1}}\n", 4, 20, "500m",
     "750m", "512Mi", "1Gi", true, false},
};

static void add_setup(struct quality_setup *setups, size_t *count, struct quality_setup setup,
                      const char *prefix)
{
    struct quality_setup *to = &setups[*count];
    *to = setup;
    (void)snprintf(to->name, sizeof(to->name), "%s%s%s", prefix, setup.estimator ? "-" : "",
                   setup.estimator ? setup.estimator : "");
    (*count)++;
}

size_t quality_setups(struct quality_setup *ret)
{
    static const char *const estimators[] = {"upstream", "adaptive", "track"};
    static const char *const modes[][2] = {{"hvpa-ratio", "RatioBased"},
                                           {"hvpa-preferred", "HPAPreferred"},
                                           {"hvpa-hpa", "HPABiased"},
                                           {"hvpa-vpa", "VPABiased"},
                                           {"hvpa-mixed", "Mixed"}};
    static const struct quality_setup vertical[] = {
        {.kind = QUALITY_HPA_VPA, .utilization = HPA_USUAL, .is_memory_only = true},
        {.kind = QUALITY_VPA},
        {.kind = QUALITY_HPA_VPA, .utilization = HPA_USUAL},
    };
    static const char *const vertical_names[] = {"hpa70-memory", "vpa", "hpa70-vpa"};
    size_t count = 0;
    add_setup(ret, &count, (struct quality_setup){.kind = QUALITY_FIXED}, "fixed");
    for (int utilization = 60; utilization <= 80; utilization += 10) {
        char name[QUALITY_NAME_BYTES];
        (void)snprintf(name, sizeof(name), "hpa%d", utilization);
        add_setup(ret, &count,
                  (struct quality_setup){.kind = QUALITY_HPA, .utilization = utilization}, name);
    }
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            struct quality_setup setup = vertical[i];
            setup.estimator = estimators[k];
            add_setup(ret, &count, setup, vertical_names[i]);
        }
    }
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 3; k++) {
            add_setup(ret, &count,
                      (struct quality_setup){.kind = QUALITY_HVPA,
                                             .utilization = HPA_USUAL,
                                             .mode = modes[i][1],
                                             .estimator = estimators[k]},
                      modes[i][0]);
        }
    }
    return count;
}

/* Thursday to Sunday, each hour a point: a weekend has four tenths of the load. */
static void write_week(struct td_buf *out)
{
    (void)td_buf_append_format(out, "{shape: ramp, noise: 5%%, points: [");
    for (int hour = 0; hour < HOURS; hour++) {
        double wave = (1 + cos((hour % 24 - 13) * PI / 12)) / 2;
        double factor = hour < 48 ? 1 : 0.4;
        (void)td_buf_append_format(out, "%s{at: %dh, value: %d/s}", hour > 0 ? ", " : "", hour,
                                   (int)((20 + 130 * wave) * factor + 0.5));
    }
    (void)td_buf_append_format(out, "]}");
}

void quality_write_scenario(const struct quality_scenario *scenario,
                            const struct quality_setup *setups, size_t count, struct td_buf *out)
{
    const char *kind = scenario->has_roles ? "StatefulSet" : "Deployment";
    (void)td_buf_append_format(out,
                               "apiVersion: sim.tandem.dev/v1\nkind: Scenario\n"
                               "metadata: {name: %s}\nspec:\n  duration: 4d\n"
                               "  nodes: [{count: 8, cpu: \"64\", memory: 512Gi, pods: 250}]\n"
                               "  manifests: [objects.yaml]\n  demand:\n",
                               scenario->name);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_format(out, "  - target: {kind: %s, name: %s}\n    requests: ", kind,
                                   setups[i].name);
        if (scenario->requests) {
            (void)td_buf_append_format(out, "%s", scenario->requests);
        } else {
            write_week(out);
        }
        (void)td_buf_append_format(out,
                                   "\n    perRequest: {cpu: 10ms, memory: 0.5Mi}\n"
                                   "    idle: {cpu: 10m, memory: 200Mi}\n"
                                   "    startup: {time: 20s, cpu: 300m}\n%s",
                                   scenario->habits);
    }
    if (scenario->has_roles) {
        (void)td_buf_append_format(out, "  events:\n");
        for (int day = 0; day < 4; day++) {
            for (size_t i = 0; i < count; i++) {
                (void)td_buf_append_format(out,
                                           "  - {at: %dh, do: move-role, target: statefulset/%s, "
                                           "label: role=leader, to: %s-%d}\n",
                                           day * 24 + 12, setups[i].name, setups[i].name,
                                           (day + 1) % 2);
            }
        }
    }
}

static void write_metric(const struct quality_setup *setup, const char *indent, struct td_buf *out)
{
    (void)td_buf_append_format(out,
                               "%smetrics: [{type: Resource, resource: {name: cpu, target: {type: "
                               "Utilization, averageUtilization: %d}}}]\n",
                               indent, setup->utilization);
}

static void write_scalers(const struct quality_scenario *scenario,
                          const struct quality_setup *setup, struct td_buf *out)
{
    const char *kind = scenario->has_roles ? "StatefulSet" : "Deployment";
    if (setup->kind == QUALITY_HPA || setup->kind == QUALITY_HPA_VPA) {
        (void)td_buf_append_format(
            out,
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n"
            "metadata: {name: %s}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: %s, "
            "name: %s}\n  minReplicas: 2\n  maxReplicas: %d\n",
            setup->name, kind, setup->name, scenario->replicas_max);
        write_metric(setup, "  ", out);
    }
    if (setup->kind == QUALITY_VPA || setup->kind == QUALITY_HPA_VPA) {
        (void)td_buf_append_format(
            out,
            "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n"
            "metadata: {name: %s, annotations: {tandem.dev/estimator: %s}}\nspec:\n"
            "  targetRef: {apiVersion: apps/v1, kind: %s, name: %s}\n"
            "  updatePolicy: {updateMode: InPlaceOrRecreate}\n"
            "  resourcePolicy: {containerPolicies: [{containerName: web%s, minAllowed: {cpu: 50m}, "
            "maxAllowed: {cpu: \"2\", memory: 4Gi}}]}\n",
            setup->name, setup->estimator, kind, setup->name,
            setup->is_memory_only ? ", controlledResources: [memory]" : "");
    }
    if (setup->kind == QUALITY_HVPA) {
        (void)td_buf_append_format(
            out,
            "---\napiVersion: autoscaling.k8s.io/v1alpha1\nkind: Hvpa\n"
            "metadata: {name: %s, annotations: {tandem.dev/estimator: %s}}\nspec:\n  mode: %s\n"
            "  targetRef: {apiVersion: apps/v1, kind: %s, name: %s}\n"
            "  hpaSpec:\n    minReplicas: 2\n    maxReplicas: %d\n",
            setup->name, setup->estimator, setup->mode, kind, setup->name, scenario->replicas_max);
        write_metric(setup, "    ", out);
        (void)td_buf_append_format(
            out, "  vpaSpec: {resourcePolicy: {containerPolicies: [{containerName: web, "
                 "minAllowed: {cpu: 50m}, maxAllowed: {cpu: \"2\", memory: 4Gi}}]}}\n");
    }
}

void quality_write_objects(const struct quality_scenario *scenario,
                           const struct quality_setup *setups, size_t count, struct td_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = setups[i].name;
        (void)td_buf_append_format(
            out,
            "---\napiVersion: apps/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n%s%s%s"
            "  replicas: %d\n  selector: {matchLabels: {app: %s}}\n  template:\n"
            "    metadata: {labels: {app: %s}}\n    spec:\n      containers:\n"
            "      - name: web\n        image: web:1\n"
            "        resources: {requests: {cpu: \"%s\", memory: %s}, limits: {cpu: \"%s\", "
            "memory: %s}}\n",
            scenario->has_roles ? "StatefulSet" : "Deployment", name,
            scenario->has_roles ? "  serviceName: " : "", scenario->has_roles ? name : "",
            scenario->has_roles ? "\n" : "", scenario->replicas, name, name, scenario->cpu,
            scenario->memory, scenario->cpu_limit, scenario->memory_limit);
        write_scalers(scenario, &setups[i], out);
    }
}
