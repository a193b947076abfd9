/*
 * trial.c
 *	  Trials: roll-back, summary, latest and best validation.
 *
 * The summary equals a recompute over the unarchived rows of the trial, but is
 * not computed that way: trial_add() brings it from one report to the next at
 * a cost of the keys in it.  Only a report that archives rows of an earlier run
 * is followed by trial_recompute(), over the rows that are left.
 */
#include "postgres.h"

#include <limits.h>
#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/report.h"
#include "report/trial.h"
#include "report/value.h"

PG_FUNCTION_INFO_V1(metrics_recompute_summary);

static const StoreQuery lock_query = {
	"SELECT run_id, total_batches, summary_metrics, latest_validation_id, best_validation_id,"
	" searcher_metric, smaller_is_better, searcher_metric_value, ctid"
	" FROM @store@.trials WHERE id = $1 FOR NO KEY UPDATE",
	.nargs = 1, .argtypes = {INT4OID}
};

/* A bigint column of the first row, or 0 where it is NULL. */
static int64
bigint_or_zero(int column)
{
	bool		isnull;
	Datum		value = store_column(column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

/*
 * Lock a trial and read it, into its memory context; false if there is none.
 * Not its state, which must
 * be read after this: a statement that waits for a row sees that row as the
 * other transaction left it, but all other rows as they were before.
 *
 * FOR NO KEY UPDATE lets foreign key checks, so profiling reports, pass.
 */
bool
trial_lock(const MetricsStore *store, int32 id, Trial *trial)
{
	Datum		values[] = {Int32GetDatum(id)};
	bool		isnull;
	Datum		value;
	MemoryContext context = trial->context;

	if (store_execute(store, &lock_query, NULL, values, NULL) == 0)
		return false;

	memset(trial, 0, sizeof(Trial));
	trial->context = context;
	trial->id = id;
	trial->run_id = DatumGetInt32(store_column(1, &isnull));
	trial->total_batches = DatumGetInt32(store_column(2, &isnull));
	trial->stored_summary = DatumGetJsonbP(store_column(3, &isnull));
	trial->latest.id = bigint_or_zero(4);
	trial->best.id = bigint_or_zero(5);
	value = store_column(6, &isnull);
	if (!isnull)
		trial->searcher_metric = MemoryContextStrdup(trial->context, TextDatumGetCString(value));
	trial->smaller_is_better = DatumGetBool(store_column(7, &isnull));
	value = store_column(8, &isnull);
	if (isnull)
		trial->best.id = 0;
	else
		trial->best.value = DatumGetFloat8(value);
	trial->tid = *(ItemPointer) DatumGetPointer(store_column(9, &isnull));
	return true;
}

/*
 * Read the state of a locked trial from five columns of the row that the last
 * query returned: run_id, rolled_back_to, latest_validation_time, last_rows and
 * ctid of metrics_trial_state.
 */
void
trial_read_state(Trial *trial, int first_column)
{
	bool		isnull;
	Datum		value = store_column(first_column, &isnull);
	Jsonb	   *last_rows = NULL;
	MemoryContext old_context;

	trial->has_state = !isnull;
	trial->out_of_date = isnull;
	if (trial->has_state)
	{
		trial->state_run_id = DatumGetInt32(value);
		trial->rolled_back_to = DatumGetInt32(store_column(first_column + 1, &isnull));
		value = store_column(first_column + 2, &isnull);
		if (isnull)
			trial->latest.id = 0;
		else
			trial->latest.end_time = DatumGetTimestampTz(value);
		last_rows = DatumGetJsonbP(store_column(first_column + 3, &isnull));
		trial->state_tid = *(ItemPointer) DatumGetPointer(store_column(first_column + 4, &isnull));
	}
	old_context = MemoryContextSwitchTo(trial->context);
	trial->summary = summary_begin(trial->stored_summary, last_rows);
	MemoryContextSwitchTo(old_context);
}

static const StoreQuery state_query = {
	"SELECT s.run_id, s.rolled_back_to, s.latest_validation_time, s.last_rows, s.ctid"
	" FROM (SELECT) AS one LEFT JOIN @store@.metrics_trial_state s ON s.trial_id = $1",
	.nargs = 1, .argtypes = {INT4OID}
};

/* Lock a trial and read it with its state; false if there is none. */
static bool
trial_read(const MetricsStore *store, int32 id, Trial *trial)
{
	Datum		values[] = {Int32GetDatum(id)};

	if (!trial_lock(store, id, trial))
		return false;
	store_execute(store, &state_query, NULL, values, NULL);
	trial_read_state(trial, 1);
	return true;
}

/* The error for a trial that is not there. */
void
trial_unknown(int32 id)
{
	ereport(ERROR,
			(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
			 errmsg("trial %d does not exist", id),
			 errhint("Register it with metrics_register_trial(%d).", id)));
}

/* Only the current run of a trial may report. */
void
trial_check_run(int32 id, int32 reported, int32 expected)
{
	if (reported != expected)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid run id, %d (reported) != %d (expected)", reported, expected),
				 errhint("Only the current run of trial %d reports; a new run starts with metrics_register_trial(%d, run_id).",
						 id, id)));
}

