/*
 * The three functions of Go's math package whose last bits upstream's numbers depend on, with the
 * bits that Go gives on amd64: a C library may round them differently, and a bucket boundary or a
 * tie at a percentile then falls on the other side. Pure.
 */
#pragma once

/* math.Pow for a whole exponent. */
double td_go_pow(double base, int exponent);

/* math.Log, natural. */
double td_go_log(double x);

/* math.Exp2. */
double td_go_exp2(double x);
