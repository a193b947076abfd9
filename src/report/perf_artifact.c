/*
 * perf_artifact.c
 *	  What a performance test reports: PERFHERDER_DATA, read and checked.
 *
 * An artifact is good as a whole or not at all.  What may stand in it is said
 * by tables, one for each kind of object, after Perfherder's JSON schema; keys
 * that they do not have are ignored.  An error names the place in the document.
 */
#include "postgres.h"

#include <math.h>

#include "lib/qunique.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "compat.h"
#include "percentile/json_number.h"
#include "report/perf_artifact.h"
#include "report/value.h"

typedef enum FieldKind
{
	FIELD_STRING,				/* char * */
	FIELD_NUMBER,				/* PerfNumber */
	FIELD_INTEGER,				/* PerfNumber */
	FIELD_BOOLEAN,				/* PerfFlag */
	FIELD_STRINGS,				/* PerfStrings */
	FIELD_NUMBERS,				/* PerfNumbers */
} FieldKind;

/* A member of an object, and where it goes. */
typedef struct Field
{
	const char *name;
	FieldKind	kind;
	size_t		offset;
	double		min;			/* of numbers, and of the characters of strings */
	double		max;
	bool		required;
	int			max_items;		/* of strings */
	const char *form;			/* characters that strings consist of, or any */
	const char *const *choices; /* all values of a string, up to a NULL, or any */
} Field;

#define MAX_VALUE 1e12
#define LATEST_SECOND 253402300799.0	/* the end of the year 9999 */
#define MAX_OPTION_LENGTH 100
#define LONG_OPTION_LENGTH 45	/* only one extra option may be longer */

static const char *const applications[] = {"firefox", "chrome", "chrome-m", "fennec", "geckoview",
	"refbrow", "fenix", "focus", "safari", "safari-tp", "custom-car", "cstm-car-m", NULL};
static const char *const change_types[] = {"absolute", "percentage", NULL};
static const char *const severities[] = {"critical", "subcritical", "normal", NULL};
static const char tag_form[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

static const Field framework_fields[] = {
	{.name = "name", FIELD_STRING, offsetof(PerfArtifact, framework), 1, 255, .required = true},
};

static const Field application_fields[] = {
	{.name = "name", FIELD_STRING, offsetof(PerfArtifact, application), 1, 10, .required = true, .choices = applications},
	{.name = "version", FIELD_STRING, offsetof(PerfArtifact, application_version), 0, 40},
};

static const Field os_fields[] = {
	{.name = "name", FIELD_STRING, offsetof(PerfArtifact, os_name), 1, 100},
	{.name = "platform_version", FIELD_STRING, offsetof(PerfArtifact, platform_version), 1, 100},
};

static const Field artifact_fields[] = {
	{.name = "pushTimestamp", FIELD_NUMBER, offsetof(PerfArtifact, push_timestamp), 0, LATEST_SECOND},
};

static const Field test_fields[] = {
	{.name = "name", FIELD_STRING, offsetof(PerfTest, name), 1, 80, .required = true},
	{.name = "publicName", FIELD_STRING, offsetof(PerfTest, public_name), 0, 30},
	{.name = "value", FIELD_NUMBER, offsetof(PerfTest, value), -MAX_VALUE, MAX_VALUE},
	{.name = "replicates", FIELD_NUMBERS, offsetof(PerfTest, replicates), -MAX_VALUE, MAX_VALUE},
	{.name = "unit", FIELD_STRING, offsetof(PerfTest, unit), 1, 20},
	{.name = "lowerIsBetter", FIELD_BOOLEAN, offsetof(PerfTest, lower_is_better)},
	{.name = "shouldAlert", FIELD_BOOLEAN, offsetof(PerfTest, should_alert)},
	{.name = "monitor", FIELD_BOOLEAN, offsetof(PerfTest, monitor)},
	{.name = "alertThreshold", FIELD_NUMBER, offsetof(PerfTest, alert_threshold), 0, HUGE_VAL},
	{.name = "alertSeverity", FIELD_STRING, offsetof(PerfTest, alert_severity), 1, 80, .choices = severities},
	{.name = "alertChangeType", FIELD_STRING, offsetof(PerfTest, alert_change_type), 1, 80, .choices = change_types},
	{.name = "minBackWindow", FIELD_INTEGER, offsetof(PerfTest, min_back_window), 1, 255},
	{.name = "maxBackWindow", FIELD_INTEGER, offsetof(PerfTest, max_back_window), 1, 255},
	{.name = "foreWindow", FIELD_INTEGER, offsetof(PerfTest, fore_window), 1, 255},
	{.name = "alertNotifyEmails", FIELD_STRINGS, offsetof(PerfTest, alert_notify_emails), 1, 100, .max_items = 8},
};

static const Field suite_fields[] = {
	{.name = "tags", FIELD_STRINGS, offsetof(PerfSuite, tags), 1, 24, .max_items = 14, .form = tag_form},
	{.name = "extraOptions", FIELD_STRINGS, offsetof(PerfSuite, extra_options), 1, MAX_OPTION_LENGTH, .max_items = 8},
};

/* The error for a place in the document: what should be there, and what is. */
pg_noreturn static void
bad_artifact(const char *path, const char *expected, const JsonbValue *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid performance artifact: %s must be %s, got %s", path, expected,
					value ? metric_value_text(value) : "nothing"),
			 errhint("Nothing of the artifact was stored; correct it and report it again.")));
}

