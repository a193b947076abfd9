/*
 * model.c
 *	  Making a table like another: what CREATE TABLE … (LIKE …) copies, and what
 *	  it leaves out but a partition should have.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "partition/list_table.h"
#include "partition/model.h"
#include "sql.h"

/* What stands after the columns: access method, storage parameters, tablespace. */
static const char *const storage_clauses =
	"SELECT concat("
	"  (SELECT format(' USING %%I', amname) FROM pg_am WHERE oid = c.relam),"
	"  (SELECT ' WITH (' || string_agg(format('%%s%%I = %%L', prefix, option_name, option_value), ', ') || ')'"
	"   FROM (SELECT '' AS prefix, o.* FROM pg_options_to_table(c.reloptions) o"
	"    UNION ALL SELECT 'toast.', o.* FROM pg_class t, pg_options_to_table(t.reloptions) o"
	"    WHERE t.oid = c.reltoastrelid) options),"
	"  (SELECT format(' TABLESPACE %%I', spcname) FROM pg_tablespace WHERE oid = c.reltablespace))"
	" FROM pg_class c WHERE c.oid = %u";

/*
 * Statements that give table %2$s what table %1$u has and LIKE does not copy, in
 * order.  Grants begin with taking away what default privileges gave.  The
 * n-th index of one corresponds to the n-th of the other, since LIKE makes them
 * in the order of their OIDs.
 */
static const char *const other_properties =
	"WITH model AS (SELECT * FROM pg_class WHERE oid = %1$u),"
	" new_table AS (SELECT * FROM pg_class WHERE oid = %2$u),"
	" name AS (SELECT %3$s::text AS new_name)"
	" SELECT statement FROM ("

	"SELECT 1, attnum, format('ALTER TABLE %%s ALTER COLUMN %%I SET STATISTICS %%s', new_name, attname, attstattarget)"
	" FROM name, model JOIN pg_attribute ON attrelid = model.oid"
	" WHERE attnum > 0 AND NOT attisdropped AND attstattarget >= 0"
	" UNION ALL "
	"SELECT 1, attnum, format('ALTER TABLE %%s ALTER COLUMN %%I SET (%%I = %%L)', new_name, attname, option_name, option_value)"
	" FROM name, model JOIN pg_attribute ON attrelid = model.oid, pg_options_to_table(attoptions)"
	" WHERE attnum > 0 AND NOT attisdropped AND option_name IN ('n_distinct', 'n_distinct_inherited')"
	" UNION ALL "

	"SELECT 2, 0, format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', new_name, conname, pg_get_constraintdef(c.oid))"
	" FROM name, model JOIN pg_constraint c ON conrelid = model.oid AND contype = 'f'"
	" UNION ALL "
	"SELECT 3, 0, format('COMMENT ON CONSTRAINT %%I ON %%s IS %%L', conname, new_name, obj_description(c.oid, 'pg_constraint'))"
	" FROM name, model JOIN pg_constraint c ON conrelid = model.oid AND contype = 'f'"
	" WHERE obj_description(c.oid, 'pg_constraint') IS NOT NULL"
	" UNION ALL "

	"SELECT 4, 0, format('ALTER TABLE %%s REPLICA IDENTITY %%s', new_name,"
	"  CASE model.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE 'USING INDEX ' ||"
	"   (SELECT quote_ident(n.relname) FROM"
	"     (SELECT row_number() OVER (ORDER BY indexrelid) AS place, indisreplident FROM pg_index WHERE indrelid = model.oid) m"
	"     JOIN (SELECT row_number() OVER (ORDER BY indexrelid) AS place, relname"
	"      FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = new_table.oid) n USING (place)"
	"    WHERE indisreplident) END)"
	" FROM name, model, new_table WHERE model.relreplident <> 'd'"
	" UNION ALL "

	"SELECT DISTINCT 5, 0, format('REVOKE ALL ON %%s FROM %%s', new_name, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee)::regrole::text END)"
	" FROM name, new_table, aclexplode(new_table.relacl)"
	" UNION ALL "
	"SELECT 6, 0, format('REVOKE ALL ON %%s FROM %%s', new_name, relowner::regrole)"
	" FROM name, model WHERE relacl IS NOT NULL"
	" UNION ALL "
	"SELECT 7, 0, format('GRANT %%s ON %%s TO %%s%%s', privilege_type, new_name,"
	"  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,"
	"  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)"
	" FROM name, new_table, model, aclexplode(coalesce(model.relacl, acldefault('r', model.relowner)))"
	" WHERE model.relacl IS NOT NULL OR new_table.relacl IS NOT NULL"
	" UNION ALL "
	"SELECT 7, attnum, format('GRANT %%s (%%I) ON %%s TO %%s%%s', privilege_type, attname, new_name,"
	"  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,"
	"  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)"
	" FROM name, model JOIN pg_attribute ON attrelid = model.oid, aclexplode(attacl)"
	" WHERE attnum > 0 AND NOT attisdropped"
	" UNION ALL "

	"SELECT 8, 0, format('CREATE POLICY %%I ON %%s AS %%s FOR %%s TO %%s%%s%%s', polname, new_name,"
	"  CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,"
	"  CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,"
	"  (SELECT string_agg(CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END, ', ') FROM unnest(polroles) role),"
	"  ' USING (' || pg_get_expr(polqual, polrelid) || ')', ' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')"
	" FROM name, model JOIN pg_policy ON polrelid = model.oid"
	" UNION ALL "
	"SELECT 9, 0, format('COMMENT ON POLICY %%I ON %%s IS %%L', polname, new_name, obj_description(p.oid, 'pg_policy'))"
	" FROM name, model JOIN pg_policy p ON polrelid = model.oid WHERE obj_description(p.oid, 'pg_policy') IS NOT NULL"
	" UNION ALL "
	"SELECT 9, 1, format('ALTER TABLE %%s ENABLE ROW LEVEL SECURITY', new_name)"
	" FROM name, model WHERE relrowsecurity"
	" UNION ALL "
	"SELECT 9, 2, format('ALTER TABLE %%s FORCE ROW LEVEL SECURITY', new_name)"
	" FROM name, model WHERE relforcerowsecurity"
	" UNION ALL "

	"SELECT 10, 0, format('COMMENT ON TABLE %%s IS %%L', new_name, obj_description(model.oid, 'pg_class'))"
	" FROM name, model WHERE obj_description(model.oid, 'pg_class') IS NOT NULL"
	") properties(step, place, statement) ORDER BY step, place, statement COLLATE \"C\"";

/* Give a table what LIKE has not copied from its model; see create_like(). */
void
copy_properties(Oid model, Oid relid)
{
	SPITupleTable *rows;

	run_sql(other_properties, model, relid, quote_literal_cstr(qualified_name(relid)));
	rows = SPI_tuptable;
	for (uint64 row = 0; row < rows->numvals; row++)
		run_sql("%s", SPI_getvalue(rows->vals[row], rows->tupdesc, 1));
}

/*
 * Create an empty table that has all that a model has, save identity columns
 * and triggers, which a partition gets from its parent, and publications.
 * Foreign keys are among it, so locks their tables.  Already the owner, with
 * pg_catalog alone on the search path; needs an SPI connection.
 */
Oid
create_like(Oid model, Oid namespace, const char *name)
{
	char	   *new_name = quote_qualified_identifier(get_namespace_name(namespace), name);
	Oid			relid;

	run_sql(storage_clauses, model);
	run_sql("CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)%s",
			new_name, qualified_name(model),
			SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	relid = get_relname_relid(name, namespace);

	copy_properties(model, relid);
	return relid;
}