/*
 * Where the metrics of a group stand in its documents.  The same for its key in
 * the summary, but for generic groups, which stand there under their own name.
 */
const char *
group_document_key(const char *group)
{
	return strcmp(group, VALIDATION_GROUP) == 0 ? VALIDATION_KEY : METRICS_KEY;
}

static const char *
group_summary_key(const char *group)
{
	if (strcmp(group, VALIDATION_GROUP) == 0)
		return VALIDATION_KEY;
	return strcmp(group, TRAINING_GROUP) == 0 ? METRICS_KEY : group;
}

/* The metrics in a document of a group; NULL if the document is none of ours. */
JsonbContainer *
document_metrics(Jsonb *document, const char *group)
{
	const char *key = group_document_key(group);
	JsonbValue	metrics;

	if (!JB_ROOT_IS_OBJECT(document) ||
		!getKeyJsonValueFromContainer(&document->root, key, strlen(key), &metrics) ||
		metrics.type != jbvBinary || !JsonContainerIsObject(metrics.val.binary.data))
		return NULL;
	return metrics.val.binary.data;
}

static const StoreQuery rollback_query = {
	"UPDATE @store@.metrics SET archived = true"
	" WHERE trial_id = $1 AND NOT archived AND trial_run_id < $2"
	" AND total_batches >= $3 AND total_batches <= $4"
	" AND (total_batches > $3 OR partition_type::text = $5)"
	" AND partition_type OPERATOR(pg_catalog.=) ANY (ARRAY[@keys@])",
	.nargs = 5, .argtypes = {INT4OID, INT4OID, INT4OID, INT4OID, TEXTOID}
};

/*
 * A report of a later run takes the place of what earlier runs reported from
 * there on: archive their rows with more steps and, in the partition of the
 * report, with as many.  Returns how many there were.
 *
 * Afterwards no unarchived row of an earlier run has more steps, which the
 * trial remembers: so the next report of the run need not look again.
 */
uint64
trial_rollback(const MetricsStore *store, Trial *trial, const char *partition_key, int32 steps)
{
	int32		upper = INT_MAX;
	Datum		values[5];

	if (trial->has_state && trial->state_run_id == trial->run_id)
		upper = trial->rolled_back_to;
	else
		trial->state_run_id = trial->run_id;
	trial->rolled_back_to = Min(upper, steps);
	if (trial->run_id == 0 || steps > upper)
		return 0;

	values[0] = Int32GetDatum(trial->id);
	values[1] = Int32GetDatum(trial->run_id);
	values[2] = Int32GetDatum(steps);
	values[3] = Int32GetDatum(upper);
	values[4] = CStringGetTextDatum(partition_key);
	return store_execute(store, &rollback_query, store_keys_of_kind(store, "batch"), values, NULL);
}