/* What a field expects, for people. */
static const char *
expectation(const Field *field)
{
	StringInfoData buf;

	switch (field->kind)
	{
		case FIELD_NUMBER:
			if (isinf(field->max))
				return psprintf("a number from %g on", field->min);
			return psprintf("a number between %.15g and %.15g", field->min, field->max);
		case FIELD_INTEGER:
			return psprintf("a whole number between %g and %g", field->min, field->max);
		case FIELD_BOOLEAN:
			return "true or false";
		case FIELD_NUMBERS:
			return psprintf("an array of numbers between %g and %g", field->min, field->max);
		case FIELD_STRINGS:
			return psprintf("an array of at most %d different strings of %g to %g %s", field->max_items,
							field->min, field->max, field->form ? "letters, digits and hyphens" : "characters");
		case FIELD_STRING:
			break;
	}
	if (field->choices == NULL)
		return psprintf("a string of %g to %g characters", field->min, field->max);
	initStringInfo(&buf);
	for (const char *const *choice = field->choices; *choice; choice++)
		appendStringInfo(&buf, "%s\"%s\"", choice == field->choices ? "one of " : ", ", *choice);
	return buf.data;
}

static int
compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Sort strings by their bytes, and leave each once; returns whether it was so before. */
bool
perf_strings_sort(PerfStrings *strings)
{
	int			given = strings->count;

	qsort(strings->items, given, sizeof(char *), compare_strings);
	strings->count = qunique(strings->items, given, sizeof(char *), compare_strings);
	return strings->count == given;
}

/* Order by the strings one after the other. */
int
perf_strings_compare(const PerfStrings *a, const PerfStrings *b)
{
	for (int i = 0; i < Min(a->count, b->count); i++)
	{
		int			order = strcmp(a->items[i], b->items[i]);

		if (order != 0)
			return order;
	}
	return a->count - b->count;
}

static bool
read_string(const Field *field, const JsonbValue *value, char **result)
{
	int			length;

	if (value->type != jbvString)
		return false;
	length = pg_mbstrlen_with_len(value->val.string.val, value->val.string.len);
	*result = pnstrdup(value->val.string.val, value->val.string.len);
	if (length < field->min || length > field->max ||
		(field->form && strspn(*result, field->form) != (size_t) value->val.string.len))
		return false;
	if (field->choices == NULL)
		return true;
	for (const char *const *choice = field->choices; *choice; choice++)
	{
		if (strcmp(*choice, *result) == 0)
			return true;
	}
	return false;
}

static bool
read_number(const Field *field, const JsonbValue *value, double *result)
{
	return value->type == jbvNumeric &&
		json_number(value, result) &&
		*result >= field->min && *result <= field->max &&
		!isinf(*result) &&
		(field->kind != FIELD_INTEGER || *result == rint(*result));
}

