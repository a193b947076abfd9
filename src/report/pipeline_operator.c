/*
 * pipeline_operator.c
 *	  What workers report of operators: metrics_report_operator() and, for a
 *	  worker's whole batch, metrics_report_operators().
 *
 * Both check their rows one by one, so that an error names the argument;
 * pipeline_write.c writes them together.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "args.h"
#include "guc.h"
#include "percentile/sketch_sql.h"
#include "report/member.h"
#include "report/pipeline_operator.h"
#include "report/value.h"

PG_FUNCTION_INFO_V1(metrics_report_operator);
PG_FUNCTION_INFO_V1(metrics_report_operators);

#define MAX_NAME_BYTES 500
#define MAX_SECONDS 1e15

/* Their names as arguments, and as keys in a batch. */
static const char *const argument_names[] = {
	"run_id", "stage_name", "operator_name", "worker_id", "input_records", "output_records",
	"total_time", "error_count", "latencies", "weights", "sketch", "custom_metrics", "at"
};

static void
check_name(const char *name, const text *value)
{
	int			len = VARSIZE_ANY_EXHDR(value);

	if (len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not be empty", name),
				 errhint("It is a part of the key of the row.")));
	if (len > MAX_NAME_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("%s of %d bytes is too long", name, len),
				 errhint("The limit is %d bytes.", MAX_NAME_BYTES)));
}

static void
check_count(const char *name, int64 count)
{
	if (count < 0 || count > (int64) MAX_EXACT_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("%s must be between 0 and " INT64_FORMAT ", got " INT64_FORMAT,
						name, (int64) MAX_EXACT_COUNT, count),
				 errhint("Count what was new since the last report; rows of one operator and worker add up.")));
}

/* The sketch of latencies that were checked, NULL of none. */
static bytea *
sketch_latencies(const Latencies *latencies)
{
	Sketch		sketch;
	bytea	   *result = NULL;

	sketch_init(&sketch, SKETCH_DEFAULT_ERROR);
	if (latencies->weighted)
	{
		for (int i = 0; i < latencies->n; i++)
		{
			if (latencies->weights[i] > 0 &&
				!sketch_add_weighted(&sketch, latencies->values[i], latencies->weights[i]))
				sketch_count_overflow();
		}
	}
	else
	{
		for (int i = 0; i < latencies->n; i += SKETCH_BATCH)
			sketch_add(&sketch, latencies->values + i, Min(SKETCH_BATCH, latencies->n - i));
	}
	if (sketch.count > 0)
		result = sketch_to_bytes(&sketch);
	sketch_free(&sketch);
	return result;
}

/* Check what was said of latencies, in whichever form; the sketch to store. */
static bytea *
check_latencies(const Latencies *latencies)
{
	if (latencies->given && latencies->sketch != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("latencies and sketch exclude each other"),
				 errhint("Give the latencies, or a sketch of them.")));
	if (latencies->weighted && (!latencies->given || latencies->nweights != latencies->n))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there are %d latencies and %d weights", latencies->n, latencies->nweights),
				 errhint("Give a weight for each latency: the number of records that took as long.")));
	for (int i = 0; i < latencies->n; i++)
	{
		if (!(latencies->values[i] >= 0 && latencies->values[i] <= MAX_SECONDS))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("latencies must be between 0 and %g, got %g", MAX_SECONDS, latencies->values[i]),
					 errhint("A latency is the seconds that a record took.")));
		if (latencies->weighted && latencies->weights[i] < 0)
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("weights must not be negative, got " INT64_FORMAT, latencies->weights[i]),
					 errhint("A weight is the number of records that took as long.")));
	}
	if (latencies->sketch != NULL)
	{
		Sketch		sketch;

		sketch_from_bytes(&sketch, latencies->sketch);
		if (!sketch_holds_latencies(&sketch))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("sketch is not one of latencies"),
					 errhint("It must have the relative error %g, so that all of them merge, and hold finite values that are not negative.",
							 SKETCH_DEFAULT_ERROR)));
		sketch_free(&sketch);
		return sketch.count > 0 ? latencies->sketch : NULL;
	}
	return latencies->n > 0 ? sketch_latencies(latencies) : NULL;
}

