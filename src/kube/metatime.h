/*
 * Times and durations as Kubernetes API objects write them: metav1.Time (whole seconds),
 * metav1.MicroTime (six digits) and metav1.Duration, each as one JSON token. The zero time is
 * written null.
 */
#pragma once

#include "base/buf.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "base/timefmt.h"

struct td_error;

int td_metatime_parse_json(td_str token, struct td_instant *ret, struct td_error *err);
int td_microtime_parse_json(td_str token, struct td_instant *ret, struct td_error *err);
int td_metaduration_parse_json(td_str token, td_duration *ret, struct td_error *err);

void td_metatime_write_json(struct td_instant instant, struct td_buf *out);
void td_microtime_write_json(struct td_instant instant, struct td_buf *out);
void td_metaduration_write_json(td_duration duration, struct td_buf *out);
