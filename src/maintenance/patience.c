/*
 * patience.c
 *	  Trying again for locks.
 *
 * Waiting for a strong lock keeps all others waiting who come later.  So each
 * attempt gives up soon, and the next comes after a pause, when they are
 * through.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "guc.h"
#include "maintenance/maintenance.h"
#include "sql.h"

/* For so long somebody who waits within his transaction goes on, in ms. */
#define LONGEST_WAIT 10000

/* Somebody else has what is needed; it is worth trying again. */
bool
is_contention(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED;
}

/* Sleep between attempts, longer each time, whatever sets our latch. */
void
wait_for_next_attempt(int attempts)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  Min(5000, (int64) metrics_lock_timeout << Min(attempts, 5)));
	long		left;

	while ((left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end)) > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Run a function in a subtransaction, and again while it does not get its locks;
 * but not for ever, since the transaction that called may itself be what others
 * wait for.
 */
void
insist(bool (*function) (void *arg), void *arg)
{
	TimestampTz start = GetCurrentTimestamp();

	for (int attempts = 0;; attempts++)
	{
		ErrorData  *error = run_in_subtransaction(function, arg);

		if (error == NULL)
			return;
		if (!is_contention(error) ||
			TimestampDifferenceExceeds(start, GetCurrentTimestamp(), LONGEST_WAIT))
			ReThrowError(error);
		FreeErrorData(error);
		wait_for_next_attempt(Min(attempts, 2));
	}
}
