/*
 * pipeline_write.c
 *	  Writing the rows that workers report of operators.
 *
 * The rows of a call are written with one statement.  The key of a row is its
 * names and its time: a row that is there already, because a client that got no
 * answer has sent it again, is left out.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "report/pipeline_operator.h"
#include "sql.h"

/* The columns of pipeline_operators that a report fills, in this order. */
enum
{
	RUN_ID,
	STAGE_NAME,
	OPERATOR_NAME,
	WORKER_ID,
	INPUT_RECORDS,
	OUTPUT_RECORDS,
	TOTAL_TIME,
	ERROR_COUNT,
	LATENCY_SKETCH,
	CUSTOM_METRICS,
	AT,
	NCOLUMNS
};

/*
 * What is to be done about the runs and stages of a batch before its rows: most
 * often nothing.  In the order of execution, as far as it is known.
 */
static const StoreQuery check_query = {
	"SELECT b.run_id, b.stage_name, b.first_at, b.last_at, r.status, r.end_time,"
	" s.run_id IS NULL OR (NOT s.started AND s.start_time > b.first_at)"
	" FROM (SELECT u.run_id, u.stage_name, pg_catalog.min(u.at) AS first_at, pg_catalog.max(u.at) AS last_at, pg_catalog.min(u.n) AS n"
	"  FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3))"
	"  WITH ORDINALITY u(run_id, stage_name, at, n) GROUP BY 1, 2) b"
	" LEFT JOIN @store@.pipeline_runs r ON r.run_id = b.run_id"
	" LEFT JOIN @store@.pipeline_stages s ON s.run_id = b.run_id AND s.stage_name = b.stage_name"
	" WHERE r.run_id IS NULL OR r.status <> 'running' OR s.run_id IS NULL"
	" OR (NOT s.started AND s.start_time > b.first_at)"
	" ORDER BY b.first_at, b.n",
	.nargs = 3, .argtypes = {TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID}
};

/*
 * Stages that nobody has started.  They are numbered in the order of execution
 * and inserted in that of their names, so that two batches do not deadlock.
 */
static const StoreQuery stages_query = {
	"INSERT INTO @store@.pipeline_stages AS s (run_id, stage_name, ordinal, started, start_time)"
	" SELECT n.run_id, n.stage_name, n.ordinal, false, n.at"
	" FROM (SELECT u.run_id, u.stage_name, u.at, pg_catalog.nextval($4) AS ordinal"
	"  FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) u(run_id, stage_name, at) OFFSET 0) n"
	" ORDER BY n.run_id COLLATE \"C\", n.stage_name COLLATE \"C\""
	" ON CONFLICT (run_id, stage_name) DO UPDATE SET start_time = EXCLUDED.start_time"
	" WHERE NOT s.started AND s.start_time > EXCLUDED.start_time",
	.nargs = 4, .argtypes = {TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, REGCLASSOID}
};

/* In the target list, arrays are taken apart in step, and without being written to a store each. */
#define INSERT_OPERATORS \
	"INSERT INTO @store@.pipeline_operators (run_id, stage_name, operator_name, worker_id," \
	" input_records, output_records, total_time, error_count, latency_sketch, custom_metrics, at)" \
	" SELECT pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4)," \
	" pg_catalog.unnest($5), pg_catalog.unnest($6), pg_catalog.unnest($7), pg_catalog.unnest($8), pg_catalog.unnest($9)," \
	" pg_catalog.unnest($10), pg_catalog.unnest($11)"
#define OPERATOR_TYPES \
	{TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, INT8ARRAYOID, INT8ARRAYOID, \
	FLOAT8ARRAYOID, INT8ARRAYOID, BYTEAARRAYOID, JSONBARRAYOID, TIMESTAMPTZARRAYOID}

static const StoreQuery insert_query = {
	INSERT_OPERATORS, .nargs = NCOLUMNS, .argtypes = OPERATOR_TYPES
};

static const StoreQuery insert_missing_query = {
	INSERT_OPERATORS " ON CONFLICT (run_id, stage_name, operator_name, worker_id, at) DO NOTHING",
	.nargs = NCOLUMNS, .argtypes = OPERATOR_TYPES
};

static Datum
array_datum(Datum *values, bool *nulls, int count, Oid type)
{
	int			lower_bound = 1;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	return PointerGetDatum(construct_md_array(values, nulls, 1, &count, &lower_bound,
											  type, typlen, typbyval, typalign));
}