/* Refuse what no row may hold, and make its sketch. */
static void
check_operator(OperatorRow *row)
{
	for (int i = 0; i < NNAMES; i++)
		check_name(argument_names[i], row->names[i]);
	check_count("input_records", row->input_records);
	check_count("output_records", row->output_records);
	check_count("error_count", row->error_count);
	if (!(row->total_time >= 0 && row->total_time <= MAX_SECONDS))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("total_time must be between 0 and %g, got %g", MAX_SECONDS, row->total_time),
				 errhint("It is the seconds that the worker spent in the operator.")));
	if (!JB_ROOT_IS_OBJECT(row->custom_metrics))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("custom_metrics must be a JSON object, got %s", metric_document_text(row->custom_metrics)),
				 errhint("Report an object of names and values, for example {\"cache_hits\": 42}.")));
	if (VARSIZE_ANY(row->custom_metrics) > (Size) metrics_max_document_size * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("custom_metrics of %zu bytes is too large", (Size) VARSIZE_ANY(row->custom_metrics)),
				 errhint("The limit is metrics_ext.max_document_size, %d kB.", metrics_max_document_size)));
	if (row->has_at)
		check_pipeline_time("at", row->at);
	row->sketch = check_latencies(&row->latencies);
}

/* Take the latencies out of an array of float8, and weights out of one of bigint. */
static void
read_arrays(Latencies *latencies, ArrayType *values, ArrayType *weights)
{
	Datum	   *elements;
	bool	   *nulls;

	if (values != NULL)
	{
		deconstruct_array(values, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
						  &elements, &nulls, &latencies->n);
		latencies->given = true;
		latencies->values = palloc_array(double, Max(latencies->n, 1));
		for (int i = 0; i < latencies->n; i++)
		{
			if (nulls[i])
				null_argument("an element of latencies");
			latencies->values[i] = DatumGetFloat8(elements[i]);
		}
	}
	if (weights != NULL)
	{
		deconstruct_array(weights, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
						  &elements, &nulls, &latencies->nweights);
		latencies->weighted = true;
		latencies->weights = palloc_array(int64, Max(latencies->nweights, 1));
		for (int i = 0; i < latencies->nweights; i++)
		{
			if (nulls[i])
				null_argument("an element of weights");
			latencies->weights[i] = DatumGetInt64(elements[i]);
		}
	}
}

/*
 * metrics_report_operator(run_id, stage_name, operator_name, worker_id, input_records, output_records,
 *						   total_time, error_count, latencies, weights, sketch, custom_metrics, at) → boolean
 *
 * A call that leaves out the time has the time of the transaction, the default:
 * it becomes that of the call, or the second row of an operator in a
 * transaction would be taken for the first.
 */
Datum
metrics_report_operator(PG_FUNCTION_ARGS)
{
	MetricsStore store;
	OperatorRow row = {0};
	int64		written;

	for (int i = 0; i < (int) lengthof(argument_names); i++)
	{
		bool		may_be_null = i >= 8 && i <= 10;

		if (PG_ARGISNULL(i) && !may_be_null)
			null_argument(argument_names[i]);
	}
	for (int i = 0; i < NNAMES; i++)
		row.names[i] = PG_GETARG_TEXT_PP(i);
	row.input_records = PG_GETARG_INT64(4);
	row.output_records = PG_GETARG_INT64(5);
	row.total_time = PG_GETARG_FLOAT8(6);
	row.error_count = PG_GETARG_INT64(7);
	read_arrays(&row.latencies, PG_ARGISNULL(8) ? NULL : PG_GETARG_ARRAYTYPE_P(8),
				PG_ARGISNULL(9) ? NULL : PG_GETARG_ARRAYTYPE_P(9));
	row.latencies.sketch = PG_ARGISNULL(10) ? NULL : PG_GETARG_BYTEA_P(10);
	row.custom_metrics = PG_GETARG_JSONB_P(11);
	row.at = PG_GETARG_TIMESTAMPTZ(12);
	row.has_at = row.at != GetCurrentTransactionStartTimestamp();
	check_operator(&row);

	PreventCommandIfReadOnly("metrics_report_operator()");
	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);
	SPI_connect();
	written = write_operators(&store, &row, 1);
	SPI_finish();
	PG_RETURN_BOOL(written > 0);
}

/* The elements of a JSON array of numbers; an error names the array. */
static int
array_elements(const char *key, const JsonbValue *value, JsonbValue **elements)
{
	JsonbIterator *it;
	JsonbValue	element;
	JsonbIteratorToken token;
	int			count = 0;

	if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data) ||
		JsonContainerIsScalar(value->val.binary.data))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be an array, got %s", key, metric_value_text(value)),
				 errhint("Give an array of numbers.")));
	*elements = palloc_array(JsonbValue, Max(JsonContainerSize(value->val.binary.data), 1));
	it = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &element, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM)
			(*elements)[count++] = element;
	}
	return count;
}

static void
read_latencies(Latencies *latencies, const JsonbValue *value)
{
	JsonbValue *elements;

	latencies->given = true;
	latencies->n = array_elements("latencies", value, &elements);
	latencies->values = palloc_array(double, Max(latencies->n, 1));
	for (int i = 0; i < latencies->n; i++)
		latencies->values[i] = member_double("latencies", &elements[i]);
}

