/*
 * sql.c
 *	  Running SQL text: DDL and catalog queries, where no plan is worth keeping.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "lib/stringinfo.h"

#include "sql.h"

/*
 * Run SQL, one or more statements, through SPI, so that event triggers and
 * other extensions see it.  Rows stand in SPI_tuptable.  Needs an SPI
 * connection.
 */
void
run_sql(const char *format,...)
{
	StringInfoData sql;
	int			rc;

	initStringInfo(&sql);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&sql, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&sql, needed);
	}

	rc = SPI_execute(sql.data, false, 0);
	if (rc < 0)
		elog(ERROR, "could not execute \"%s\": %s", sql.data,
			 SPI_result_code_string(rc));
}
