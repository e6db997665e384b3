/*
 * What `kubectl explain` says about kinds and their fields, in a few words each. Constant.
 */
#pragma once

#include "base/str.h"

/* The sentence for a field of a type ("PodSpec", "containers"), or for the type itself when `field`
 * is empty; empty when there is none. A field that means the same in many types has one sentence
 * for all. Parts of custom kinds are named by their path, "Hvpa.spec", and share none. */
td_str td_describe_text(td_str type, td_str field);
