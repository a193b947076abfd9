/*
 * perf_hash.h
 *	  The hash by which Perfherder's clients name a series.
 */
#ifndef METRICS_PERF_HASH_H
#define METRICS_PERF_HASH_H

#include "utils/jsonb.h"

extern char *perf_properties_hash(Jsonb *properties);
extern char *perf_text_hash(const char *text);

#endif							/* METRICS_PERF_HASH_H */
