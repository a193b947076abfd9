/*
 * store.h
 *	  The store: where it is, which layout it has, and queries against it.
 *
 * A store is the set of ordinary tables that metrics_create_store() makes in
 * one schema for its caller.  The extension only remembers where it is, in its
 * one-row table metrics_store.
 */
#ifndef METRICS_STORE_H
#define METRICS_STORE_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/snapshot.h"

/* The layouts that a store can have, oldest first; see layout.c. */
typedef enum StoreLayout
{
	LAYOUT_NONE = -1,			/* not created yet */
	LAYOUT_1_0,
	LAYOUT_1_1,
	LAYOUT_1_2,
	LAYOUT_1_3,
	LAYOUT_1_4,
	LAYOUT_1_5,
} StoreLayout;

#define LAYOUT_NEWEST LAYOUT_1_5

typedef struct MetricsStore
{
	Oid			metrics;		/* the partitioned table */
	Oid			namespace;
	Oid			registry;		/* the extension's table metrics_store */
	StoreLayout layout;
	bool		active;			/* maintenance may run by itself; see active.c */
	const char *schema;			/* name of the namespace, not quoted */
	const char *extension_schema;	/* of our functions, likewise */
} MetricsStore;

/*
 * The longest metric group, pattern of groups, and partition key: well below
 * what an index entry holds.
 */
#define STORE_MAX_KEY_BYTES 1000

/* Where a metric group goes. */
typedef struct StoreRoute
{
	char	   *key;			/* the partition key */
	char	   *literal;		/* the same as SQL, or a NULL that spares readers a plan */
	bool		by_time;		/* its rows are identified by time, not by batches */
	bool		waits;			/* no partition has the key yet: reports go to metrics_pending */
} StoreRoute;

/* store.c */
extern bool store_read_value(Oid relid, const char *key, Datum *value);
extern bool store_find(FunctionCallInfo fcinfo, MetricsStore *store);
extern bool store_find_registered(Oid registry, MetricsStore *store);
extern void store_open(FunctionCallInfo fcinfo, LOCKMODE lockmode,
					   MetricsStore *store);
extern void store_open_since(FunctionCallInfo fcinfo, LOCKMODE lockmode, StoreLayout layout,
							 MetricsStore *store);
extern Oid	store_relation(const MetricsStore *store, const char *relname);
extern Oid	store_owner(const MetricsStore *store);
extern void store_check_owner(const MetricsStore *store);
extern StoreLayout store_read_layout(const MetricsStore *store);
extern const char *store_key_cast(const MetricsStore *store);
extern bool store_read_value(Oid relid, const char *key, Datum *value);
extern void store_grant_pipeline(const MetricsStore *store, const char *role, bool writer);

/* route.c */
extern void store_route(const MetricsStore *store, const char *group, StoreRoute *route);

/* installed.c */
typedef enum StoreAccess
{
	STORE_ABSENT,
	STORE_BUSY,					/* somebody holds or wants it for himself */
	STORE_OPEN,
} StoreAccess;

extern StoreAccess store_open_installed(MetricsStore *store);

/* active.c */
extern bool store_is_active(const MetricsStore *store);
extern void store_activate(const MetricsStore *store);

/* layout.c */
extern const char *layout_name(StoreLayout layout);
extern StoreLayout layout_by_name(const char *name);
extern void layout_upgrade(MetricsStore *store, Oid owner, StoreLayout target);
extern void layout_rebuild(MetricsStore *store, Oid owner);

/* views.c */
#define STORE_VIEWS "metrics_bi"

extern void store_create_views(const MetricsStore *store);
extern List *store_views_blockers(const MetricsStore *store);
extern void store_grant_views(const MetricsStore *store, const char *role);

/* query.c */
#define STORE_QUERY_MAX_ARGS 26

/*
 * A query against the store, with $n parameters.  In its text, @store@ stands
 * for the schema of the store, @extension@ for that of our functions, and
 * @keys@ for one partition key or a list of them, as ready-made SQL: keys must
 * be literals for the planner to prune by them.
 *
 * A reader sees what the calling query sees, and is planned for the values at
 * hand, because the best plan for a page depends on where and how long it is.
 */
typedef struct StoreQuery
{
	const char *sql;
	bool		reader;
	int			nargs;
	Oid			argtypes[STORE_QUERY_MAX_ARGS];
} StoreQuery;

typedef struct _SPI_plan *StorePlan;
typedef void (*StoreRowCallback) (HeapTuple row, TupleDesc desc, void *arg);

extern char *store_query_text(const MetricsStore *store, const char *sql, const char *keys);
extern StorePlan store_plan(const MetricsStore *store, const StoreQuery *query,
							const char *keys);
extern uint64 store_execute(const MetricsStore *store, const StoreQuery *query,
							const char *keys, Datum *values, const char *nulls);
extern uint64 store_execute_at(const MetricsStore *store, const StoreQuery *query,
							   const char *keys, Datum *values, Snapshot snapshot);
extern struct CachedPlan *store_cached_plan(const MetricsStore *store, const StoreQuery *query,
										   const char *keys);
extern void store_for_each(const MetricsStore *store, const StoreQuery *query,
						   const char *keys, Datum *values, const char *nulls,
						   StoreRowCallback callback, void *arg);
extern void store_return_rows(FunctionCallInfo fcinfo, const MetricsStore *store,
							  const StoreQuery *query, const char *keys,
							  Datum *values, const char *nulls);
extern Datum store_column(int column, bool *isnull);
extern const char *store_keys_of_kind(const MetricsStore *store, const char *kind);

#endif							/* METRICS_STORE_H */
