/* Prints the custom resource definitions of this version as YAML, for `kubectl apply -f -`. */
#include <stdio.h>

#include "api/objects.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"

int main(void)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < TD_OBJECTS_DEFINITION_COUNT; i++) {
        (void)td_buf_append(&text, TD_STR("---\n"));
        td_yaml_write(td_objects_definitions[i](&arena), &text);
    }
    return fwrite(text.ptr, 1, text.len, stdout) == text.len ? 0 : 1;
}