/*
 * The searcher metric among the metrics of a validation; false if it is absent
 * or null.  As upstream, text is taken if it is the text of a number.
 */
static bool
searcher_value(const Trial *trial, JsonbContainer *metrics, double *number)
{
	JsonbValue	value;
	char	   *text = NULL;
	char	   *end = NULL;

	if (trial->searcher_metric == NULL ||
		!getKeyJsonValueFromContainer(metrics, trial->searcher_metric,
									  strlen(trial->searcher_metric), &value) ||
		value.type == jbvNull)
		return false;

	if (value.type == jbvNumeric)
	{
		*number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
													 NumericGetDatum(value.val.numeric)));
		return true;
	}
	if (value.type == jbvString)
	{
		text = pnstrdup(value.val.string.val, value.val.string.len);
		*number = strtod(text, &end);
	}
	if (text == NULL || end == text || *end != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("searcher metric \"%s\" must be a number, got %s",
						trial->searcher_metric, metric_value_text(&value)),
				 errhint("Report a number, or the string NaN, Infinity or -Infinity.")));
	return true;
}

/* Is one searcher metric better than another?  NaN is worst either way. */
static bool
is_better(const Trial *trial, double a, double b)
{
	if (isnan(a) || isnan(b))
		return !isnan(a);
	return trial->smaller_is_better ? a < b : a > b;
}

/* Let a validation compete for being the latest and the best. */
static void
consider_validation(Trial *trial, JsonbContainer *metrics, TimestampTz end_time, int64 id)
{
	Validation	v = {.id = id,.end_time = end_time};

	if (!searcher_value(trial, metrics, &v.value))
		return;
	if (trial->latest.id == 0 || v.end_time > trial->latest.end_time ||
		(v.end_time == trial->latest.end_time && v.id > trial->latest.id))
		trial->latest = v;
	if (trial->best.id == 0 || is_better(trial, v.value, trial->best.value) ||
		(v.id < trial->best.id && (v.value == trial->best.value ||
								   (isnan(v.value) && isnan(trial->best.value)))))
		trial->best = v;
}

/*
 * Account for a row that a report wrote: the metrics of the row, and those that
 * it did not have before, all of them unless the report was merged.
 */
void
trial_add(Trial *trial, const char *group, JsonbContainer *metrics, JsonbContainer *new_metrics,
		  TimestampTz end_time, int64 id)
{
	summary_add(trial->summary, group_summary_key(group), new_metrics, end_time, id);
	trial->dirty = true;
	if (strcmp(group, VALIDATION_GROUP) == 0)
		consider_validation(trial, metrics, end_time, id);
}

static void
recompute_row(HeapTuple row, TupleDesc desc, void *arg)
{
	Trial	   *trial = arg;
	bool		isnull;
	char	   *group = TextDatumGetCString(SPI_getbinval(row, desc, 1, &isnull));
	TimestampTz end_time;
	int64		id;
	int32		batches;
	JsonbContainer *metrics;
	Datum		document;

	end_time = DatumGetTimestampTz(SPI_getbinval(row, desc, 2, &isnull));
	if (isnull)
		end_time = DT_NOBEGIN;	/* written by hand: before all reports */
	id = DatumGetInt64(SPI_getbinval(row, desc, 3, &isnull));
	batches = DatumGetInt32(SPI_getbinval(row, desc, 4, &isnull));
	document = SPI_getbinval(row, desc, 5, &isnull);

	trial->total_batches = Max(trial->total_batches, batches);
	metrics = isnull ? NULL : document_metrics(DatumGetJsonbP(document), group);
	if (metrics == NULL)
		return;					/* written by hand: not a document of ours */

	summary_add(trial->summary, group_summary_key(group), metrics, end_time, id);
	if (strcmp(group, VALIDATION_GROUP) == 0)
		consider_validation(trial, metrics, end_time, id);
}

