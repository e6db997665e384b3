/* Faults of time: clocks that are wrong, and servers that never answer. */
#pragma once

#include <stddef.h>

struct bed;

/* Prints its lines; how many failed? */
size_t faults_clocks(struct bed *bed);
