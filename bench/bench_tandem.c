/*
 * One pass of the coordinator over a made-up cluster: 10,000 Hvpas of all five modes, two
 * containers with cpu and memory each, half of the rows coupled. Counted is what decisions cost;
 * making the inputs is not. The promise is a pass under 50 ms.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "decide/tandem/decide.h"

#define HVPAS ((size_t)10000)
#define ROWS ((size_t)4)
#define ROUNDS 10
#define CPU_MS_MAX 50.0
#define SEED 7U
#define NOW 1773144000
#define MI ((int64_t)1 << 20)

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static struct td_hvpa make_hvpa(size_t mode)
{
    return (struct td_hvpa){
        .mode = (enum td_hvpa_mode)mode,
        .target = {.kind = TD_STR("Deployment"), .name = TD_STR("web")},
        .ratio = {.v_to_h = 1, .overflow = true},
        .mixed = {.horizontal_threshold = 1,
                  .vertical_threshold = {{.has_percentage = true, .percentage = 10},
                                         {.has_percentage = true, .percentage = 10}}},
        .has_hpa = true,
        .hpa = {.has_min_replicas = true, .min_replicas = 1, .max_replicas = 50},
        .has_vpa = true,
        .vertical_up = {.stabilization = 3 * TD_MINUTE},
        .vertical_down = {.stabilization = 15 * TD_MINUTE},
        .tolerance_percent = 10,
        .settle_seconds = 60,
        .coupling = TD_HVPA_RECONCILE,
        .opposing_guard = true,
    };
}

static void make_row(size_t h, size_t r, struct td_tandem_row *row)
{
    uint64_t bits = mix(SEED + h * ROWS + r);
    bool is_cpu = r % 2 == 0;
    int64_t unit = is_cpu ? 1 : MI;
    int64_t request = (int64_t)(100 + bits % 4000) * unit;
    int64_t target = request * (int64_t)(30 + (bits >> 16) % 300) / 100;
    *row = (struct td_tandem_row){
        .container = r < 2 ? TD_STR("app") : TD_STR("sidecar"),
        .resource = is_cpu ? TD_HVPA_CPU : TD_HVPA_MEMORY,
        .request = request,
        .target = target,
        .uncapped = target,
        .max_allowed = {.is_set = true, .amount = 8000 * unit},
        .limit = {.is_set = true, .amount = request * 2},
        .coupling = {.is_coupled = is_cpu,
                     .utilization = 60,
                     .usage = {.is_set = true, .amount = target / 2}},
    };
}

static void make_input(size_t h, const struct td_hvpa *hvpa, const struct td_tandem_row *rows,
                       struct td_tandem_input *input)
{
    uint64_t bits = mix(SEED ^ (uint64_t)h << 32);
    struct td_tandem_time last = {.is_set = true,
                                  .at = {.unix_seconds = NOW - (int64_t)(bits % 3600)}};
    *input = (struct td_tandem_input){
        .hvpa = hvpa,
        .replicas = (int32_t)(1 + bits % 50),
        .is_horizontal_valid = true,
        .desired_replicas = (int32_t)(1 + (bits >> 8) % 50),
        .is_vertical_valid = true,
        .rows = rows,
        .row_count = ROWS,
        .last_horizontal = last,
        .last_vertical = last,
        .now = {.unix_seconds = NOW},
    };
}

static double cpu_ms(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail for ourselves */
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

int main(void)
{
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 30);
    struct td_hvpa *hvpas = td_arena_array(&arena, struct td_hvpa, 5);
    struct td_tandem_row *rows = td_arena_array(&arena, struct td_tandem_row, HVPAS * ROWS);
    struct td_tandem_input *inputs = td_arena_array(&arena, struct td_tandem_input, HVPAS);
    struct td_tandem_outcome outcomes[ROWS];
    for (size_t m = 0; m < 5; m++) {
        hvpas[m] = make_hvpa(m);
    }
    for (size_t h = 0; h < HVPAS; h++) {
        for (size_t r = 0; r < ROWS; r++) {
            make_row(h, r, &rows[h * ROWS + r]);
        }
        make_input(h, &hvpas[h % 5], &rows[h * ROWS], &inputs[h]);
    }
    size_t changed = 0;
    double begin = cpu_ms();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t h = 0; h < HVPAS; h++) {
            struct td_tandem_decision decision;
            td_tandem_decide(&inputs[h], outcomes, &decision);
            changed += decision.axis != TD_TANDEM_AXIS_NONE ? 1 : 0;
        }
    }
    double spent = (cpu_ms() - begin) / ROUNDS;
    printf("bench tandem.decide.cpu %.2f ms\n", spent);
    printf("%zu Hvpas, %zu rows each, %zu decisions a pass change something\n", HVPAS, ROWS,
           changed / ROUNDS);
    return spent < CPU_MS_MAX ? 0 : 1;
}