/* See to it that the runs of a batch are there and take its rows, and that its stages are there. */
static void
prepare_stages(const MetricsStore *store, const Datum *columns)
{
	Datum		values[4] = {columns[RUN_ID], columns[STAGE_NAME], columns[AT]};
	uint64		nrows = store_execute(store, &check_query, NULL, values, NULL);
	SPITupleTable *rows = SPI_tuptable;
	Datum	   *missing[3];
	int			nmissing = 0;

	if (nrows == 0)
		return;
	for (int i = 0; i < 3; i++)
		missing[i] = palloc_array(Datum, nrows);
	for (uint64 row = 0; row < nrows; row++)
	{
		Datum		column[7];
		bool		isnull[7];

		heap_deform_tuple(rows->vals[row], rows->tupdesc, column, isnull);
		if (isnull[4])
			run_unknown(TextDatumGetCString(column[0]));
		run_check_open(TextDatumGetCString(column[0]), TextDatumGetCString(column[4]),
					   DatumGetTimestampTz(column[5]), DatumGetTimestampTz(column[3]));
		if (DatumGetBool(column[6]))
		{
			for (int i = 0; i < 3; i++)
				missing[i][nmissing] = column[i];
			nmissing++;
		}
	}
	if (nmissing == 0)
		return;
	values[0] = array_datum(missing[0], NULL, nmissing, TEXTOID);
	values[1] = array_datum(missing[1], NULL, nmissing, TEXTOID);
	values[2] = array_datum(missing[2], NULL, nmissing, TIMESTAMPTZOID);
	values[3] = ObjectIdGetDatum(store_relation(store, "pipeline_ordinal_seq"));
	store_execute(store, &stages_query, NULL, values, NULL);
}

/* What insert_new_rows() is to insert, and how many it has. */
typedef struct Insertion
{
	const MetricsStore *store;
	Datum	   *columns;
	int64		written;
} Insertion;

static bool
insert_new_rows(void *arg)
{
	Insertion  *insertion = arg;

	insertion->written = store_execute(insertion->store, &insert_query, NULL, insertion->columns, NULL);
	return true;
}

/*
 * Insert the rows that are not there yet.  Hardly ever is one there, and looking
 * first costs a third of the time that it takes to insert them: so a batch is
 * inserted, and only if that fails one looks.
 */
static int64
insert_rows(const MetricsStore *store, Datum *columns, int count)
{
	Insertion	insertion = {.store = store,.columns = columns};

	if (count > 1)
	{
		ErrorData  *error = run_in_subtransaction(insert_new_rows, &insertion);

		if (error == NULL)
			return insertion.written;
		if (error->sqlerrcode != ERRCODE_UNIQUE_VIOLATION)
			ReThrowError(error);
	}
	return store_execute(store, &insert_missing_query, NULL, columns, NULL);
}

/*
 * Write rows that were checked; returns how many were not there yet.  Needs an SPI
 * connection.
 */
int64
write_operators(const MetricsStore *store, const OperatorRow *rows, int count)
{
	static const Oid types[NCOLUMNS] = {
		TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT8OID, FLOAT8OID, INT8OID, BYTEAOID, JSONBOID, TIMESTAMPTZOID
	};
	TimestampTz now = GetCurrentTimestamp();
	Datum	   *values[NCOLUMNS];
	bool	   *no_sketch = palloc_array(bool, count);
	Datum		columns[NCOLUMNS];

	for (int i = 0; i < NCOLUMNS; i++)
		values[i] = palloc_array(Datum, count);
	for (int n = 0; n < count; n++)
	{
		const OperatorRow *row = &rows[n];

		for (int i = 0; i < NNAMES; i++)
			values[i][n] = PointerGetDatum(row->names[i]);
		values[INPUT_RECORDS][n] = Int64GetDatum(row->input_records);
		values[OUTPUT_RECORDS][n] = Int64GetDatum(row->output_records);
		values[TOTAL_TIME][n] = Float8GetDatum(row->total_time);
		values[ERROR_COUNT][n] = Int64GetDatum(row->error_count);
		values[LATENCY_SKETCH][n] = PointerGetDatum(row->sketch);
		no_sketch[n] = row->sketch == NULL;
		values[CUSTOM_METRICS][n] = PointerGetDatum(row->custom_metrics);
		/* Rows without a time of their own must not be taken for one row sent again. */
		values[AT][n] = TimestampTzGetDatum(row->has_at ? row->at : now + n);
	}
	for (int i = 0; i < NCOLUMNS; i++)
		columns[i] = array_datum(values[i], i == LATENCY_SKETCH ? no_sketch : NULL, count, types[i]);

	prepare_stages(store, columns);
	return insert_rows(store, columns, count);
}
