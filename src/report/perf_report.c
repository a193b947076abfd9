/*
 * perf_report.c
 *	  Ingestion of an artifact: metrics_report_perf().
 *
 * Concurrent reports lock in one order: the run, which makes reports of one job
 * wait for each other, then the series by suite, extra options and test.  What
 * is there already is only read, so that reports of different jobs wait only
 * where both make or change the same series.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "args.h"
#include "report/perf.h"
#include "report/perf_artifact.h"
#include "report/perf_hash.h"
#include "report/report.h"

PG_FUNCTION_INFO_V1(metrics_report_perf);

#define MAX_PLATFORM_BYTES 255

/* A report on its way into the store. */
typedef struct PerfReport
{
	const MetricsStore *store;
	PerfArtifact artifact;
	Datum		repository;
	int64		push_id;
	TimestampTz push_time;
	TimestampTz timestamp;		/* of its measurements */
	int64		run_id;
	int32		framework_id;
	int32		platform_id;
	int32		option_collection_id;
	const char *platform;
	const char *option_collection_hash;
	int32		created;
	int32		existing;
} PerfReport;

/*
 * Parameters of the queries for series, in the order of the columns below.
 * $1 to $9 tell a series from all others, the rest describes it.
 */
typedef enum SeriesParameter
{
	SERIES_REPOSITORY,
	SERIES_FRAMEWORK_ID,
	SERIES_APPLICATION,
	SERIES_PLATFORM_ID,
	SERIES_OPTION_COLLECTION_ID,
	SERIES_SUITE,
	SERIES_TEST,
	SERIES_EXTRA_OPTIONS,
	SERIES_PARENT_ID,
	SERIES_HASH,
	SERIES_HAS_SUBTESTS,
	SERIES_LOWER_IS_BETTER,
	SERIES_UNIT,
	SERIES_SUITE_PUBLIC_NAME,
	SERIES_TEST_PUBLIC_NAME,
	SERIES_TAGS,
	SERIES_SHOULD_ALERT,
	SERIES_MONITOR,
	SERIES_EMAILS,
	SERIES_CHANGE_TYPE,
	SERIES_THRESHOLD,
	SERIES_MIN_BACK,
	SERIES_MAX_BACK,
	SERIES_FORE,
	SERIES_SEVERITY,
	SERIES_ID,					/* of the query that updates */
	SERIES_PARAMETERS
} SeriesParameter;

#define SERIES_TYPES \
	TEXTOID, INT4OID, TEXTOID, INT4OID, INT4OID, TEXTOID, TEXTOID, TEXTARRAYOID, INT4OID, \
	TEXTOID, BOOLOID, BOOLOID, TEXTOID, TEXTOID, TEXTOID, TEXTARRAYOID, BOOLOID, BOOLOID, \
	TEXTARRAYOID, TEXTOID, FLOAT8OID, INT4OID, INT4OID, INT4OID, TEXTOID, INT4OID

#define SERIES_DESCRIPTION \
	"signature_hash, has_subtests, lower_is_better, measurement_unit, suite_public_name, test_public_name," \
	" tags, should_alert, monitor, alert_notify_emails, alert_change_type, alert_threshold," \
	" min_back_window, max_back_window, fore_window, alert_severity"

static const StoreQuery find_series_query = {
	"SELECT s.id, a.last_updated,"
	" (signature_hash, has_subtests, lower_is_better, measurement_unit, suite_public_name, test_public_name,"
	"  should_alert, monitor, alert_change_type, alert_threshold,"
	"  min_back_window, max_back_window, fore_window, alert_severity)"
	" IS NOT DISTINCT FROM ($10, $11, $12, $13, $14, $15, $17, $18, $20, $21, $22, $23, $24, $25)"
	" AND tags OPERATOR(pg_catalog.=) $16 AND alert_notify_emails OPERATOR(pg_catalog.=) $19"
	" FROM @store@.performance_signature s"
	" LEFT JOIN @store@.performance_activity a ON a.signature_id = s.id"
	" WHERE repository = $1 AND framework_id = $2 AND application = $3 AND platform_id = $4"
	" AND option_collection_id = $5 AND suite = $6 AND test = $7"
	" AND extra_options OPERATOR(pg_catalog.=) $8 AND parent_id IS NOT DISTINCT FROM $9",
	.nargs = SERIES_PARAMETERS, .argtypes = {SERIES_TYPES}
};

