/*
 * json_number.h
 *	  Numbers in JSON documents as float8.
 */
#ifndef METRICS_JSON_NUMBER_H
#define METRICS_JSON_NUMBER_H

#include "utils/jsonb.h"
#include "utils/numeric.h"

extern bool numeric_to_float8(Numeric numeric, double *result);
extern bool json_special_number(const char *text, int len, double *result);
extern bool json_number(const JsonbValue *value, double *result);

#endif							/* METRICS_JSON_NUMBER_H */
