/*
 * json_document.h
 *	  Reading jsonb arguments, row after row.
 */
#ifndef METRICS_JSON_DOCUMENT_H
#define METRICS_JSON_DOCUMENT_H

#include "fmgr.h"
#include "utils/array.h"
#include "utils/jsonb.h"

/* A step down: the key of an object, or the number of an element. */
typedef struct JsonStep
{
	const char *key;
	int			len;
	bool		is_index;		/* key reads as a number, too */
	int			index;			/* negative: from the end */
} JsonStep;

/*
 * What a function keeps from call to call: its path argument, prepared, and
 * room for a document to be aligned in.
 */
typedef struct JsonReader
{
	MemoryContext context;		/* of path and steps */
	ArrayType  *path;			/* as it was prepared from */
	bool		leads_nowhere;
	int			nsteps;
	JsonStep   *steps;
	union
	{
		uint32		align;
		char		bytes[VARATT_SHORT_MAX + VARHDRSZ];
	}			document;
	FmgrInfo	below;			/* for what is called with the number found */
} JsonReader;

extern JsonReader *json_reader(FunctionCallInfo fcinfo);
extern Jsonb *json_reader_document(JsonReader *reader, Datum document);
extern void json_reader_release(const JsonReader *reader, Jsonb *document, Datum datum);
extern void json_reader_path(JsonReader *reader, Datum path);
extern bool json_reader_find(const JsonReader *reader, Jsonb *document, JsonbValue *value);
extern bool json_argument_number(FunctionCallInfo fcinfo, int argno, double *number);

#endif							/* METRICS_JSON_DOCUMENT_H */
