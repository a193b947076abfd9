/*
 * perf_alert.c
 *	  Alerts of changes: metrics_perf_alert(), metrics_generate_alerts().
 *
 * Alerts of one push and framework share a summary, which a unique index keeps
 * one of, so that any number of sessions may generate at once.  A series makes
 * its alerts in order of time, so that they do not deadlock.  All queries see what
 * the calling statement has reported.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/perf.h"

PG_FUNCTION_INFO_V1(metrics_perf_alert);
PG_FUNCTION_INFO_V1(metrics_generate_alerts);

#define DEFAULT_THRESHOLD 2
#define INFINITE_T 1000

/* A series for which alerts are generated. */
typedef struct AlertSeries
{
	Datum		repository;
	Datum		signature_id;
	Datum		framework_id;
	bool		lower_is_better;
	bool		absolute;		/* the threshold is one of the values, not of per cent */
	double		threshold;
	bool		sheriffed;		/* not only monitored */
	ChangeWindows windows;
} AlertSeries;

/*
 * Whether there are alerts of a series: of a suite unless it says no; of a
 * subtest if it says so, or says nothing and the suite has no value.  What is
 * monitored has them in any case, but not on try.
 */
static const StoreQuery series_query = {
	"SELECT s.framework_id, s.lower_is_better, COALESCE(s.alert_change_type = 'absolute', false), s.alert_threshold,"
	" COALESCE(s.monitor, false), " PERF_WINDOW_COLUMNS
	" FROM @store@.performance_signature s"
	" JOIN @store@.performance_repository r ON r.name = s.repository"
	" WHERE s.repository = $1 AND s.id = $2 AND ((r.alerts_enabled AND CASE WHEN s.test = '' THEN s.should_alert IS NOT FALSE"
	"  ELSE COALESCE(s.should_alert, s.parent_id IS NULL) END) OR (s.monitor AND NOT r.is_try))",
	.nargs = 2, .argtypes = {TEXTOID, INT4OID}
};

/* The measurements after the latest alert; of jobs of tier 3 only if the series is monitored. */
static const StoreQuery recent_query = {
	"SELECT d.push_timestamp, d.push_id, d.value FROM @store@.performance_datum d"
	" JOIN @store@.performance_run r ON r.id = d.run_id"
	" WHERE d.repository = $1 AND d.signature_id = $2 AND d.push_timestamp >= $3"
	" AND d.push_timestamp > COALESCE((SELECT max(p.push_time) FROM @store@.performance_alert a"
	"  JOIN @store@.performance_alert_summary s ON s.id = a.summary_id"
	"  JOIN @store@.performance_push p ON p.id = s.push_id WHERE a.signature_id = $2), '-infinity')"
	" AND (r.tier < 3 OR $4)"
	" ORDER BY d.push_timestamp, d.push_id, d.run_id",
	.nargs = 4, .argtypes = {TEXTOID, INT4OID, TIMESTAMPTZOID, BOOLOID}
};

#define SUMMARY_TYPES TEXTOID, INT4OID, INT8OID, BOOLOID, INT8OID

static const StoreQuery find_summary_query = {
	"SELECT id FROM @store@.performance_alert_summary"
	" WHERE repository = $1 AND framework_id = $2 AND push_id = $3 AND sheriffed = $4 ORDER BY id LIMIT 1",
	.nargs = 5, .argtypes = {SUMMARY_TYPES}
};

static const StoreQuery create_summary_query = {
	"INSERT INTO @store@.performance_alert_summary (repository, framework_id, push_id, sheriffed, prev_push_id)"
	" VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
	.nargs = 5, .argtypes = {SUMMARY_TYPES}
};

/* The change may have come earlier for another series: then the summary begins there. */
static const StoreQuery widen_summary_query = {
	"UPDATE @store@.performance_alert_summary SET prev_push_id = $2"
	" WHERE id = $1 AND NOT manually_created"
	" AND (SELECT push_time FROM @store@.performance_push WHERE id = prev_push_id)"
	" > (SELECT push_time FROM @store@.performance_push WHERE id = $2)",
	.nargs = 2, .argtypes = {INT8OID, INT8OID}
};

#define ALERT_TYPES INT8OID, INT4OID, BOOLOID, FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID

static const StoreQuery create_alert_query = {
	"INSERT INTO @store@.performance_alert"
	" (summary_id, signature_id, is_regression, amount_pct, amount_abs, prev_value, new_value, t_value)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (summary_id, signature_id) DO NOTHING",
	.nargs = 8, .argtypes = {ALERT_TYPES}
};

static const StoreQuery update_alert_query = {
	"UPDATE @store@.performance_alert SET is_regression = $3, amount_pct = $4, amount_abs = $5,"
	" prev_value = $6, new_value = $7, t_value = $8 WHERE summary_id = $1 AND signature_id = $2",
	.nargs = 8, .argtypes = {ALERT_TYPES}
};

/* Look up what says how to alert; false if there are no alerts of the series. */
static bool
find_series(const MetricsStore *store, AlertSeries *series)
{
	Datum		values[] = {series->repository, series->signature_id};
	bool		isnull;
	Datum		threshold;

	if (store_execute(store, &series_query, NULL, values, NULL) == 0)
		return false;
	series->framework_id = store_column(1, &isnull);
	series->lower_is_better = DatumGetBool(store_column(2, &isnull));
	series->absolute = DatumGetBool(store_column(3, &isnull));
	threshold = store_column(4, &isnull);
	series->threshold = isnull ? DEFAULT_THRESHOLD : DatumGetFloat8(threshold);
	series->sheriffed = !DatumGetBool(store_column(5, &isnull));
	series->windows = perf_window_columns(6);
	return true;
}