static const StoreQuery rows_query = {
	"SELECT metric_group, end_time, id, total_batches, metrics FROM @store@.metrics"
	" WHERE trial_id = $1 AND NOT archived AND partition_type OPERATOR(pg_catalog.=) ANY (ARRAY[@keys@])",
	.nargs = 1, .argtypes = {INT4OID}
};

/* How often this session did that; see account_for_row(). */
uint64		trial_recomputes = 0;

/*
 * Compute all that is derived from the rows of a trial again, from its
 * unarchived rows.  O(rows), and never needed by a report but after a
 * roll-back.
 */
void
trial_recompute(const MetricsStore *store, Trial *trial)
{
	Datum		values[] = {Int32GetDatum(trial->id)};
	MemoryContext old_context = MemoryContextSwitchTo(trial->context);

	trial_recomputes++;
	summary_free(trial->summary);
	trial->summary = summary_begin(NULL, NULL);
	MemoryContextSwitchTo(old_context);

	trial->total_batches = 0;
	memset(&trial->latest, 0, sizeof(Validation));
	memset(&trial->best, 0, sizeof(Validation));
	store_for_each(store, &rows_query, store_keys_of_kind(store, "batch"), values, NULL,
				   recompute_row, trial);
	trial->out_of_date = false;
	trial->dirty = true;
	if (!trial->has_state && trial->state_run_id != trial->run_id)
	{
		/* Nothing is known of roll-backs: the next report has to look. */
		trial->state_run_id = trial->run_id;
		trial->rolled_back_to = INT_MAX;
	}
}

/*
 * The rows are found by where they are: an index would lead past all their
 * earlier versions, which nobody can clean up before the transaction ends.
 */
#define SAVE_TRIAL \
	"WITH trial AS (UPDATE @store@.trials SET total_batches = $6, summary_metrics = $7," \
	" summary_metrics_timestamp = pg_catalog.now(), latest_validation_id = $8," \
	" best_validation_id = $9, searcher_metric_value = $10, searcher_metric_value_signed = $11" \
	" WHERE ctid = $12 AND id = $1"
#define SAVE_ARGUMENTS \
	INT4OID, INT4OID, INT4OID, TIMESTAMPTZOID, JSONBOID, INT4OID, JSONBOID, \
	INT8OID, INT8OID, FLOAT8OID, FLOAT8OID, TIDOID

/* Both rows, if both are where they were. */
static const StoreQuery save_query = {
	SAVE_TRIAL " AND EXISTS (SELECT FROM @store@.metrics_trial_state"
	" WHERE ctid = $13 AND trial_id = $1) RETURNING id),"
	" state AS (UPDATE @store@.metrics_trial_state SET run_id = $2, rolled_back_to = $3,"
	" latest_validation_time = $4, last_rows = $5"
	" WHERE ctid = $13 AND trial_id = $1 AND EXISTS (SELECT FROM trial))"
	" SELECT id FROM trial",
	.nargs = 13, .argtypes = {SAVE_ARGUMENTS, TIDOID}
};

/* The same for a trial that has no state yet. */
static const StoreQuery save_first_query = {
	SAVE_TRIAL " RETURNING id),"
	" state AS (INSERT INTO @store@.metrics_trial_state"
	" (trial_id, run_id, rolled_back_to, latest_validation_time, last_rows)"
	" SELECT $1, $2, $3, $4, $5 FROM trial"
	" ON CONFLICT (trial_id) DO UPDATE SET run_id = EXCLUDED.run_id,"
	" rolled_back_to = EXCLUDED.rolled_back_to,"
	" latest_validation_time = EXCLUDED.latest_validation_time, last_rows = EXCLUDED.last_rows)"
	" SELECT id FROM trial",
	.nargs = 12, .argtypes = {SAVE_ARGUMENTS}
};

/*
 * Write a trial and its state back.
 *
 * Returns false, having written nothing, if they were changed since they were
 * read: not by others, who wait for the lock, but by a trigger of the user's
 * that reports, too.  Then they have been read again, and what the caller did
 * has to be done again.
 *
 * A row that is where it was and yet was not written is one that a trigger or
 * a policy of the user's does not want written, which is for them to decide.
 */
