/* The faults that are told one by one, and the gzip text that some of them need. */
#pragma once

#include "faults_run.h"

/* `soak_count` of them, at the front, need nothing but a link. */
extern const struct fault faults_table[];
extern const size_t faults_count;
extern const size_t faults_soak_count;

/* Those that change the store for every client: run them alone. */
extern const struct fault faults_alone[];
extern const size_t faults_alone_count;

/* An HTTP answer with `text` in gzip (not compressed), of which `cut` bytes are missing. */
td_str faults_gzip_answer(struct td_arena *arena, td_str text, size_t cut);
size_t faults_gzip_bytes(td_str text);
