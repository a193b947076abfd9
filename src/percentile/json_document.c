/*
 * json_document.c
 *	  Reading jsonb arguments, row after row.
 *
 * Paths mean what they mean to the operator #>: a step is the key of an object
 * or the number of an array's element, counted from 0 or, if negative, from
 * the end; with a NULL in it a path leads nowhere.
 */
#include "postgres.h"

#include <errno.h>
#include <limits.h>

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "percentile/json_document.h"
#include "percentile/json_number.h"

PG_FUNCTION_INFO_V1(metrics_number);

/* The reader of a function, made at its first call; lives as long as flinfo. */
JsonReader *
json_reader(FunctionCallInfo fcinfo)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;

	if (flinfo->fn_extra == NULL)
	{
		JsonReader *reader = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(JsonReader));

		reader->context = AllocSetContextCreate(flinfo->fn_mcxt, "metrics_ext path",
												ALLOCSET_SMALL_SIZES);
		reader->below = *flinfo;
		flinfo->fn_extra = reader;
	}
	return flinfo->fn_extra;
}

/*
 * A document, detoasted.  Small ones, which lie unaligned in their rows, are
 * copied to the reader: such a document is gone at the next call.
 */
Jsonb *
json_reader_document(JsonReader *reader, Datum document)
{
	struct varlena *raw = (struct varlena *) DatumGetPointer(document);

	if (VARATT_IS_SHORT(raw) && !VARATT_IS_EXTERNAL(raw))
	{
		Size		size = VARSIZE_SHORT(raw) - VARHDRSZ_SHORT;

		SET_VARSIZE(reader->document.bytes, size + VARHDRSZ);
		memcpy(VARDATA(reader->document.bytes), VARDATA_SHORT(raw), size);
		return (Jsonb *) reader->document.bytes;
	}
	return (Jsonb *) pg_detoast_datum(raw);
}

/* Give back what a document took, given the datum that it is of. */
void
json_reader_release(const JsonReader *reader, Jsonb *document, Datum datum)
{
	if ((const char *) document != reader->document.bytes &&
		(Pointer) document != DatumGetPointer(datum))
		pfree(document);
}

/* Does a step read as an integer, all of it? */
static bool
step_index(const char *text, int *index)
{
	char	   *end;
	long		number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || number < INT_MIN || number > INT_MAX)
		return false;
	*index = (int) number;
	return true;
}

/* Prepare a path, unless it is the one that is prepared. */
void
json_reader_path(JsonReader *reader, Datum path)
{
	ArrayType  *array = DatumGetArrayTypeP(path);
	MemoryContext old_context;
	Datum	   *elements;

	if (reader->path != NULL && VARSIZE(reader->path) == VARSIZE(array) &&
		memcmp(reader->path, array, VARSIZE(array)) == 0)
		return;

	reader->path = NULL;
	MemoryContextReset(reader->context);
	old_context = MemoryContextSwitchTo(reader->context);
	array = DatumGetArrayTypePCopy(PointerGetDatum(array));
	reader->leads_nowhere = array_contains_nulls(array);
	reader->nsteps = 0;
	if (!reader->leads_nowhere)
	{
		deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, NULL, &reader->nsteps);
		reader->steps = palloc_array(JsonStep, reader->nsteps + 1);
	}
	for (int i = 0; i < reader->nsteps; i++)
	{
		JsonStep   *step = &reader->steps[i];
		char	   *key = TextDatumGetCString(elements[i]);

		step->key = key;
		step->len = strlen(key);
		step->is_index = step_index(key, &step->index);
	}
	MemoryContextSwitchTo(old_context);
	reader->path = array;
}

/*
 * The value at the prepared path of a document; false if there is none.  It
 * points into the document.
 */
bool
json_reader_find(const JsonReader *reader, Jsonb *document, JsonbValue *value)
{
	JsonbContainer *container = &document->root;

	if (reader->leads_nowhere)
		return false;
	if (reader->nsteps == 0)
	{
		if (JsonContainerIsScalar(container))
			return JsonbExtractScalar(container, value);
		value->type = jbvBinary;
		value->val.binary.data = container;
		value->val.binary.len = VARSIZE(document) - VARHDRSZ;
		return true;
	}

	for (int i = 0; i < reader->nsteps; i++)
	{
		const JsonStep *step = &reader->steps[i];

		if (i > 0)
		{
			if (value->type != jbvBinary)
				return false;
			container = value->val.binary.data;
		}
		if (JsonContainerIsObject(container))
		{
			if (getKeyJsonValueFromContainer(container, step->key, step->len, value) == NULL)
				return false;
		}
		else
		{
			int64		index = step->index;
			JsonbValue *element;

			if (!step->is_index || JsonContainerIsScalar(container))
				return false;
			if (index < 0)
				index += JsonContainerSize(container);
			if (index < 0 || index >= JsonContainerSize(container))
				return false;
			element = getIthJsonbValueFromContainer(container, (uint32) index);
			*value = *element;
			pfree(element);
		}
	}
	return true;
}

/*
 * The number that stands in the document that is argument argno, at the path
 * that is the next; false if there is none, or either is NULL.
 */
bool
json_argument_number(FunctionCallInfo fcinfo, int argno, double *number)
{
	JsonReader *reader;
	Jsonb	   *document;
	JsonbValue	value;
	bool		found;

	if (PG_ARGISNULL(argno) || PG_ARGISNULL(argno + 1))
		return false;
	reader = json_reader(fcinfo);
	json_reader_path(reader, PG_GETARG_DATUM(argno + 1));
	document = json_reader_document(reader, PG_GETARG_DATUM(argno));
	found = json_reader_find(reader, document, &value) && json_number(&value, number);
	json_reader_release(reader, document, PG_GETARG_DATUM(argno));
	return found;
}

/* metrics_number(metrics jsonb, path text[]) → float8; strict */
Datum
metrics_number(PG_FUNCTION_ARGS)
{
	double		number;

	if (!json_argument_number(fcinfo, 0, &number))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(number);
}
