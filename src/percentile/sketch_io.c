/*
 * sketch_io.c
 *	  Type metrics_sketch: text, binary and bytea.
 *
 * The stored form of sketch_codec.c is what the varlena holds, what goes over
 * the wire in binary, and what a cast to bytea shows; the cast costs nothing.
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"

#include "percentile/sketch_sql.h"

PG_FUNCTION_INFO_V1(metrics_sketch_in);
PG_FUNCTION_INFO_V1(metrics_sketch_out);
PG_FUNCTION_INFO_V1(metrics_sketch_recv);
PG_FUNCTION_INFO_V1(metrics_sketch_send);
PG_FUNCTION_INFO_V1(metrics_sketch_from_bytea);

static void
corrupted(const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("stored sketch is corrupted"),
			 errdetail_internal("%s", problem)));
}

/*
 * Decode a value of type metrics_sketch.  The buckets are in the current memory
 * context.  It was validated when it came in, so a problem is corruption.
 */
void
sketch_from_bytes(Sketch *sketch, const bytea *bytes)
{
	const char *problem = sketch_decode(sketch, (const unsigned char *) VARDATA_ANY(bytes),
										VARSIZE_ANY_EXHDR(bytes));

	if (problem != NULL)
		corrupted(problem);
}

/* Merge a value of type metrics_sketch into a sketch, or report why not. */
void
sketch_merge_bytes(Sketch *sketch, const bytea *bytes)
{
	double		relative_error;
	const char *problem;

	switch (sketch_merge_encoded(sketch, (const unsigned char *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes),
								 &relative_error, &problem))
	{
		case SKETCH_MERGED:
			break;
		case SKETCH_DIFFERS:
			sketch_require_same_error(sketch->relative_error, relative_error);
			break;
		case SKETCH_OVERFLOWS:
			sketch_count_overflow();
			break;
		case SKETCH_MALFORMED:
			corrupted(problem);
			break;
	}
}

/* Encode a sketch, in the current memory context. */
bytea *
sketch_to_bytes(const Sketch *sketch)
{
	bytea	   *bytes = palloc(VARHDRSZ + sketch_encoded_size(sketch));
	size_t		size = sketch_encode(sketch, (unsigned char *) VARDATA(bytes));

	SET_VARSIZE(bytes, VARHDRSZ + size);
	return bytes;
}

void
sketch_require_same_error(double one, double other)
{
	if (one != other)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sketches of relative error %.15g and %.15g cannot be merged",
						Min(one, other), Max(one, other)),
				 errhint("Make them with the same relative error.")));
}

void
sketch_count_overflow(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("count of a sketch is out of range"),
			 errhint("Weights of one sketch add up to at most 9223372036854775807.")));
}

Datum
metrics_sketch_in(PG_FUNCTION_ARGS)
{
	const char *problem;
	Sketch		sketch;

	problem = sketch_parse(&sketch, PG_GETARG_CSTRING(0));
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s", "metrics_sketch"),
				 errdetail_internal("%s", problem)));
	PG_RETURN_BYTEA_P(sketch_to_bytes(&sketch));
}

Datum
metrics_sketch_out(PG_FUNCTION_ARGS)
{
	Sketch		sketch;

	PG_GETARG_SKETCH(&sketch, 0);
	PG_RETURN_CSTRING(sketch_print(&sketch));
}

/* A value of the type from bytes that nobody has looked at. */
static bytea *
validated(const unsigned char *data, size_t length)
{
	Sketch		sketch;
	const char *problem = sketch_decode(&sketch, data, length);
	bytea	   *result;

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary form of type %s", "metrics_sketch"),
				 errdetail_internal("%s", problem)));
	sketch_free(&sketch);
	result = palloc(VARHDRSZ + length);
	SET_VARSIZE(result, VARHDRSZ + length);
	memcpy(VARDATA(result), data, length);
	return result;
}

Datum
metrics_sketch_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int			length = buffer->len - buffer->cursor;
	const char *data = pq_getmsgbytes(buffer, length);
	bytea	   *result = validated((const unsigned char *) data, length);

	pq_getmsgend(buffer);
	PG_RETURN_BYTEA_P(result);
}

Datum
metrics_sketch_send(PG_FUNCTION_ARGS)
{
	PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

Datum
metrics_sketch_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	PG_RETURN_BYTEA_P(validated((const unsigned char *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)));
}
