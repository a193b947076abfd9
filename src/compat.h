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
#include "utils/rel.h"

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

#endif							/* METRICS_COMPAT_H */
