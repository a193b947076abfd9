/*
 * sql.c
 *	  Running SQL text, and as whom: DDL and catalog queries, where no plan is
 *	  worth keeping.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

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

/* Errors that are meant for the whole session, not for what it is doing. */
static bool
ends_session(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
		ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION ||
		error->sqlerrcode == ERRCODE_OUT_OF_MEMORY;
}

/*
 * Run a function in a subtransaction, which is rolled back if it fails or says
 * false.  Returns its error, or NULL; an error that ends what the whole session
 * is doing is thrown.
 */
ErrorData *
run_in_subtransaction(bool (*function) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		if (function(arg))
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error && ends_session(error))
		ReThrowError(error);
	return error;
}

/* Set a setting until act_as_before(). */
void
set_local(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}

/*
 * Act as another role, in a security-restricted operation and with a search
 * path of our own, until act_as_before() or until the subtransaction fails.
 */
void
act_as(Oid role, const char *search_path, SavedIdentity *saved)
{
	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);
	SetUserIdAndSecContext(role, saved->sec_context |
						   SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	saved->guc_level = NewGUCNestLevel();
	set_local("search_path", search_path);
}

void
act_as_before(const SavedIdentity *saved)
{
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->userid, saved->sec_context);
}
