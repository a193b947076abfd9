/*
 * member.h
 *	  Members of the JSON objects that batches of reports consist of.
 */
#ifndef METRICS_MEMBER_H
#define METRICS_MEMBER_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

/* The greatest count that a double, and JavaScript, hold exactly. */
#define MAX_EXACT_COUNT 9007199254740991.0

extern int32 member_int32(const char *key, const JsonbValue *value);
extern int64 member_count(const char *key, const JsonbValue *value);
extern double member_double(const char *key, const JsonbValue *value);
extern char *member_string(const char *key, const JsonbValue *value);
extern TimestampTz member_time(const char *key, const JsonbValue *value);

#endif							/* METRICS_MEMBER_H */