bool
trial_save(const MetricsStore *store, Trial *trial)
{
	double		sign = trial->smaller_is_better ? 1 : -1;
	Trial		before = *trial;
	Jsonb	   *last_rows;
	Jsonb	   *summary = summary_finish(trial->summary, &last_rows);
	Datum		values[13];
	char		nulls[] = "             ";

	values[0] = Int32GetDatum(trial->id);
	values[1] = Int32GetDatum(trial->state_run_id);
	values[2] = Int32GetDatum(trial->rolled_back_to);
	values[3] = TimestampTzGetDatum(trial->latest.end_time);
	values[4] = JsonbPGetDatum(last_rows);
	values[5] = Int32GetDatum(trial->total_batches);
	values[6] = JsonbPGetDatum(summary);
	values[7] = Int64GetDatum(trial->latest.id);
	values[8] = Int64GetDatum(trial->best.id);
	values[9] = Float8GetDatum(trial->best.value);
	values[10] = Float8GetDatum(sign * trial->best.value);
	values[11] = PointerGetDatum(&trial->tid);
	values[12] = PointerGetDatum(&trial->state_tid);
	if (trial->latest.id == 0)
		nulls[3] = nulls[7] = 'n';
	if (trial->best.id == 0)
		nulls[8] = nulls[9] = nulls[10] = 'n';
	if (store_execute(store, trial->has_state ? &save_query : &save_first_query,
					  NULL, values, nulls) > 0)
		return true;

	return !trial_read(store, trial->id, trial) ||
		(ItemPointerEquals(&before.tid, &trial->tid) &&
		 before.has_state == trial->has_state &&
		 (!trial->has_state || ItemPointerEquals(&before.state_tid, &trial->state_tid)));
}

/* An empty set of trials, in the current memory context. */
TrialSet *
trial_set_create(void)
{
	HASHCTL		control = {
		.keysize = sizeof(int32),
		.entrysize = sizeof(Trial),
		.hcxt = CurrentMemoryContext
	};

	TrialSet   *set = palloc(sizeof(TrialSet));

	set->context = CurrentMemoryContext;
	set->trials = hash_create("metrics_ext trials", 16, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return set;
}

/* Save the trials of a set that reports have changed. */
void
trial_set_save(const MetricsStore *store, TrialSet *set)
{
	HASH_SEQ_STATUS all;
	Trial	   *trial;

	hash_seq_init(&all, set->trials);
	while ((trial = hash_seq_search(&all)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		while (trial->dirty && !trial_save(store, trial))
			trial_recompute(store, trial);
	}
}

/*
 * Lock a trial, compute it again and save it; returns the summary, NULL if
 * there is no such trial.
 */
Jsonb *
trial_recompute_and_save(const MetricsStore *store, int32 id)
{
	Trial		trial = {.context = CurrentMemoryContext};
	Jsonb	   *last_rows;

	if (!trial_read(store, id, &trial))
		return NULL;
	do
		trial_recompute(store, &trial);
	while (!trial_save(store, &trial));
	return summary_finish(trial.summary, &last_rows);
}

/* metrics_recompute_summary(trial_id) → jsonb */
Datum
metrics_recompute_summary(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trial_id"};
	MetricsStore store;
	Jsonb	   *summary;
	Jsonb	   *result;

	check_not_null(fcinfo, names, lengthof(names));
	PreventCommandIfReadOnly("metrics_recompute_summary()");
	store_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	summary = trial_recompute_and_save(&store, PG_GETARG_INT32(0));
	if (summary == NULL)
		trial_unknown(PG_GETARG_INT32(0));
	result = SPI_palloc(VARSIZE(summary));
	memcpy(result, summary, VARSIZE(summary));
	SPI_finish();
	PG_RETURN_JSONB_P(result);
}