static void
read_weights(Latencies *latencies, const JsonbValue *value)
{
	JsonbValue *elements;

	latencies->weighted = true;
	latencies->nweights = array_elements("weights", value, &elements);
	latencies->weights = palloc_array(int64, Max(latencies->nweights, 1));
	for (int i = 0; i < latencies->nweights; i++)
		latencies->weights[i] = member_count("weights", &elements[i]);
}

static bytea *
read_sketch(const JsonbValue *value)
{
	Sketch		sketch;
	const char *problem = sketch_parse(&sketch, member_string("sketch", value));

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("\"sketch\" is not the text of a metrics_sketch"),
				 errdetail_internal("%s", problem),
				 errhint("Give the text form of the type, as a string.")));
	return sketch_to_bytes(&sketch);
}

/* Read a row from an object whose keys are the arguments of metrics_report_operator(). */
static void
read_operator(const JsonbValue *element, OperatorRow *row)
{
	bool		seen[lengthof(argument_names)] = {false};
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	memset(row, 0, sizeof(OperatorRow));
	if (element->type != jbvBinary || !JsonContainerIsObject(element->val.binary.data))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a report must be a JSON object, got %s", metric_value_text(element)),
				 errhint("Its keys are the arguments of metrics_report_operator().")));

	it = JsonbIteratorInit(element->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		int			argument = 0;

		if (token != WJB_KEY)
			continue;
		JsonbIteratorNext(&it, &value, true);
		while (argument < (int) lengthof(argument_names) && !json_string_equals(&key, argument_names[argument]))
			argument++;
		if (argument == lengthof(argument_names))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unknown key \"%.*s\" in a report", key.val.string.len, key.val.string.val),
					 errhint("The keys are the arguments of metrics_report_operator(): run_id, stage_name, operator_name, worker_id, input_records, output_records, total_time, error_count, latencies, weights, sketch, custom_metrics, at.")));
		if (value.type == jbvNull)
			continue;
		seen[argument] = true;

		switch (argument)
		{
			case 4:
				row->input_records = member_count("input_records", &value);
				break;
			case 5:
				row->output_records = member_count("output_records", &value);
				break;
			case 6:
				row->total_time = member_double("total_time", &value);
				break;
			case 7:
				row->error_count = member_count("error_count", &value);
				break;
			case 8:
				read_latencies(&row->latencies, &value);
				break;
			case 9:
				read_weights(&row->latencies, &value);
				break;
			case 10:
				row->latencies.sketch = read_sketch(&value);
				break;
			case 11:
				row->custom_metrics = JsonbValueToJsonb(&value);
				break;
			case 12:
				row->has_at = true;
				row->at = member_time("at", &value);
				break;
			default:
				(void) member_string(argument_names[argument], &value);
				row->names[argument] = cstring_to_text_with_len(value.val.string.val, value.val.string.len);
				break;
		}
	}
	/* The names, the records and the time have no defaults. */
	for (int i = 0; i <= 6; i++)
	{
		if (!seen[i])
			null_argument(argument_names[i]);
	}
	if (row->custom_metrics == NULL)
		row->custom_metrics = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
}

/* Say which report an error is about. */
static void
operator_context(void *arg)
{
	errcontext("report %d of the batch", *(int *) arg);
}

/* metrics_report_operators(reports) → bigint */
Datum
metrics_report_operators(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"reports"};
	MetricsStore store;
	Jsonb	   *batch;
	int			count;
	OperatorRow *rows;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	element;
	int			number = 0;
	int64		written = 0;
	ErrorContextCallback context = {.callback = operator_context,.arg = &number};

	check_not_null(fcinfo, names, lengthof(names));
	batch = PG_GETARG_JSONB_P(0);
	if (!JB_ROOT_IS_ARRAY(batch) || JB_ROOT_IS_SCALAR(batch))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("reports must be a JSON array, got %s", metric_document_text(batch)),
				 errhint("Give an array of objects whose keys are the arguments of metrics_report_operator().")));
	count = JB_ROOT_COUNT(batch);
	rows = palloc_extended(mul_size(sizeof(OperatorRow), Max(count, 1)), MCXT_ALLOC_HUGE);

	PreventCommandIfReadOnly("metrics_report_operators()");
	store_open_since(fcinfo, RowExclusiveLock, LAYOUT_1_4, &store);

	context.previous = error_context_stack;
	error_context_stack = &context;
	it = JsonbIteratorInit(&batch->root);
	while ((token = JsonbIteratorNext(&it, &element, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		CHECK_FOR_INTERRUPTS();
		read_operator(&element, &rows[number++]);
		check_operator(&rows[number - 1]);
	}
	error_context_stack = context.previous;

	if (count > 0)
	{
		SPI_connect();
		written = write_operators(&store, rows, count);
		SPI_finish();
	}
	PG_RETURN_INT64(written);
}