static const StoreQuery create_series_query = {
	"INSERT INTO @store@.performance_signature"
	" (repository, framework_id, application, platform_id, option_collection_id, suite, test,"
	" extra_options, parent_id, " SERIES_DESCRIPTION ")"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,"
	" $19, $20, $21, $22, $23, $24, $25)"
	" ON CONFLICT DO NOTHING",
	.nargs = SERIES_PARAMETERS, .argtypes = {SERIES_TYPES}
};

static const StoreQuery update_series_query = {
	"UPDATE @store@.performance_signature SET (" SERIES_DESCRIPTION ")"
	" = ($10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25) WHERE id = $26",
	.nargs = SERIES_PARAMETERS, .argtypes = {SERIES_TYPES}
};

static const StoreQuery create_activity_query = {
	"INSERT INTO @store@.performance_activity (signature_id, last_updated) VALUES ($1, $2)",
	.nargs = 2, .argtypes = {INT4OID, TIMESTAMPTZOID}
};

static const StoreQuery raise_activity_query = {
	"UPDATE @store@.performance_activity SET last_updated = $2 WHERE signature_id = $1 AND last_updated < $2",
	.nargs = 2, .argtypes = {INT4OID, TIMESTAMPTZOID}
};

static const StoreQuery insert_datum_query = {
	"INSERT INTO @store@.performance_datum"
	" (repository, signature_id, run_id, push_id, push_timestamp, value, multi_commit, replicates)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
	.nargs = 8, .argtypes = {TEXTOID, INT4OID, INT8OID, INT8OID, TIMESTAMPTZOID, FLOAT8OID,
	BOOLOID, FLOAT8ARRAYOID}
};

static void
set_text(Datum *values, char *nulls, SeriesParameter parameter, const char *text)
{
	nulls[parameter] = text ? ' ' : 'n';
	values[parameter] = text ? CStringGetTextDatum(text) : (Datum) 0;
}

static void
set_flag(Datum *values, char *nulls, SeriesParameter parameter, PerfFlag flag)
{
	nulls[parameter] = flag == FLAG_MISSING ? 'n' : ' ';
	values[parameter] = BoolGetDatum(flag == FLAG_TRUE);
}

static void
set_integer(Datum *values, char *nulls, SeriesParameter parameter, const PerfNumber *number)
{
	nulls[parameter] = number->given ? ' ' : 'n';
	values[parameter] = Int32GetDatum((int32) number->value);
}

static Datum
text_array(const PerfStrings *strings)
{
	Datum	   *items = palloc_array(Datum, strings->count + 1);

	for (int i = 0; i < strings->count; i++)
		items[i] = CStringGetTextDatum(strings->items[i]);
	return PointerGetDatum(construct_array(items, strings->count, TEXTOID, -1, false, TYPALIGN_INT));
}

static void
push_string(JsonbParseState **state, JsonbIteratorToken token, const char *text)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = strlen(text);
	pushJsonbValue(state, token, &value);
}

static void
push_property(JsonbParseState **state, const char *key, const char *text)
{
	push_string(state, WJB_KEY, key);
	push_string(state, WJB_VALUE, text);
}

/* The hash of a series: of a suite, or of a test whose suite may have one, too. */
static char *
series_hash(const PerfReport *report, const PerfSuite *suite, const PerfTest *subtest,
			const char *parent_hash)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	push_property(&state, "suite", suite->test.name);
	push_property(&state, "option_collection_hash", report->option_collection_hash);
	push_property(&state, "machine_platform", report->platform);
	if (suite->extra_options.count > 0)
	{
		push_string(&state, WJB_KEY, "test_options");
		pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
		for (int i = 0; i < suite->extra_options.count; i++)
			push_string(&state, WJB_ELEM, suite->extra_options.items[i]);
		pushJsonbValue(&state, WJB_END_ARRAY, NULL);
	}
	if (subtest)
		push_property(&state, "test", subtest->name);
	if (parent_hash)
		push_property(&state, "parent_signature", parent_hash);
	return perf_properties_hash(JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)));
}

