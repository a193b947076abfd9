/*
 * perf_series.c
 *	  Changes of a series: metrics_detect_changes(), metrics_change_scores().
 *
 * Those that take a series as arrays read no table, so that they can run in
 * parallel workers and over any series.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/change_detection.h"
#include "report/perf.h"
#include "report/perf_array.h"

PG_FUNCTION_INFO_V1(metrics_detect_changes);
PG_FUNCTION_INFO_V1(metrics_change_scores);
PG_FUNCTION_INFO_V1(metrics_perf_changes);

/* As in the declarations of the functions. */
#define DEFAULT_MIN_BACK 12
#define DEFAULT_MAX_BACK 24
#define DEFAULT_FORE 12
#define DEFAULT_T_THRESHOLD 7

/* A window must hold something. */
static int
window_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
	int32		window = PG_GETARG_INT32(number);

	if (window < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be at least 1, got %d", name, window),
				 errhint("It counts measurements; the defaults are 12, 24 and 12.")));
	return window;
}

/* The measurements from the first three arguments, which are as long as each other. */
static Measurement *
measurement_arguments(FunctionCallInfo fcinfo, int *count)
{
	int			ntimestamps;
	int			npushes;
	int			nvalues;
	const TimestampTz *timestamps = perf_array_argument(fcinfo, 0, "push_timestamps", &ntimestamps);
	const int64 *pushes = perf_array_argument(fcinfo, 1, "push_ids", &npushes);
	const double *values = perf_float8_argument(fcinfo, 2, "vals", &nvalues);
	Measurement *measurements;

	if (ntimestamps != nvalues || npushes != nvalues)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("push_timestamps, push_ids and vals must be of equal length, got %d, %d and %d",
						ntimestamps, npushes, nvalues),
				 errhint("Aggregate the three columns over the same rows, in the same order.")));

	measurements = palloc_array(Measurement, nvalues + 1);
	for (int i = 0; i < nvalues; i++)
		measurements[i] = (Measurement) {timestamps[i], pushes[i], values[i]};
	*count = nvalues;
	return measurements;
}

