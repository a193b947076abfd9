/*
 * model.c
 *	  Making a table like another: what CREATE TABLE … (LIKE …) copies, and what
 *	  it leaves out but a partition should have.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "nodes/nodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "partition/list_table.h"
#include "partition/model.h"
#include "sql.h"

/* The statement that makes a table like another: as persistent, stored in the same way. */
static const char *const create_statement =
	"SELECT concat('CREATE ', CASE relpersistence WHEN 'u' THEN 'UNLOGGED ' END, 'TABLE ', %2$s::text,"
	"  format(' (LIKE %%s INCLUDING ALL EXCLUDING IDENTITY)', c.oid::regclass),"
	"  (SELECT format(' USING %%I', amname) FROM pg_am WHERE oid = c.relam),"
	"  (SELECT ' WITH (' || string_agg(format('%%s%%I = %%L', prefix, option_name, option_value), ', ') || ')'"
	"   FROM (SELECT '' AS prefix, o.* FROM pg_options_to_table(c.reloptions) o"
	"    UNION ALL SELECT 'toast.', o.* FROM pg_class t, pg_options_to_table(t.reloptions) o"
	"    WHERE t.oid = c.reltoastrelid) options),"
	"  (SELECT format(' TABLESPACE %%I', spcname) FROM pg_tablespace WHERE oid = c.reltablespace))"
	" FROM pg_class c WHERE c.oid = %1$u";

/*
 * Statements that give table %2$u what table %1$u has and LIKE does not copy, in
 * order.  Grants begin with taking away what default privileges gave.  The
 * n-th index of one corresponds to the n-th of the other, and so do statistics,
 * since LIKE makes them in the order of their OIDs.
 */
