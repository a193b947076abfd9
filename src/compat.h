/*
 * compat.h
 *	  The only place that looks at PG_VERSION_NUM.
 */
#ifndef METRICS_COMPAT_H
#define METRICS_COMPAT_H

#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/numeric.h"
#include "utils/rel.h"

/* 16 gave what is known of varlenas a header of its own. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 16 folded the per-catalog permission checks into object_*check(). */
#if PG_VERSION_NUM < 160000
#define metrics_relation_ownercheck(relid) \
	pg_class_ownercheck(relid, GetUserId())
#define metrics_database_aclcheck(mode) \
	pg_database_aclcheck(MyDatabaseId, GetUserId(), mode)
#else
#define metrics_relation_ownercheck(relid) \
	object_ownercheck(RelationRelationId, relid, GetUserId())
#define metrics_database_aclcheck(mode) \
	object_aclcheck(DatabaseRelationId, MyDatabaseId, GetUserId(), mode)
#endif

/* 17 made pg_attribute.attstattarget nullable; both mean "not set". */
#if PG_VERSION_NUM < 170000
#define metrics_stattarget_is_set(datum, isnull) (DatumGetInt32(datum) >= 0)
#define metrics_stattarget(datum) DatumGetInt32(datum)
#else
#define metrics_stattarget_is_set(datum, isnull) (!(isnull))
#define metrics_stattarget(datum) DatumGetInt16(datum)
#endif

/*
 * How a numeric lies in memory, which PostgreSQL's headers keep to themselves.
 * After the length come 16-bit words.  The first tells the kind and, in the
 * short form, the weight too; in the long form the second is the weight.  The
 * rest are digits in base 10000, the most significant first, and the weight is
 * the power of 10000 that the first of them counts.  Nothing of it has changed
 * from 9.1 to 18.
 */
#define METRICS_NUMERIC_BASE 10000
#define METRICS_NUMERIC_BASE_DIGITS 4

typedef enum NumericKind
{
	NUMERIC_KIND_FINITE,
	NUMERIC_KIND_NAN,
	NUMERIC_KIND_INFINITE,
} NumericKind;

typedef struct NumericParts
{
	NumericKind kind;
	bool		negative;
	int			weight;
	int			ndigits;
	const int16 *digits;		/* in the numeric itself */
} NumericParts;

/* Take a numeric, not toasted and with a four-byte length, apart. */
static inline void
metrics_numeric_parts(Numeric numeric, NumericParts *parts)
{
	const uint16 *words = (const uint16 *) VARDATA(numeric);
	int			nwords = (VARSIZE(numeric) - VARHDRSZ) / sizeof(uint16);
	uint16		head = words[0];
	int			used = 1;

	parts->kind = NUMERIC_KIND_FINITE;
	switch (head & 0xC000)
	{
		case 0x8000:			/* short: 1 bit sign, 6 scale, 7 weight */
			parts->negative = (head & 0x2000) != 0;
			parts->weight = (head & 0x003F) - (head & 0x0040);
			break;
		case 0xC000:			/* no digits */
			parts->kind = (head & 0x1000) ? NUMERIC_KIND_INFINITE : NUMERIC_KIND_NAN;
			parts->negative = (head & 0x2000) != 0;
			parts->weight = 0;
			break;
		default:				/* long: 1 bit sign, 14 scale */
			parts->negative = (head & 0x4000) != 0;
			parts->weight = (int16) words[1];
			used = 2;
			break;
	}
	parts->ndigits = nwords - used;
	parts->digits = (const int16 *) (words + used);
}

/* 18 has pg_noreturn, which stands first, for pg_attribute_noreturn(). */
#if PG_VERSION_NUM < 180000
#define pg_noreturn _Noreturn
#endif

/* 18 asks whether a deferrable primary key will do. */
#if PG_VERSION_NUM < 180000
#define metrics_primary_key(rel) RelationGetPrimaryKeyIndex(rel)
#else
#define metrics_primary_key(rel) RelationGetPrimaryKeyIndex(rel, false)
#endif

/* 16 can leave out columns that are missing. */
#if PG_VERSION_NUM < 160000
#define metrics_build_attrmap(from, to) build_attrmap_by_name(from, to)
#else
#define metrics_build_attrmap(from, to) build_attrmap_by_name(from, to, false)
#endif

/* 16 can do with summarizing indexes alone. */
#if PG_VERSION_NUM < 160000
#define metrics_insert_index_tuples(result, slot, estate) \
	((void) ExecInsertIndexTuples(result, slot, estate, false, false, NULL, NIL))
#else
#define metrics_insert_index_tuples(result, slot, estate) \
	((void) ExecInsertIndexTuples(result, slot, estate, false, false, NULL, NIL, false))
#endif

#endif							/* METRICS_COMPAT_H */