/* Return the pushes of a series, or only its changes, from a function. */
static void
return_changes(FunctionCallInfo fcinfo, const Series *series, bool only_changes)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < series->npushes; i++)
	{
		const SeriesPush *push = &series->pushes[i];
		Datum		values[] = {TimestampTzGetDatum(push->timestamp), Int64GetDatum(push->id),
			Float8GetDatum(push->t), Float8GetDatum(push->prev_value),
		Float8GetDatum(push->new_value), BoolGetDatum(push->is_change)};
		bool		nulls[] = {false, false, false, push->nprev == 0, false, false};

		if (push->is_change || !only_changes)
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/* The same of the arguments of a function. */
static Datum
detect_changes(FunctionCallInfo fcinfo, bool only_changes)
{
	static const char *const names[] = {NULL, NULL, NULL, "min_back_window", "max_back_window",
	"fore_window", "t_threshold"};
	ChangeWindows windows;
	Measurement *measurements;
	int			count;
	Series		series;

	check_not_null(fcinfo, names, lengthof(names));
	windows.min_back = window_argument(fcinfo, 3, names[3]);
	windows.max_back = window_argument(fcinfo, 4, names[4]);
	windows.fore = window_argument(fcinfo, 5, names[5]);
	windows.t_threshold = PG_GETARG_FLOAT8(6);
	if (!(windows.t_threshold >= 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("t_threshold must not be negative or NaN, got %g", windows.t_threshold),
				 errhint("The default is 7.")));

	measurements = measurement_arguments(fcinfo, &count);
	series_group_by_push(&series, measurements, count);
	series_detect_changes(&series, &windows);
	return_changes(fcinfo, &series, only_changes);
	return (Datum) 0;
}

/*
 * metrics_detect_changes(push_timestamps, push_ids, vals, min_back_window,
 * max_back_window, fore_window, t_threshold) → setof (push_timestamp, push_id,
 * t, prev_value, new_value)
 */
Datum
metrics_detect_changes(PG_FUNCTION_ARGS)
{
	return detect_changes(fcinfo, true);
}

/* metrics_change_scores(…) → the same of every push, and is_change */
Datum
metrics_change_scores(PG_FUNCTION_ARGS)
{
	return detect_changes(fcinfo, false);
}

typedef struct MeasurementList
{
	int			count;
	int			allocated;
	Measurement *measurements;
} MeasurementList;

static void
add_measurement(HeapTuple row, TupleDesc desc, void *arg)
{
	MeasurementList *list = arg;
	bool		isnull;

	if (list->count == list->allocated)
		list->measurements = repalloc_huge(list->measurements, (list->allocated *= 2) * sizeof(Measurement));
	list->measurements[list->count++] = (Measurement) {
		DatumGetTimestampTz(SPI_getbinval(row, desc, 1, &isnull)),
		DatumGetInt64(SPI_getbinval(row, desc, 2, &isnull)),
		DatumGetFloat8(SPI_getbinval(row, desc, 3, &isnull))
	};
}

/* Detect changes in the rows (push_timestamp, push_id, value) of a query. */
void
perf_detect_changes(const MetricsStore *store, const StoreQuery *query, Datum *values,
					const char *nulls, const ChangeWindows *windows, Series *series)
{
	MeasurementList list = {.allocated = 1024};

	list.measurements = palloc_array(Measurement, list.allocated);
	store_for_each(store, query, NULL, values, nulls, add_measurement, &list);
	series_group_by_push(series, list.measurements, list.count);
	series_detect_changes(series, windows);
	pfree(list.measurements);
}

static int
window_column(int column, int default_window)
{
	bool		isnull;
	Datum		window = store_column(column, &isnull);

	return isnull ? default_window : DatumGetInt32(window);
}

/* The windows of a series, in PERF_WINDOW_COLUMNS of the last query from this column on. */
ChangeWindows
perf_window_columns(int column)
{
	return (ChangeWindows) {
		.min_back = window_column(column, DEFAULT_MIN_BACK),
		.max_back = window_column(column + 1, DEFAULT_MAX_BACK),
		.fore = window_column(column + 2, DEFAULT_FORE),
		.t_threshold = DEFAULT_T_THRESHOLD,
	};
}

static const StoreQuery windows_query = {
	"SELECT " PERF_WINDOW_COLUMNS " FROM @store@.performance_signature s WHERE s.repository = $1 AND s.id = $2",
	.reader = true, .nargs = 2, .argtypes = {TEXTOID, INT4OID}
};

static const StoreQuery measurements_query = {
	"SELECT push_timestamp, push_id, value FROM @store@.performance_datum"
	" WHERE repository = $1 AND signature_id = $2 AND ($3 IS NULL OR push_timestamp >= $3)"
	" ORDER BY push_timestamp, push_id, run_id",
	.reader = true, .nargs = 3, .argtypes = {TEXTOID, INT4OID, TIMESTAMPTZOID}
};

/*
 * metrics_perf_changes(repository, signature_id, since) → setof (…)
 *
 * Changes of a stored series, with the windows that it was reported with.
 */
Datum
metrics_perf_changes(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", "signature_id", NULL};
	Datum		values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2)};
	char		nulls[] = {' ', ' ', PG_ARGISNULL(2) ? 'n' : ' '};
	MetricsStore store;
	ChangeWindows windows;
	Series		series = {0};

	check_not_null(fcinfo, names, lengthof(names));
	perf_open(fcinfo, AccessShareLock, &store);
	SPI_connect();
	if (store_execute(&store, &windows_query, NULL, values, NULL) > 0)
	{
		windows = perf_window_columns(1);
		perf_detect_changes(&store, &measurements_query, values, nulls, &windows, &series);
	}
	return_changes(fcinfo, &series, true);
	SPI_finish();
	return (Datum) 0;
}