/* Fill in the parameters of a series. */
static void
describe_series(const PerfReport *report, const PerfSuite *suite, const PerfTest *subtest,
				int32 parent_id, const char *hash, Datum *values, char *nulls)
{
	const PerfTest *test = subtest ? subtest : &suite->test;

	memset(nulls, ' ', SERIES_PARAMETERS);
	values[SERIES_REPOSITORY] = report->repository;
	values[SERIES_FRAMEWORK_ID] = Int32GetDatum(report->framework_id);
	set_text(values, nulls, SERIES_APPLICATION, report->artifact.application ? report->artifact.application : "");
	values[SERIES_PLATFORM_ID] = Int32GetDatum(report->platform_id);
	values[SERIES_OPTION_COLLECTION_ID] = Int32GetDatum(report->option_collection_id);
	set_text(values, nulls, SERIES_SUITE, suite->test.name);
	set_text(values, nulls, SERIES_TEST, subtest ? subtest->name : "");
	values[SERIES_EXTRA_OPTIONS] = text_array(&suite->extra_options);
	values[SERIES_PARENT_ID] = Int32GetDatum(parent_id);
	nulls[SERIES_PARENT_ID] = parent_id == 0 ? 'n' : ' ';

	set_text(values, nulls, SERIES_HASH, hash);
	values[SERIES_HAS_SUBTESTS] = BoolGetDatum(subtest == NULL);
	values[SERIES_LOWER_IS_BETTER] = BoolGetDatum(test->lower_is_better != FLAG_FALSE);
	set_text(values, nulls, SERIES_UNIT, test->unit);
	set_text(values, nulls, SERIES_SUITE_PUBLIC_NAME, suite->test.public_name);
	set_text(values, nulls, SERIES_TEST_PUBLIC_NAME, subtest ? subtest->public_name : NULL);
	values[SERIES_TAGS] = text_array(&suite->tags);
	set_flag(values, nulls, SERIES_SHOULD_ALERT, test->should_alert);
	set_flag(values, nulls, SERIES_MONITOR, test->monitor);
	values[SERIES_EMAILS] = text_array(&test->alert_notify_emails);
	set_text(values, nulls, SERIES_CHANGE_TYPE, test->alert_change_type);
	values[SERIES_THRESHOLD] = Float8GetDatum(test->alert_threshold.value);
	nulls[SERIES_THRESHOLD] = test->alert_threshold.given ? ' ' : 'n';
	set_integer(values, nulls, SERIES_MIN_BACK, &test->min_back_window);
	set_integer(values, nulls, SERIES_MAX_BACK, &test->max_back_window);
	set_integer(values, nulls, SERIES_FORE, &test->fore_window);
	set_text(values, nulls, SERIES_SEVERITY, test->alert_severity ? test->alert_severity : "normal");
	nulls[SERIES_ID] = 'n';
}

/*
 * The id of a series, which is made, or described anew, as need be.  Sets how
 * far the series reaches.
 */
static int32
get_series(const PerfReport *report, Datum *values, char *nulls, TimestampTz *last_updated)
{
	bool		is_new;
	bool		isnull;
	bool		is_same;
	int32		id;

	perf_find_or_create(report->store, &find_series_query, &create_series_query, values, nulls);
	id = DatumGetInt32(store_column(1, &isnull));
	*last_updated = DatumGetTimestampTz(store_column(2, &is_new));
	is_same = DatumGetBool(store_column(3, &isnull));
	if (is_new)
	{
		Datum		activity[] = {Int32GetDatum(id), TimestampTzGetDatum(report->push_time)};

		store_execute(report->store, &create_activity_query, NULL, activity, NULL);
		*last_updated = report->push_time;
	}
	if (!is_same)
	{
		values[SERIES_ID] = Int32GetDatum(id);
		nulls[SERIES_ID] = ' ';
		store_execute(report->store, &update_series_query, NULL, values, nulls);
	}
	return id;
}

