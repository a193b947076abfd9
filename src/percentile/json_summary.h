/*
 * json_summary.h
 *	  What is known of the keys of many documents.
 */
#ifndef METRICS_JSON_SUMMARY_H
#define METRICS_JSON_SUMMARY_H

#include "utils/jsonb.h"

#include "percentile/sketch.h"

/* Objects are looked into down to this many keys below the summary's root. */
#define SUMMARY_MAX_DEPTH 8

/* What one summary may hold: keys, and bytes of their names. */
#define SUMMARY_MAX_KEYS 1000
#define SUMMARY_MAX_NAMES (1024 * 1024)

/* Types of values that a key was seen with. */
#define SUMMARY_NUMBER	(1 << 0)
#define SUMMARY_STRING	(1 << 1)
#define SUMMARY_BOOLEAN (1 << 2)
#define SUMMARY_ARRAY	(1 << 3)
#define SUMMARY_OBJECT	(1 << 4)	/* empty, or too deep to look into */
#define SUMMARY_NULL	(1 << 5)
#define SUMMARY_ALL_TYPES ((1 << 6) - 1)

/* Numbers of a key: a sketch, and those that it has not taken yet. */
typedef struct SummaryNumbers
{
	Sketch		sketch;
	int			npending;
	double		pending[SKETCH_BATCH];
} SummaryNumbers;

/* Somewhere below the root: a key, and where it stands. */
typedef struct SummaryKey
{
	const char *name;			/* not terminated */
	int			len;
	int			index;			/* among the keys of the summary */
	struct SummaryObject *object;	/* where the key stands */
	struct SummaryObject *below;	/* objects under the key, or NULL */
	int			types;
	int64		skipped;		/* values that are no numbers, null not counted */
	int64		opened;			/* objects that were looked into */
	SummaryNumbers *numbers;	/* or NULL */
} SummaryKey;

/*
 * The keys of an object in the order in which jsonb has them.  A document that
 * begins with the same bytes has the same keys, and none of them need be
 * looked up.
 */
typedef struct SummaryShape
{
	uint32		npairs;
	uint32		text_size;
	JEntry	   *entries;		/* of the keys */
	char	   *text;			/* ... which are here, one after the other */
	SummaryKey **keys;
} SummaryShape;

#define SUMMARY_MAX_SHAPES 8

/* The objects that stand under one key, or the documents themselves. */
typedef struct SummaryObject
{
	SummaryKey *key;			/* NULL: the root */
	int			depth;
	int			nshapes;
	SummaryShape shapes[SUMMARY_MAX_SHAPES];	/* the one seen last is first */
} SummaryObject;

typedef struct Summary
{
	MemoryContext context;		/* of all that belongs to it */
	SummaryObject *root;
	int			nkeys;
	int			allocated;
	SummaryKey **keys;			/* a key comes after the one that it is below */
	Size		names_size;
	struct summary_keys_hash *by_name;
} Summary;

extern Summary *summary_create(MemoryContext context);
extern void summary_add_object(Summary *summary, SummaryObject *object, JsonbContainer *container);
extern SummaryObject *summary_below(Summary *summary, SummaryKey *key);
extern SummaryKey *summary_key(Summary *summary, SummaryObject *object, const char *name, int len);
extern SummaryNumbers *summary_numbers(Summary *summary, SummaryKey *key);
extern void summary_flush(Summary *summary, SummaryNumbers *numbers);
extern void summary_merge(Summary *summary, Summary *other);

#endif							/* METRICS_JSON_SUMMARY_H */