/*
 * Write the alert of a change, unless it is too small; returns whether it is
 * new.  There is no percentage of 0, and that of a negative value is of its
 * absolute.
 */
static bool
write_alert(const MetricsStore *store, const AlertSeries *series, const SeriesPush *prev,
			const SeriesPush *push)
{
	double		delta = push->new_value - push->prev_value;
	double		amount_abs = fabs(delta);
	double		amount_pct = push->prev_value == 0 ? 0 : 100 * amount_abs / fabs(push->prev_value);
	Datum		summary[] = {series->repository, series->framework_id, Int64GetDatum(push->id),
	BoolGetDatum(series->sheriffed), Int64GetDatum(prev->id)};
	Datum		summary_id;
	Datum		widening[2];
	Datum		alert[8];

	if ((series->absolute ? amount_abs : amount_pct) < series->threshold)
		return false;

	summary_id = perf_get_id(store, &find_summary_query, &create_summary_query, summary, NULL);
	widening[0] = summary_id;
	widening[1] = Int64GetDatum(prev->id);
	store_execute(store, &widen_summary_query, NULL, widening, NULL);

	alert[0] = summary_id;
	alert[1] = series->signature_id;
	alert[2] = BoolGetDatum(series->lower_is_better ? delta > 0 : delta < 0);
	alert[3] = Float8GetDatum(amount_pct);
	alert[4] = Float8GetDatum(amount_abs);
	alert[5] = Float8GetDatum(push->prev_value);
	alert[6] = Float8GetDatum(push->new_value);
	alert[7] = Float8GetDatum(isinf(push->t) ? INFINITE_T : push->t);
	if (store_execute(store, &create_alert_query, NULL, alert, NULL) > 0)
		return true;
	store_execute(store, &update_alert_query, NULL, alert, NULL);
	return false;
}

/* Generate the alerts of a series from a time on; returns how many are new. */
static int
alert_series(const MetricsStore *store, Datum repository, Datum signature_id, TimestampTz since)
{
	AlertSeries alerts = {.repository = repository,.signature_id = signature_id};
	Datum		values[] = {repository, signature_id, TimestampTzGetDatum(since), 0};
	Series		series;
	int			created = 0;

	if (!find_series(store, &alerts))
		return 0;
	values[3] = BoolGetDatum(!alerts.sheriffed);
	perf_detect_changes(store, &recent_query, values, NULL, &alerts.windows, &series);
	for (int i = 1; i < series.npushes; i++)
	{
		if (series.pushes[i].is_change)
			created += write_alert(store, &alerts, &series.pushes[i - 1], &series.pushes[i]);
	}
	return created;
}

/* How far back measurements count. */
static TimestampTz
alert_since(Datum max_age)
{
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_mi_interval,
												   TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()),
												   max_age));
}

/* metrics_perf_alert(repository, signature_id, max_age) → integer */
Datum
metrics_perf_alert(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", "signature_id", "max_age"};
	MetricsStore store;
	int			created;

	check_not_null(fcinfo, names, lengthof(names));
	PreventCommandIfReadOnly("metrics_perf_alert()");
	perf_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	created = alert_series(&store, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), alert_since(PG_GETARG_DATUM(2)));
	SPI_finish();
	PG_RETURN_INT32(created);
}

/* Series that were measured lately. */
static const StoreQuery active_series_query = {
	"SELECT pg_catalog.array_agg(s.id ORDER BY s.id) FROM @store@.performance_signature s"
	" JOIN @store@.performance_activity a ON a.signature_id = s.id"
	" JOIN @store@.performance_framework f ON f.id = s.framework_id"
	" WHERE s.repository = $1 AND ($2 IS NULL OR f.name = $2) AND a.last_updated >= $3",
	.nargs = 3, .argtypes = {TEXTOID, TEXTOID, TIMESTAMPTZOID}
};

/*
 * metrics_generate_alerts(repository, framework, max_age)
 *
 * Commits after each series, unless it is called within a transaction.
 */
Datum
metrics_generate_alerts(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", NULL, "max_age"};
	bool		commits = may_commit(fcinfo);
	MetricsStore store;
	TimestampTz since;
	Datum		values[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), 0};
	char		nulls[] = {' ', PG_ARGISNULL(1) ? 'n' : ' ', ' '};
	Datum	   *ids;
	int			count = 0;
	bool		isnull;
	Datum		array;
	MemoryContext series_context;

	check_not_null(fcinfo, names, lengthof(names));
	PreventCommandIfReadOnly("metrics_generate_alerts()");
	since = alert_since(PG_GETARG_DATUM(2));
	values[2] = TimestampTzGetDatum(since);
	SPI_connect_ext(commits ? SPI_OPT_NONATOMIC : 0);
	perf_open(fcinfo, RowExclusiveLock, &store);
	store_execute(&store, &active_series_query, NULL, values, nulls);
	array = store_column(1, &isnull);
	if (!isnull)
		deconstruct_array(DatumGetArrayTypeP(array), INT4OID, sizeof(int32), true, TYPALIGN_INT,
						  &ids, NULL, &count);
	series_context = AllocSetContextCreate(CurrentMemoryContext, "metrics_ext series", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < count; i++)
	{
		MemoryContext old_context = MemoryContextSwitchTo(series_context);

		CHECK_FOR_INTERRUPTS();
		alert_series(&store, values[0], ids[i], since);
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(series_context);
		if (commits)
		{
			SPI_commit();
			EnsurePortalSnapshotExists();
			perf_open(fcinfo, RowExclusiveLock, &store);
		}
	}
	SPI_finish();
	PG_RETURN_VOID();
}