/* Store the measurement of a suite, or of a subtest; returns the series. */
static int32
store_measurement(PerfReport *report, const PerfSuite *suite, const PerfTest *subtest,
				  int32 parent_id, const char *hash)
{
	const PerfTest *test = subtest ? subtest : &suite->test;
	Datum		series[SERIES_PARAMETERS] = {0};
	char		series_nulls[SERIES_PARAMETERS];
	Datum		values[8];
	char		nulls[] = "        ";
	TimestampTz last_updated;
	TimestampTz latest = report->push_time;
	int32		id;

	describe_series(report, suite, subtest, parent_id, hash, series, series_nulls);
	id = get_series(report, series, series_nulls, &last_updated);

	values[0] = report->repository;
	values[1] = Int32GetDatum(id);
	values[2] = Int64GetDatum(report->run_id);
	values[3] = Int64GetDatum(report->push_id);
	values[4] = TimestampTzGetDatum(report->timestamp);
	values[5] = Float8GetDatum(test->value.value);
	values[6] = BoolGetDatum(report->artifact.push_timestamp.given);
	nulls[7] = test->replicates.count > 0 ? ' ' : 'n';
	if (test->replicates.count > 0)
	{
		Datum	   *items = palloc_array(Datum, test->replicates.count);

		for (int i = 0; i < test->replicates.count; i++)
			items[i] = Float8GetDatum(test->replicates.items[i]);
		values[7] = PointerGetDatum(construct_array(items, test->replicates.count, FLOAT8OID,
													sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	}
	if (store_execute(report->store, &insert_datum_query, NULL, values, nulls) > 0)
	{
		report->created++;
		latest = Max(latest, report->timestamp);
	}
	else
		report->existing++;

	if (last_updated < latest)
	{
		Datum		activity[] = {Int32GetDatum(id), TimestampTzGetDatum(latest)};

		store_execute(report->store, &raise_activity_query, NULL, activity, NULL);
	}
	return id;
}

/*
 * Store a suite and its subtests.  The subtests of a suite without a value have
 * no parent.  Of subtests of one name the first counts, the others are there.
 */
static void
store_suite(PerfReport *report, const PerfSuite *suite)
{
	char	   *hash = NULL;
	int32		parent_id = 0;

	if (suite->test.value.given)
	{
		hash = series_hash(report, suite, NULL, NULL);
		parent_id = store_measurement(report, suite, NULL, 0, hash);
	}
	for (int i = 0; i < suite->nsubtests; i++)
	{
		const PerfTest *subtest = &suite->subtests[i];

		CHECK_FOR_INTERRUPTS();
		if (i > 0 && strcmp(subtest[-1].name, subtest->name) == 0)
			report->existing++;
		else
			store_measurement(report, suite, subtest, parent_id,
							  series_hash(report, suite, subtest, hash));
	}
}

static const StoreQuery find_framework_query = {
	"SELECT id, enabled FROM @store@.performance_framework WHERE name = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

/* Why a framework's measurements are not stored; NULL if they are. */
static const char *
check_framework(PerfReport *report)
{
	Datum		values[] = {CStringGetTextDatum(report->artifact.framework)};
	bool		isnull;

	if (store_execute(report->store, &find_framework_query, NULL, values, NULL) == 0)
		return psprintf("unknown framework \"%s\"", report->artifact.framework);
	report->framework_id = DatumGetInt32(store_column(1, &isnull));
	if (!DatumGetBool(store_column(2, &isnull)))
		return psprintf("framework \"%s\" is not enabled", report->artifact.framework);
	return NULL;
}

static const StoreQuery find_push_query = {
	"SELECT r.name, p.push_time FROM @store@.performance_repository r"
	" LEFT JOIN @store@.performance_push p ON p.repository = r.name AND p.id = $2"
	" WHERE r.name = $1",
	.nargs = 2, .argtypes = {TEXTOID, INT8OID}
};

/* Look up the push, and so the time of the measurements. */
static void
find_push(PerfReport *report)
{
	Datum		values[] = {report->repository, Int64GetDatum(report->push_id)};
	const char *repository = TextDatumGetCString(report->repository);
	bool		isnull;
	Datum		push_time;

	if (store_execute(report->store, &find_push_query, NULL, values, NULL) == 0)
		perf_unknown_repository(repository);
	push_time = store_column(2, &isnull);
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
				 errmsg("unknown push " INT64_FORMAT " of repository \"%s\"", report->push_id, repository),
				 errhint("Call metrics_add_push() first; it returns the id of the push.")));
	report->push_time = report->timestamp = DatumGetTimestampTz(push_time);
	if (report->artifact.push_timestamp.given)
		report->timestamp = (TimestampTz) rint((report->artifact.push_timestamp.value -
												(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * (double) SECS_PER_DAY) *
											   USECS_PER_SEC);
}

static const StoreQuery find_platform_query = {
	"SELECT id FROM @store@.performance_platform WHERE name = $1",
	.nargs = 1, .argtypes = {TEXTOID}
};

static const StoreQuery create_platform_query = {
	"INSERT INTO @store@.performance_platform (name) VALUES ($1) ON CONFLICT (name) DO NOTHING",
	.nargs = 1, .argtypes = {TEXTOID}
};

static const StoreQuery find_options_query = {
	"SELECT id FROM @store@.performance_option_collection WHERE hash = $1",
	.nargs = 2, .argtypes = {TEXTOID, TEXTARRAYOID}
};

static const StoreQuery create_options_query = {
	"INSERT INTO @store@.performance_option_collection (hash, options) VALUES ($1, $2)"
	" ON CONFLICT (hash) DO NOTHING",
	.nargs = 2, .argtypes = {TEXTOID, TEXTARRAYOID}
};

/* Look up, or register, the platform and the set of build options. */
static void
find_platform(PerfReport *report, Datum platform, ArrayType *options)
{
	Datum		values[2] = {platform};
	Datum	   *items;
	bool	   *nulls;
	PerfStrings names;
	StringInfoData joined;

	report->platform = TextDatumGetCString(platform);
	if (strlen(report->platform) > MAX_PLATFORM_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("platform must have at most %d bytes, got %zu", MAX_PLATFORM_BYTES, strlen(report->platform)),
				 errhint("It names a kind of machine.")));
	report->platform_id = DatumGetInt32(perf_get_id(report->store, &find_platform_query,
													&create_platform_query, values, NULL));

	deconstruct_array(options, TEXTOID, -1, false, TYPALIGN_INT, &items, &nulls, &names.count);
	names.items = palloc_array(char *, names.count + 1);
	for (int i = 0; i < names.count; i++)
	{
		if (nulls[i])
			null_argument("an element of options");
		names.items[i] = TextDatumGetCString(items[i]);
	}
	(void) perf_strings_sort(&names);
	initStringInfo(&joined);
	for (int i = 0; i < names.count; i++)
		appendStringInfoString(&joined, names.items[i]);
	report->option_collection_hash = perf_text_hash(joined.data);
	values[0] = CStringGetTextDatum(report->option_collection_hash);
	values[1] = text_array(&names);
	report->option_collection_id = DatumGetInt32(perf_get_id(report->store, &find_options_query,
															 &create_options_query, values, NULL));
}

#define RUN_TYPES \
	TEXTOID, INT8OID, INT8OID, INT4OID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID

static const StoreQuery find_run_query = {
	"SELECT id FROM @store@.performance_run WHERE repository = $1 AND job_id = $2 AND push_id = $3"
	" FOR NO KEY UPDATE",
	.nargs = 10, .argtypes = {RUN_TYPES}
};

static const StoreQuery create_run_query = {
	"INSERT INTO @store@.performance_run (repository, job_id, push_id, tier, machine, submit_time,"
	" application_version, os_name, platform_version, first_timestamp, last_timestamp)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)"
	" ON CONFLICT (repository, job_id, push_id) DO NOTHING",
	.nargs = 10, .argtypes = {RUN_TYPES}
};

/* What is known of the run already stays; what was not is added. */
static const StoreQuery update_run_query = {
	"UPDATE @store@.performance_run SET machine = COALESCE(machine, $2), submit_time = COALESCE(submit_time, $3),"
	" application_version = COALESCE(application_version, $4), os_name = COALESCE(os_name, $5),"
	" platform_version = COALESCE(platform_version, $6),"
	" first_timestamp = LEAST(first_timestamp, $7), last_timestamp = GREATEST(last_timestamp, $7)"
	" WHERE id = $1 AND (first_timestamp > $7 OR last_timestamp < $7"
	" OR (machine IS NULL AND $2 IS NOT NULL) OR (submit_time IS NULL AND $3 IS NOT NULL)"
	" OR (application_version IS NULL AND $4 IS NOT NULL) OR (os_name IS NULL AND $5 IS NOT NULL)"
	" OR (platform_version IS NULL AND $6 IS NOT NULL))",
	.nargs = 7, .argtypes = {INT8OID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID}
};

/* Lock the run of a job, so that no other report of the job goes on; or make it. */
static void
lock_run(PerfReport *report, int64 job, int32 tier, const NullableDatum *machine,
		 const NullableDatum *submit_time)
{
	const PerfArtifact *artifact = &report->artifact;
	const char *const texts[] = {artifact->application_version, artifact->os_name, artifact->platform_version};
	Datum		values[] = {report->repository, Int64GetDatum(job), Int64GetDatum(report->push_id),
		Int32GetDatum(tier), machine->value, submit_time->value, 0, 0, 0,
	TimestampTzGetDatum(report->timestamp)};
	char		nulls[] = "          ";

	nulls[4] = machine->isnull ? 'n' : ' ';
	nulls[5] = submit_time->isnull ? 'n' : ' ';
	for (int i = 0; i < (int) lengthof(texts); i++)
	{
		nulls[6 + i] = texts[i] ? ' ' : 'n';
		values[6 + i] = texts[i] ? CStringGetTextDatum(texts[i]) : (Datum) 0;
	}
	report->run_id = DatumGetInt64(perf_get_id(report->store, &find_run_query, &create_run_query,
											   values, nulls));
	values[3] = Int64GetDatum(report->run_id);
	nulls[3] = ' ';
	store_execute(report->store, &update_run_query, NULL, &values[3], &nulls[3]);
}

/*
 * metrics_report_perf(repository, push, job, artifact, platform, options,
 * machine, submit_time, tier) → (created, existing, skipped, reason)
 */
Datum
metrics_report_perf(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"repository", "push", "job", "artifact", "platform", "options",
	NULL, NULL, "tier"};
	MetricsStore store;
	PerfReport	report = {.store = &store};
	const char *reason;
	int			measurements;
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {false};
	MemoryContext result_context = CurrentMemoryContext;

	check_not_null(fcinfo, names, lengthof(names));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PreventCommandIfReadOnly("metrics_report_perf()");

	perf_open(fcinfo, RowExclusiveLock, &store);
	SPI_connect();
	report_check_size(VARSIZE(PG_GETARG_JSONB_P(3)));
	perf_artifact_read(&report.artifact, PG_GETARG_JSONB_P(3));
	measurements = perf_artifact_measurements(&report.artifact);
	report.repository = PG_GETARG_DATUM(0);
	report.push_id = PG_GETARG_INT64(1);
	find_push(&report);
	reason = check_framework(&report);
	if (reason == NULL && measurements > 0)
	{
		find_platform(&report, PG_GETARG_DATUM(4), PG_GETARG_ARRAYTYPE_P(5));
		lock_run(&report, PG_GETARG_INT64(2), PG_GETARG_INT32(8), &fcinfo->args[6], &fcinfo->args[7]);
		for (int i = 0; i < report.artifact.nsuites; i++)
			store_suite(&report, &report.artifact.suites[i]);
	}

	MemoryContextSwitchTo(result_context);
	values[0] = Int32GetDatum(report.created);
	values[1] = Int32GetDatum(report.existing);
	values[2] = Int32GetDatum(reason ? measurements : 0);
	nulls[3] = reason == NULL;
	values[3] = reason ? CStringGetTextDatum(reason) : (Datum) 0;
	SPI_finish();
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