/* The elements of an array; NULL if the value is none. */
static JsonbValue *
read_array(const JsonbValue *value, int *count)
{
	JsonbContainer *array = value->type == jbvBinary ? value->val.binary.data : NULL;
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	element;
	JsonbValue *elements;

	if (array == NULL || !JsonContainerIsArray(array) || JsonContainerIsScalar(array))
		return NULL;
	elements = palloc_array(JsonbValue, JsonContainerSize(array) + 1);
	*count = 0;
	it = JsonbIteratorInit(array);
	while ((token = JsonbIteratorNext(&it, &element, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM)
			elements[(*count)++] = element;
	}
	return elements;
}

static bool
read_strings(const Field *field, const JsonbValue *value, PerfStrings *result)
{
	JsonbValue *elements = read_array(value, &result->count);

	if (elements == NULL || result->count > field->max_items)
		return false;
	result->items = palloc_array(char *, result->count + 1);
	for (int i = 0; i < result->count; i++)
	{
		if (!read_string(field, &elements[i], &result->items[i]))
			return false;
	}
	return perf_strings_sort(result);
}

static void
read_numbers(const Field *field, const char *path, const JsonbValue *value, PerfNumbers *result)
{
	JsonbValue *elements = read_array(value, &result->count);

	if (elements == NULL)
		bad_artifact(path, expectation(field), value);
	result->items = palloc_array(double, result->count + 1);
	for (int i = 0; i < result->count; i++)
	{
		if (!read_number(field, &elements[i], &result->items[i]))
			bad_artifact(psprintf("%s[%d]", path, i),
						 psprintf("a number between %g and %g", field->min, field->max), &elements[i]);
	}
}

/* Read one value into its place. */
static void
read_field(const Field *field, const char *path, const JsonbValue *value, char *target)
{
	PerfNumber *number = (PerfNumber *) target;
	bool		good = false;

	switch (field->kind)
	{
		case FIELD_STRING:
			good = read_string(field, value, (char **) target);
			break;
		case FIELD_NUMBER:
		case FIELD_INTEGER:
			good = number->given = read_number(field, value, &number->value);
			break;
		case FIELD_BOOLEAN:
			good = value->type == jbvBool;
			if (good)
				*(PerfFlag *) target = value->val.boolean ? FLAG_TRUE : FLAG_FALSE;
			break;
		case FIELD_STRINGS:
			good = read_strings(field, value, (PerfStrings *) target);
			break;
		case FIELD_NUMBERS:
			read_numbers(field, path, value, (PerfNumbers *) target);
			return;
	}
	if (!good)
		bad_artifact(path, expectation(field), value);
}

/* A member of an object; false if it is missing or null. */
static bool
get_member(JsonbContainer *object, const char *name, JsonbValue *value)
{
	return getKeyJsonValueFromContainer(object, name, strlen(name), value) != NULL &&
		value->type != jbvNull;
}

/* Read the members of an object into a structure. */
static void
read_fields(JsonbContainer *object, const char *path, const Field *fields, int nfields, void *target)
{
	for (int i = 0; i < nfields; i++)
	{
		const Field *field = &fields[i];
		JsonbValue	value;

		if (get_member(object, field->name, &value))
			read_field(field, psprintf("%s.%s", path, field->name), &value, (char *) target + field->offset);
		else if (field->required)
			bad_artifact(psprintf("%s.%s", path, field->name), expectation(field), NULL);
	}
}

/* A value that must be an object. */
static JsonbContainer *
as_object(const JsonbValue *value, const char *path)
{
	if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
		bad_artifact(path, "an object", value);
	return value->val.binary.data;
}

/* The same for a member that may be missing. */
static void
read_object(JsonbContainer *parent, const char *path, const char *name, bool required,
			const Field *fields, int nfields, void *target)
{
	JsonbValue	value;

	path = psprintf("%s.%s", path, name);
	if (get_member(parent, name, &value))
		read_fields(as_object(&value, path), path, fields, nfields, target);
	else if (required)
		bad_artifact(path, "an object", NULL);
}

/* The elements of a member that must be an array; sets the path to it. */
static JsonbValue *
required_array(JsonbContainer *object, const char **path, const char *name, int *count)
{
	JsonbValue	value;
	JsonbValue *elements;
	bool		found = get_member(object, name, &value);

	*path = psprintf("%s.%s", *path, name);
	elements = found ? read_array(&value, count) : NULL;
	if (elements == NULL)
		bad_artifact(*path, "an array", found ? &value : NULL);
	return elements;
}

static int
compare_tests(const void *a, const void *b)
{
	const PerfTest *test_a = a;
	const PerfTest *test_b = b;

	return strcmp(test_a->name, test_b->name);
}

static int
compare_suites(const void *a, const void *b)
{
	const PerfSuite *suite_a = a;
	const PerfSuite *suite_b = b;
	int			order = strcmp(suite_a->test.name, suite_b->test.name);

	return order != 0 ? order : perf_strings_compare(&suite_a->extra_options, &suite_b->extra_options);
}

/* Sort an array without changing the order of equal elements. */
static void
sort_stably(void *base, int count, size_t size, int (*compare) (const void *, const void *))
{
	char	   *elements = base;
	char	   *moved = palloc(size);

	/* Insertion by binary search: artifacts have few, and they are mostly sorted. */
	for (int i = 1; i < count; i++)
	{
		int			low = 0;
		int			high = i;

		while (low < high)
		{
			int			middle = (low + high) / 2;

			if (compare(elements + middle * size, elements + i * size) <= 0)
				low = middle + 1;
			else
				high = middle;
		}
		memcpy(moved, elements + i * size, size);
		memmove(elements + (low + 1) * size, elements + low * size, (i - low) * size);
		memcpy(elements + low * size, moved, size);
	}
	pfree(moved);
}

/* At most one extra option may be long, or all of them would not fit anywhere. */
static void
check_extra_options(const PerfStrings *options, const char *path)
{
	int			long_options = 0;

	for (int i = 0; i < options->count; i++)
		long_options += pg_mbstrlen(options->items[i]) > LONG_OPTION_LENGTH;
	if (long_options > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid performance artifact: %s.extraOptions has %d strings of more than %d characters",
						path, long_options, LONG_OPTION_LENGTH),
				 errhint("Only one may be so long.  Nothing of the artifact was stored; correct it and report it again.")));
}

