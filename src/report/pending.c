/*
 * pending.c
 *	  Reported rows that wait for their partition.
 *
 * A row comes in with the rights of its reporter, whom the constraints and the
 * row security of metrics judge as if it went there, and is kept by the owner
 * of the store: nobody else may touch metrics_pending.  It goes on to metrics
 * as any row that the owner inserts, under the id that the report returned.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/params.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "report/pending.h"
#include "sql.h"
#include "worker/worker.h"

PG_FUNCTION_INFO_V1(metrics_pending_keys);

/*
 * All below but the INSERT that is judged runs as the owner of the store, with
 * nothing but pg_catalog on the search path.
 */
#define SAFE_SEARCH_PATH "pg_catalog, pg_temp"

static const StoreQuery insert_query = {
	"INSERT INTO @store@.metrics_pending"
	" (trial_id, end_time, metrics, total_batches, trial_run_id, archived, id, metric_group, partition_type, added_columns)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
	.nargs = 10,
	.argtypes = {INT4OID, TIMESTAMPTZOID, JSONBOID, INT4OID, INT4OID, BOOLOID, INT8OID, TEXTOID, TEXTOID, JSONBOID}
};

/* Its parameters by name, as they are in metrics; one more are the columns it has besides. */
static const char *const columns[] = {
	"trial_id", "end_time", "metrics", "total_batches", "trial_run_id", "archived", "id",
	"metric_group", "partition_type"
};

#define ID_COLUMN 6

static bool
is_known_column(const char *name)
{
	for (int i = 0; i < (int) lengthof(columns); i++)
	{
		if (strcmp(name, columns[i]) == 0)
			return true;
	}
	return false;
}

/* A value as jsonb: to_jsonb(), which wants to know its type. */
static Jsonb *
jsonb_of(Datum value, Oid type)
{
	Const	   *argument = makeConst(type, -1, InvalidOid, -1, (Datum) 0, true, false);
	FmgrInfo	function;

	fmgr_info(F_TO_JSONB, &function);
	fmgr_info_set_expr((Node *) makeFuncExpr(F_TO_JSONB, JSONBOID, list_make1(argument), InvalidOid,
											 InvalidOid, COERCE_EXPLICIT_CALL), &function);
	return DatumGetJsonbP(FunctionCall1(&function, value));
}

/*
 * The columns that the user has added to metrics and that have a default, as it
 * is for the reporter and now; NULL if there are none.
 */
static Jsonb *
added_columns(TupleTableSlot *row)
{
	JsonbParseState *state = NULL;

	for (int i = 0; i < row->tts_tupleDescriptor->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(row->tts_tupleDescriptor, i);
		JsonbValue	key = {.type = jbvString};
		JsonbValue	value = {.type = jbvNull};
		bool		isnull;
		Datum		datum;

		if (att->attisdropped || !att->atthasdef || att->attgenerated != '\0' ||
			is_known_column(NameStr(att->attname)))
			continue;
		datum = slot_getattr(row, i + 1, &isnull);
		if (!isnull)
			JsonbToJsonbValue(jsonb_of(datum, att->atttypid), &value);
		key.val.string.val = NameStr(att->attname);
		key.val.string.len = strlen(NameStr(att->attname));
		if (state == NULL)
			pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
		pushJsonbValue(&state, WJB_KEY, &key);
		pushJsonbValue(&state, WJB_VALUE, &value);
	}
	return state ? JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)) : NULL;
}

/*
 * Judge a row as an INSERT into metrics does before it stores one.  Triggers
 * fire when the row enters metrics; one that may change it leaves to that time
 * what can only be said of the changed row.
 */
static void
judge_row(ResultRelInfo *metrics, TupleTableSlot *row, EState *estate)
{
	TupleConstr *constraints = RelationGetDescr(metrics->ri_RelationDesc)->constr;
	TriggerDesc *triggers = metrics->ri_TrigDesc;

	row->tts_tableOid = RelationGetRelid(metrics->ri_RelationDesc);
	if (constraints && constraints->has_generated_stored)
		ExecComputeStoredGenerated(metrics, estate, row, CMD_INSERT);
	if (metrics->ri_WithCheckOptions != NIL)
		ExecWithCheckOptions(WCO_RLS_INSERT_CHECK, metrics, row, estate);
	if (constraints && !(triggers && triggers->trig_insert_before_row))
		ExecConstraints(metrics, row, estate);
}

