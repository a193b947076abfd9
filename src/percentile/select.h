/*
 * select.h
 *	  Order statistics of arrays, without sorting them.
 *
 * Values are compared as keys: int64s whose order is the order of the values.
 * A bigint is its own key; a float8 has an order-preserving image, in which -0
 * equals 0 and all NaNs are one key, the greatest.  So one selection serves
 * both types and needs no rule for NaN.
 */
#ifndef METRICS_SELECT_H
#define METRICS_SELECT_H

#include <math.h>

#include "utils/float.h"

/* A key that stands for so many equal ones (at least 1). */
typedef struct WeightedKey
{
	int64		key;
	int64		weight;
} WeightedKey;

#define NAN_KEY PG_INT64_MAX

static inline int64
float8_to_key(float8 value)
{
	int64		bits;

	if (unlikely(isnan(value)))
		return NAN_KEY;
	value += 0.0;				/* makes 0 of -0 */
	memcpy(&bits, &value, sizeof(bits));
	/* Negative numbers have their order reversed, and so their other bits. */
	return bits ^ ((bits >> 63) & PG_INT64_MAX);
}

static inline float8
key_to_float8(int64 key)
{
	int64		bits = key ^ ((key >> 63) & PG_INT64_MAX);
	float8		value;

	if (unlikely(key == NAN_KEY))
		return get_float8_nan();
	memcpy(&value, &bits, sizeof(value));
	return value;
}

extern void select_ranks(int64 *keys, int64 nkeys,
						 const int64 *ranks, int nranks);
extern void select_weighted_ranks(WeightedKey *pairs, int64 npairs,
								  const int64 *ranks, int nranks,
								  int64 *chosen);

#endif							/* METRICS_SELECT_H */