static void
read_suite(PerfSuite *suite, const JsonbValue *value, const char *path)
{
	JsonbContainer *object = as_object(value, path);
	JsonbValue *elements;

	read_fields(object, path, test_fields, lengthof(test_fields), &suite->test);
	read_fields(object, path, suite_fields, lengthof(suite_fields), suite);
	check_extra_options(&suite->extra_options, path);

	elements = required_array(object, &path, "subtests", &suite->nsubtests);
	suite->subtests = palloc0_array(PerfTest, suite->nsubtests + 1);
	for (int i = 0; i < suite->nsubtests; i++)
	{
		const char *subtest_path = psprintf("%s[%d]", path, i);
		PerfTest   *subtest = &suite->subtests[i];

		CHECK_FOR_INTERRUPTS();
		read_fields(as_object(&elements[i], subtest_path), subtest_path,
					test_fields, lengthof(test_fields), subtest);
		if (!subtest->value.given)
			bad_artifact(psprintf("%s.value", subtest_path), expectation(&test_fields[2]), NULL);
	}
	sort_stably(suite->subtests, suite->nsubtests, sizeof(PerfTest), compare_tests);
}

/* Read an artifact, or fail with what is wrong with it. */
void
perf_artifact_read(PerfArtifact *artifact, Jsonb *document)
{
	JsonbValue	value;
	JsonbContainer *object;
	JsonbValue *elements;
	const char *path = "$";

	memset(artifact, 0, sizeof(PerfArtifact));
	JsonbToJsonbValue(document, &value);
	object = as_object(&value, path);
	read_object(object, path, "framework", true, framework_fields, lengthof(framework_fields), artifact);
	read_object(object, path, "application", false, application_fields, lengthof(application_fields), artifact);
	read_object(object, path, "os", false, os_fields, lengthof(os_fields), artifact);
	read_fields(object, path, artifact_fields, lengthof(artifact_fields), artifact);

	elements = required_array(object, &path, "suites", &artifact->nsuites);
	artifact->suites = palloc0_array(PerfSuite, artifact->nsuites + 1);
	for (int i = 0; i < artifact->nsuites; i++)
		read_suite(&artifact->suites[i], &elements[i], psprintf("%s[%d]", path, i));
	sort_stably(artifact->suites, artifact->nsuites, sizeof(PerfSuite), compare_suites);
}

/* How many measurements an artifact has. */
int
perf_artifact_measurements(const PerfArtifact *artifact)
{
	int			count = 0;

	for (int i = 0; i < artifact->nsuites; i++)
		count += artifact->suites[i].nsubtests + artifact->suites[i].test.value.given;
	return count;
}