/* Keep a row of metrics until its partition is there; returns its id. */
static int64
keep_row(const MetricsStore *store, TupleTableSlot *row)
{
	Jsonb	   *added = added_columns(row);
	Datum		values[lengthof(columns) + 1];
	char		nulls[lengthof(columns) + 1];
	SavedIdentity saved;

	for (int i = 0; i < (int) lengthof(columns); i++)
	{
		AttrNumber	attnum = get_attnum(store->metrics, columns[i]);
		bool		isnull;

		if (attnum == InvalidAttrNumber ||
			TupleDescAttr(row->tts_tupleDescriptor, attnum - 1)->atttypid != insert_query.argtypes[i])
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of \"%s.metrics\" is not of type %s", columns[i],
							store->schema, format_type_be(insert_query.argtypes[i])),
					 errhint("Give it back its name and type.")));
		values[i] = slot_getattr(row, attnum, &isnull);
		nulls[i] = isnull ? 'n' : ' ';
	}
	values[lengthof(columns)] = JsonbPGetDatum(added);
	nulls[lengthof(columns)] = added ? ' ' : 'n';

	act_as(store_owner(store), SAFE_SEARCH_PATH, &saved);
	store_execute(store, &insert_query, NULL, values, nulls);
	act_as_before(&saved);
	return DatumGetInt64(values[ID_COLUMN]);
}

/*
 * Run an INSERT ... SELECT of one row into metrics up to where the row would
 * look for its partition, and keep it; returns its id, or 0 if the SELECT gives
 * none.  So what is checked is what PostgreSQL checks for this INSERT:
 * privileges, policies and constraints, and with the same errors.
 */
int64
pending_insert(const MetricsStore *store, const StoreQuery *insert, const char *keys,
			   Datum *values, Snapshot snapshot)
{
	ParamListInfo params = makeParamList(insert->nargs);
	CachedPlan *plan;
	QueryDesc  *query;
	EState	   *estate;
	MemoryContext old_context;
	TupleTableSlot *selected;
	int64		id = 0;

	for (int i = 0; i < insert->nargs; i++)
	{
		params->params[i].value = values[i];
		params->params[i].isnull = false;
		params->params[i].pflags = PARAM_FLAG_CONST;
		params->params[i].ptype = insert->argtypes[i];
	}

	CommandCounterIncrement();
	PushCopiedSnapshot(snapshot);
	UpdateActiveSnapshotCommandId();
	plan = store_cached_plan(store, insert, keys);
	query = CreateQueryDesc(linitial_node(PlannedStmt, plan->stmt_list), insert->sql,
							GetActiveSnapshot(), InvalidSnapshot, None_Receiver, params, NULL, 0);
	ExecutorStart(query, 0);
	if (!IsA(query->planstate, ModifyTableState))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a row of \"%s.metrics\" cannot wait for its partition", store->schema),
				 errdetail("Another extension has planned the INSERT."),
				 errhint("Call metrics_add_partition() before the report.")));

	estate = query->estate;
	old_context = MemoryContextSwitchTo(estate->es_query_cxt);
	selected = ExecProcNode(outerPlanState(query->planstate));
	if (!TupIsNull(selected))
	{
		ResultRelInfo *metrics = castNode(ModifyTableState, query->planstate)->resultRelInfo;
		TupleTableSlot *row = ExecInitExtraTupleSlot(estate, RelationGetDescr(metrics->ri_RelationDesc),
													 &TTSOpsVirtual);

		ExecCopySlot(row, selected);
		judge_row(metrics, row, estate);
		id = keep_row(store, row);
	}
	MemoryContextSwitchTo(old_context);

	ExecutorFinish(query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
	ReleaseCachedPlan(plan, CurrentResourceOwner);
	PopActiveSnapshot();
	if (id != 0)
		worker_request();
	return id;
}

/*
 * A row that is being moved by another, or whose trial is being deleted, is passed
 * over.  With each comes a list of the columns that it has besides.
 */
static const StoreQuery due_query = {
	"SELECT p.id, (SELECT COALESCE(string_agg(', ' || quote_ident(name), '' ORDER BY name), '')"
	"  FROM jsonb_object_keys(p.added_columns) name JOIN pg_attribute a"
	"  ON a.attrelid = $4 AND a.attname = name AND a.attgenerated = '')"
	" FROM @store@.metrics_pending p JOIN @store@.trials t ON t.id = p.trial_id"
	" WHERE p.partition_type = $1 AND p.next_attempt <= $2 ORDER BY p.next_attempt, p.id LIMIT $3"
	" FOR UPDATE OF p SKIP LOCKED FOR KEY SHARE OF t SKIP LOCKED",
	.nargs = 4, .argtypes = {TEXTOID, TIMESTAMPTZOID, INT8OID, OIDOID}
};

