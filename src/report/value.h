/*
 * value.h
 *	  Values of metrics.
 */
#ifndef METRICS_VALUE_H
#define METRICS_VALUE_H

#include "utils/jsonb.h"

extern const char *const type_number;
extern const char *const type_string;
extern const char *const type_date;
extern const char *const type_boolean;
extern const char *const type_object;
extern const char *const type_array;
extern const char *const type_null;

extern const char *metric_type(const JsonbValue *value);
extern const char *metric_type_by_name(const JsonbValue *name);
extern bool metric_is_number(const JsonbValue *value);
extern bool metric_is_timestamp(const char *text, int len, bool zone_required);

extern const char *metric_document_text(Jsonb *document);
extern const char *metric_value_text(const JsonbValue *value);
extern bool json_string_equals(const JsonbValue *value, const char *text);

#endif							/* METRICS_VALUE_H */