static const char *const other_properties =
	"WITH model AS (SELECT * FROM pg_class WHERE oid = %1$u),"
	" new_table AS (SELECT *, oid::regclass AS new_name FROM pg_class WHERE oid = %2$u),"
	" index_pair AS (SELECT m.indexrelid AS model_index, n.indexrelid AS new_index, m.indisreplident, m.indisclustered"
	"  FROM (SELECT row_number() OVER (ORDER BY indexrelid) AS place, * FROM pg_index WHERE indrelid = %1$u) m"
	"  JOIN (SELECT row_number() OVER (ORDER BY indexrelid) AS place, * FROM pg_index WHERE indrelid = %2$u) n USING (place)),"
	" statistics_pair AS (SELECT m.stxstattarget, n.stxname, n.stxnamespace::regnamespace AS schema"
	"  FROM (SELECT row_number() OVER (ORDER BY oid) AS place, * FROM pg_statistic_ext WHERE stxrelid = %1$u) m"
	"  JOIN (SELECT row_number() OVER (ORDER BY oid) AS place, * FROM pg_statistic_ext WHERE stxrelid = %2$u) n USING (place)),"
	" foreign_key AS (SELECT oid, conname FROM pg_constraint"
	"  WHERE conrelid = %1$u AND contype = 'f' AND conparentid = 0 AND conrelid <> %3$u),"
	/* LIKE makes valid ones of them, which rows that move may break. */
	" invalid_check AS (SELECT oid, conname FROM pg_constraint"
	"  WHERE conrelid = %1$u AND contype = 'c' AND NOT convalidated)"
	" SELECT statement FROM ("

	"SELECT 1 AS step, attnum AS place,"
	"  format('ALTER TABLE %%s ALTER COLUMN %%I SET STATISTICS %%s', new_name, attname, attstattarget) AS statement"
	" FROM new_table, pg_attribute"
	" WHERE attrelid = %1$u AND attnum > 0 AND NOT attisdropped AND attstattarget >= 0"
	" UNION ALL "
	"SELECT 1, attnum, format('ALTER TABLE %%s ALTER COLUMN %%I SET (%%I = %%L)', new_name, attname, option_name, option_value)"
	" FROM new_table, pg_attribute, pg_options_to_table(attoptions)"
	" WHERE attrelid = %1$u AND attnum > 0 AND NOT attisdropped AND option_name IN ('n_distinct', 'n_distinct_inherited')"
	" UNION ALL "
	"SELECT 1, 0, format('ALTER INDEX %%s ALTER COLUMN %%s SET STATISTICS %%s', new_index::regclass, attnum, attstattarget)"
	" FROM index_pair JOIN pg_attribute ON attrelid = model_index AND attstattarget >= 0"
	" UNION ALL "
	"SELECT 1, 0, format('ALTER STATISTICS %%s.%%I SET STATISTICS %%s', schema, stxname, stxstattarget)"
	" FROM statistics_pair WHERE stxstattarget >= 0"
	" UNION ALL "

	"SELECT 2, 0, format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', new_name, conname, pg_get_constraintdef(foreign_key.oid))"
	" FROM new_table, foreign_key"
	" UNION ALL "
	"SELECT 2, 0, format('ALTER TABLE %%s DROP CONSTRAINT %%I, ADD CONSTRAINT %%I %%s', new_name, conname, conname,"
	"  pg_get_constraintdef(invalid_check.oid))"
	" FROM new_table, invalid_check"
	" UNION ALL "
	"SELECT 3, 0, format('COMMENT ON CONSTRAINT %%I ON %%s IS %%L', conname, new_name, description)"
	" FROM new_table, (TABLE foreign_key UNION ALL TABLE invalid_check) added,"
	"  obj_description(added.oid, 'pg_constraint') description WHERE description IS NOT NULL"
	" UNION ALL "
	"SELECT 3, 0, format('COMMENT ON CONSTRAINT %%I ON %%s IS %%L', n.conname, new_name, description)"
	" FROM new_table, index_pair JOIN pg_constraint m ON m.conrelid = %1$u AND m.conindid = model_index"
	"  JOIN pg_constraint n ON n.conrelid = %2$u AND n.conindid = new_index,"
	"  obj_description(m.oid, 'pg_constraint') description"
	" WHERE m.contype <> 'f' AND n.contype <> 'f' AND description IS NOT NULL"
	" UNION ALL "

	"SELECT 4, 0, format('ALTER TABLE %%s REPLICA IDENTITY %%s', new_name, CASE model.relreplident WHEN 'f' THEN 'FULL' ELSE 'NOTHING' END)"
	" FROM new_table, model WHERE model.relreplident IN ('f', 'n')"
	" UNION ALL "
	"SELECT 4, 0, format('ALTER TABLE %%s REPLICA IDENTITY USING INDEX %%I', new_name, i.relname)"
	" FROM new_table, index_pair JOIN pg_class i ON i.oid = new_index WHERE indisreplident"
	" UNION ALL "
	"SELECT 4, 1, format('ALTER TABLE %%s CLUSTER ON %%I', new_name, i.relname)"
	" FROM new_table, index_pair JOIN pg_class i ON i.oid = new_index WHERE indisclustered"
	" UNION ALL "

	"SELECT DISTINCT 5, 0, format('REVOKE ALL ON %%s FROM %%s', new_name, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)"
	" FROM new_table, aclexplode(relacl)"
	" UNION ALL "
	"SELECT 6, 0, format('REVOKE ALL ON %%s FROM %%s', new_name, model.relowner::regrole)"
	" FROM new_table, model WHERE model.relacl IS NOT NULL"
	" UNION ALL "
	"SELECT 7, 0, format('GRANT %%s ON %%s TO %%s%%s', privilege_type, new_name,"
	"  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,"
	"  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)"
	" FROM new_table, model, aclexplode(coalesce(model.relacl, acldefault('r', model.relowner)))"
	" WHERE model.relacl IS NOT NULL OR new_table.relacl IS NOT NULL"
	" UNION ALL "
	"SELECT 7, attnum, format('GRANT %%s (%%I) ON %%s TO %%s%%s', privilege_type, attname, new_name,"
	"  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,"
	"  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)"
	" FROM new_table, pg_attribute, aclexplode(attacl)"
	" WHERE attrelid = %1$u AND attnum > 0 AND NOT attisdropped"
	" UNION ALL "

	"SELECT 8, 1, format('ALTER TABLE %%s ENABLE ROW LEVEL SECURITY', new_name)"
	" FROM new_table, model WHERE model.relrowsecurity"
	" UNION ALL "
	"SELECT 8, 2, format('ALTER TABLE %%s FORCE ROW LEVEL SECURITY', new_name)"
	" FROM new_table, model WHERE model.relforcerowsecurity"
	" UNION ALL "

	"SELECT 9, 0, format('COMMENT ON TABLE %%s IS %%L', new_name, description)"
	" FROM new_table, obj_description(%1$u, 'pg_class') description WHERE description IS NOT NULL"
	") properties ORDER BY step, place, statement COLLATE \"C\"";