/* @keys@ is that list.  Those that have been added since get their defaults. */
static const StoreQuery move_query = {
	"WITH gone AS (DELETE FROM @store@.metrics_pending WHERE id = ANY ($1) RETURNING"
	" trial_id, end_time, metrics, total_batches, trial_run_id, archived, id, metric_group, partition_type, added_columns),"
	" entered AS (INSERT INTO @store@.metrics"
	" (trial_id, end_time, metrics, total_batches, trial_run_id, archived, id, metric_group, partition_type@keys@)"
	" SELECT gone.trial_id, gone.end_time, gone.metrics, gone.total_batches, gone.trial_run_id, gone.archived,"
	" gone.id, gone.metric_group, gone.partition_type@keys@"
	" FROM gone, jsonb_populate_record(NULL::@store@.metrics, gone.added_columns) ORDER BY gone.id)"
	" SELECT count(*) FROM gone",
	.nargs = 1, .argtypes = {INT8ARRAYOID}
};

static const StoreQuery failed_query = {
	"UPDATE @store@.metrics_pending SET attempts = attempts + 1, sqlstate = $2, message = $3,"
	" next_attempt = clock_timestamp() + $4 * make_interval(secs => LEAST(3600, power(2, LEAST(attempts, 12))))"
	" WHERE id = $1",
	.nargs = 4, .argtypes = {INT8OID, TEXTOID, TEXTOID, FLOAT8OID}
};

/* Does an error say that this was no time for it, rather than that a row is bad? */
static bool
is_passing(const ErrorData *error)
{
	int			category = ERRCODE_TO_CATEGORY(error->sqlerrcode);

	return category == ERRCODE_TRANSACTION_ROLLBACK || category == ERRCODE_INSUFFICIENT_RESOURCES ||
		category == ERRCODE_SYSTEM_ERROR || error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;
}

/* Some rows to be moved, which are locked. */
typedef struct RowMove
{
	const MetricsStore *store;
	const char *columns;		/* that all of them have besides */
	Datum	   *ids;
	int			count;
} RowMove;

/* Move all of them; called in a subtransaction. */
static bool
call_move(void *arg)
{
	RowMove    *move = arg;
	Datum		values[1];
	bool		isnull;

	values[0] = PointerGetDatum(construct_array(move->ids, move->count, INT8OID, sizeof(int64),
												FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	store_execute(move->store, &move_query, move->columns, values, NULL);
	if (DatumGetInt64(store_column(1, &isnull)) != move->count)
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
				 errmsg("a trigger keeps rows in \"%s.metrics_pending\"", move->store->schema),
				 errhint("Let it return the row that is to be deleted.")));
	return true;
}

/*
 * Leave a row where it is, with its error.  The next attempt is after a second,
 * then two, four and so on up to an hour, less a random part.
 */
static void
leave_row(const MetricsStore *store, Datum id, const ErrorData *error)
{
	Datum		values[4];

	values[0] = id;
	values[1] = CStringGetTextDatum(unpack_sql_state(error->sqlerrcode));
	values[2] = CStringGetTextDatum(error->message);
	values[3] = Float8GetDatum(0.5 + 0.5 * pg_prng_double(&pg_global_prng_state));
	store_execute(store, &failed_query, NULL, values, NULL);
}

/* Move what can be moved of some rows, by halves if need be; returns how many. */
static uint64
move_rows(const RowMove *rows)
{
	RowMove		move = *rows;
	ErrorData  *error;
	uint64		moved;

	CHECK_FOR_INTERRUPTS();
	error = run_in_subtransaction(call_move, &move);
	if (error == NULL)
		return rows->count;
	if (is_passing(error))
		ReThrowError(error);
	if (rows->count == 1)
	{
		leave_row(rows->store, rows->ids[0], error);
		return 0;
	}
	move.count = rows->count / 2;
	moved = move_rows(&move);
	move.ids += move.count;
	move.count = rows->count - move.count;
	return moved + move_rows(&move);
}

/* Rows that are tried at once. */
#define MOVE_ROWS 1000

/* Rows that are due, the oldest first, and what columns each has besides. */
typedef struct DueRows
{
	int			count;
	Datum		ids[MOVE_ROWS];
	char	   *columns[MOVE_ROWS];
} DueRows;

/* Lock rows of a key that are due now, up to a limit. */
static void
lock_due_rows(const MetricsStore *store, const char *key, TimestampTz now, int limit, DueRows *due)
{
	Datum		values[4];

	values[0] = CStringGetTextDatum(key);
	values[1] = TimestampTzGetDatum(now);
	values[2] = Int64GetDatum(limit);
	values[3] = ObjectIdGetDatum(store->metrics);
	due->count = store_execute(store, &due_query, NULL, values, NULL);
	for (int row = 0; row < due->count; row++)
	{
		bool		isnull;

		due->ids[row] = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1, &isnull);
		due->columns[row] = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 2);
	}
	SPI_freetuptable(SPI_tuptable);
}

/* The first row after one that does not have the same columns. */
static int
end_of_run(const DueRows *due, int first)
{
	int			row = first + 1;

	while (row < due->count && strcmp(due->columns[row], due->columns[first]) == 0)
		row++;
	return row;
}

