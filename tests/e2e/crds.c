/* Prints the custom resource definitions of this version as YAML, for `kubectl apply -f -`. */
#include <stdio.h>

#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

int main(void)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *const definitions[] = {
        td_hpa_crd(&arena),
        td_vpa_crd(&arena),
        td_vpa_checkpoint_crd(&arena),
        td_hvpa_crd(&arena),
    };
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++) {
        (void)td_buf_append(&text, TD_STR("---\n"));
        td_yaml_write(definitions[i], &text);
    }
    return fwrite(text.ptr, 1, text.len, stdout) == text.len ? 0 : 1;
}