/* Policies of a table, their conditions as they are stored. */
static const char *const policies_query =
	"SELECT quote_ident(polname), CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,"
	"  CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,"
	"  (SELECT string_agg(CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END, ', ') FROM unnest(polroles) role),"
	"  polqual::text, polwithcheck::text, quote_literal(obj_description(oid, 'pg_policy'))"
	" FROM pg_policy WHERE polrelid = %u ORDER BY polname";

/* A clause of a policy with a condition on a model, as one on a table made like it; empty without condition. */
static const char *
policy_clause(const char *clause, const char *condition, Oid model, const char *name)
{
	if (condition == NULL)
		return "";
	return psprintf(" %s (%s)", clause,
					deparse_expression(stringToNode(condition), deparse_context_for(name, model),
									   false, false));
}

/*
 * Copy the policies of a model.  A subquery in a condition names the table whose
 * row it is about, so the condition is made anew for the other name.
 */
static void
copy_policies(Oid model, Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *new_name = qualified_name(relid);
	SPITupleTable *rows;

	run_sql(policies_query, model);
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
	{
		char	   *value[7];

		for (int i = 0; i < (int) lengthof(value); i++)
			value[i] = SPI_getvalue(rows->vals[row], rows->tupdesc, i + 1);
		run_sql("CREATE POLICY %s ON %s AS %s FOR %s TO %s%s%s", value[0], new_name, value[1], value[2], value[3],
				policy_clause("USING", value[4], model, name),
				policy_clause("WITH CHECK", value[5], model, name));
		if (value[6])
			run_sql("COMMENT ON POLICY %s ON %s IS %s", value[0], new_name, value[6]);
	}
}

/* Run the statements that a query has returned. */
static void
run_results(void)
{
	SPITupleTable *rows = SPI_tuptable;

	for (uint64 row = 0; row < rows->numvals; row++)
		run_sql("%s", SPI_getvalue(rows->vals[row], rows->tupdesc, 1));
}

/* Give a table what LIKE has not copied from its model; see create_like(). */
void
copy_properties(Oid model, Oid relid, Oid parent)
{
	run_sql(other_properties, model, relid, parent);
	run_results();
	copy_policies(model, relid);
}

/*
 * Create an empty table that has all that a model has, save publications, and
 * save identity columns, triggers and foreign keys that it will get as a
 * partition of its parent: for ATTACH to take over a foreign key would lock the
 * referenced table against readers.  Foreign keys of the model alone are among
 * it, so locks their tables.  Already the owner, with pg_catalog alone on the
 * search path; needs an SPI connection.
 */
Oid
create_like(Oid model, Oid parent, const char *name)
{
	Oid			namespace = get_rel_namespace(parent);
	char	   *new_name = quote_qualified_identifier(get_namespace_name(namespace), name);
	Oid			relid;

	run_sql(create_statement, model, quote_literal_cstr(new_name));
	run_sql("%s", SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	relid = get_relname_relid(name, namespace);

	copy_properties(model, relid, parent);
	return relid;
}

/* Give the foreign keys that a partition got from its parent their comments. */
void
copy_foreign_key_comments(Oid partition)
{
	run_sql("SELECT format('COMMENT ON CONSTRAINT %%I ON %%s IS %%L', c.conname, c.conrelid::regclass, description)"
			" FROM pg_constraint c, obj_description(c.conparentid, 'pg_constraint') description"
			" WHERE c.conrelid = %u AND c.contype = 'f' AND description IS NOT NULL", partition);
	run_results();
}