/*
 * Move up to limit rows of a key to their partition, which is there, the oldest
 * first.  A row that fails stays, with its error and the time of its next
 * attempt.  Returns how many rows have left metrics_pending; less than the limit
 * means that no other can be moved now.
 *
 * Acts as the owner of the store, in a transaction of its own: what triggers put
 * off to its end is checked row by row as well.  Needs an SPI connection.
 */
uint64
pending_move(const MetricsStore *store, const char *key, uint64 limit)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "metrics_ext pending rows",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = CurrentMemoryContext;
	TimestampTz now = GetCurrentTimestamp();
	DueRows    *due = palloc(sizeof(DueRows));
	uint64		moved = 0;
	SavedIdentity saved;

	MemoryContextSwitchTo(context);
	act_as(store_owner(store), SAFE_SEARCH_PATH, &saved);
	run_sql("SET CONSTRAINTS ALL IMMEDIATE");
	do
	{
		lock_due_rows(store, key, now, Min(limit - moved, MOVE_ROWS), due);
		for (int first = 0, end; first < due->count; first = end)
		{
			end = end_of_run(due, first);
			moved += move_rows(&(RowMove) {store, due->columns[first], due->ids + first, end - first});
		}
		MemoryContextReset(context);
	} while (due->count > 0 && moved < limit);
	act_as_before(&saved);

	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return moved;
}

/*
 * One descent into the index for each key.  What is said of a key is why it has
 * no partition, or else why its row that failed last did, or else why nothing is
 * done for the whole table; a message about a row is left out if $2.
 */
static const StoreQuery keys_query = {
	"WITH RECURSIVE keys AS ("
	" (SELECT partition_type AS key FROM @store@.metrics_pending ORDER BY partition_type LIMIT 1)"
	" UNION ALL"
	" SELECT (SELECT p.partition_type FROM @store@.metrics_pending p WHERE p.partition_type > keys.key"
	"  ORDER BY p.partition_type LIMIT 1) FROM keys WHERE keys.key IS NOT NULL)"
	" SELECT key, rows, failing, first_report, attempts, next_attempt, sqlstate, message"
	" FROM keys CROSS JOIN LATERAL"
	" (SELECT count(*) AS rows, count(*) FILTER (WHERE p.next_attempt > '-infinity') AS failing"
	"  FROM @store@.metrics_pending p WHERE p.partition_type = key) AS counted CROSS JOIN LATERAL"
	" (SELECT p.end_time AS first_report FROM @store@.metrics_pending p WHERE p.partition_type = key"
	"  ORDER BY p.next_attempt, p.id LIMIT 1) AS first LEFT JOIN LATERAL"
	" (SELECT 1, attempts, next_attempt, sqlstate, message FROM @store@.metrics_failure"
	"  WHERE parent = $1 AND partition_key = key"
	"  UNION ALL SELECT 2, attempts, next_attempt, sqlstate, CASE WHEN NOT $2 THEN message END FROM"
	"  (SELECT * FROM @store@.metrics_pending p WHERE p.partition_type = key AND p.next_attempt > '-infinity'"
	"   ORDER BY p.next_attempt DESC, p.id DESC LIMIT 1) AS failed"
	"  UNION ALL SELECT 3, attempts, next_attempt, sqlstate, message FROM @store@.metrics_failure"
	"  WHERE parent = $1 AND partition_key IS NULL ORDER BY 1 LIMIT 1) AS reason ON true"
	" WHERE key IS NOT NULL ORDER BY key",
	.reader = true, .nargs = 2, .argtypes = {REGCLASSOID, BOOLOID}
};

/*
 * metrics_pending_keys() → setof (partition_key, rows, failing, first_report,
 *										attempts, next_attempt, sqlstate, message)
 *
 * For whoever may read what maintenance says of itself.  An error of a row may
 * quote the row, so it is not for those who do not see all rows of metrics.
 */
Datum
metrics_pending_keys(PG_FUNCTION_ARGS)
{
	MetricsStore store;
	Oid			failures;
	Datum		values[2];
	SavedIdentity saved;

	if (!store_find(fcinfo, &store) || store_read_layout(&store) < LAYOUT_1_3)
	{
		InitMaterializedSRF(fcinfo, 0);
		return (Datum) 0;
	}
	store_open(fcinfo, AccessShareLock, &store);
	failures = store_relation(&store, "metrics_failure");
	if (pg_class_aclcheck(failures, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(failures));

	values[0] = ObjectIdGetDatum(store.metrics);
	values[1] = BoolGetDatum(check_enable_rls(store.metrics, InvalidOid, true) == RLS_ENABLED);
	act_as(store_owner(&store), SAFE_SEARCH_PATH, &saved);
	store_return_rows(fcinfo, &store, &keys_query, NULL, values, NULL);
	act_as_before(&saved);
	return (Datum) 0;
}
