/*
 * views.c
 *	  Making the views that BI tools read.
 *
 * They stand in a schema of their own, for these tools list every table and
 * partition that they find beside them.  They run with the rights of whoever
 * reads them (security_invoker), so that row security on the store's tables
 * holds whoever owns the store.
 *
 * Those that call functions of the extension are dropped with it; taking up the
 * store again makes them anew.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "sql.h"
#include "store/store.h"
#include "store/view.h"

/* Views, and a table of the store that they are there with. */
static const struct
{
	const char *table;
	const StoreView *views;
}			view_lists[] = {
	{"pipeline_operators", store_views_pipeline},
	{"metrics", store_views_trial},
	{"metrics_managed_table", store_views_partition},
	{"performance_alert", store_views_perf},
};

/* A change of one view. */
typedef void (*ViewAction) (const MetricsStore *store, const StoreView *view, const void *arg);

/* For the views that there are, or for all that there will be. */
static void
for_each_view(const MetricsStore *store, bool all, ViewAction action, const void *arg)
{
	for (int i = 0; i < (int) lengthof(view_lists); i++)
	{
		if (!all && !OidIsValid(get_relname_relid(view_lists[i].table, store->namespace)))
			continue;
		for (const StoreView *view = view_lists[i].views; view->name; view++)
			action(store, view, arg);
	}
}

static void
append_name(const MetricsStore *store, const StoreView *view, const void *arg)
{
	StringInfo	names = unconstify(void *, arg);

	(void) store;
	appendStringInfo(names, "%s%s", names->len > 0 ? ", " : "", quote_literal_cstr(view->name));
}

/* The options that a view has, or those of a new one. */
static const char *
view_options(const StoreView *view)
{
	run_sql("SELECT string_agg(format('%%I = %%L', option_name, option_value), ', ')"
			" FROM pg_class c, pg_options_to_table(c.reloptions)"
			" WHERE relnamespace = '" STORE_VIEWS "'::regnamespace AND relname = %1$s"
			" HAVING count(c.oid) > 0"
			" UNION ALL SELECT 'security_invoker = true'"
			" WHERE to_regclass(format('%%I.%%I', '" STORE_VIEWS "', %1$s)) IS NULL",
			quote_literal_cstr(view->name));
	return SPI_processed == 0 ? NULL : SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* Make a view, or make it again: grants, options and what depends on it stay. */
static void
create_view(const MetricsStore *store, const StoreView *view, const void *arg)
{
	const char *options = view_options(view);
	StringInfoData sql;

	(void) arg;
	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE OR REPLACE VIEW " STORE_VIEWS ".%s", view->name);
	if (options)
		appendStringInfo(&sql, " WITH (%s)", options);
	appendStringInfoString(&sql, " AS SELECT ");
	for (const ViewColumn *column = view->columns; column->name; column++)
		appendStringInfo(&sql, "%s%s AS %s", column == view->columns ? "" : ", ",
						 column->expression, quote_identifier(column->name));
	appendStringInfo(&sql, " %s", view->from);
	run_sql("%s", store_query_text(store, sql.data, NULL));

	run_sql("COMMENT ON VIEW " STORE_VIEWS ".%s IS %s", view->name, quote_literal_cstr(view->comment));
	for (const ViewColumn *column = view->columns; column->name; column++)
		run_sql("COMMENT ON COLUMN " STORE_VIEWS ".%s.%s IS %s", view->name,
				quote_identifier(column->name), quote_literal_cstr(column->comment));
}

/* Make all views as they are now; already the owner, with an SPI connection. */
void
store_create_views(const MetricsStore *store)
{
	run_sql("SELECT FROM pg_namespace WHERE nspname = '" STORE_VIEWS "'");
	if (SPI_processed == 0)
		run_sql("CREATE SCHEMA " STORE_VIEWS ";"
				"COMMENT ON SCHEMA " STORE_VIEWS " IS 'views of the metrics store for BI tools'");
	for_each_view(store, false, create_view, NULL);
}

/* What stands where the views have to be, and is not ours to replace. */
List *
store_views_blockers(const MetricsStore *store)
{
	List	   *blockers = NIL;
	StringInfoData names;

	initStringInfo(&names);
	for_each_view(store, true, append_name, &names);
	run_sql("SELECT format('schema %%I of role %%I', nspname, pg_get_userbyid(nspowner))"
			" FROM pg_namespace WHERE nspname = '" STORE_VIEWS "' AND NOT has_schema_privilege(%1$u, oid, 'CREATE')"
			" UNION ALL "
			"SELECT format('database %%I, in which role %%I may not create schema " STORE_VIEWS "', current_database(), pg_get_userbyid(%1$u))"
			" WHERE to_regnamespace('" STORE_VIEWS "') IS NULL AND NOT has_database_privilege(%1$u, current_database(), 'CREATE')"
			" UNION ALL "
			"SELECT concat(pg_describe_object('pg_class'::regclass, c.oid, 0), ' of role ', pg_get_userbyid(relowner))"
			" FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
			" WHERE nspname = '" STORE_VIEWS "' AND relname IN (%2$s)"
			" AND (relkind <> 'v' OR NOT pg_has_role(%1$u, relowner, 'USAGE'))"
			" ORDER BY 1", store_owner(store), names.data);
	for (uint64 row = 0; row < SPI_processed; row++)
		blockers = lappend(blockers, SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1));
	return blockers;
}

static void
grant_view(const MetricsStore *store, const StoreView *view, const void *arg)
{
	(void) store;
	run_sql("GRANT SELECT ON " STORE_VIEWS ".%s TO %s", view->name, (const char *) arg);
}

/* Let a role read the views, and those that come later; role as SQL. */
void
store_grant_views(const MetricsStore *store, const char *role)
{
	run_sql("GRANT USAGE ON SCHEMA " STORE_VIEWS " TO %s", role);
	for_each_view(store, false, grant_view, role);
	run_sql("ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA " STORE_VIEWS " GRANT SELECT ON TABLES TO %s",
			quote_identifier(GetUserNameFromId(store_owner(store), false)), role);
}
