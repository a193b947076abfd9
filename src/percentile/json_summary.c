/*
 * json_summary.c
 *	  What is known of the keys of many documents: collecting it.
 *
 * Documents of one kind have the same keys, and jsonb keeps the keys of an
 * object together, in front of the values.  So they are compared as a whole
 * with those of the documents before, and the values are taken in order.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "percentile/json_number.h"
#include "percentile/json_summary.h"

typedef struct KeyName
{
	SummaryObject *object;
	const char *text;
	int			len;
} KeyName;

typedef struct KeyEntry
{
	KeyName		name;
	SummaryKey *key;
	uint32		hash;
	char		status;
} KeyEntry;

static uint32
key_name_hash(const KeyName *name)
{
	uint32		hash = hash_bytes((const unsigned char *) name->text, name->len);

	return hash_combine(hash, hash_bytes((const unsigned char *) &name->object,
										 sizeof(name->object)));
}

#define SH_PREFIX summary_keys
#define SH_ELEMENT_TYPE KeyEntry
#define SH_KEY_TYPE KeyName
#define SH_KEY name
#define SH_HASH_KEY(tb, key) key_name_hash(&(key))
#define SH_EQUAL(tb, a, b) \
	((a).object == (b).object && (a).len == (b).len && \
	 memcmp((a).text, (b).text, (a).len) == 0)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* A summary of no documents, whose memory comes from a context. */
Summary *
summary_create(MemoryContext context)
{
	Summary    *summary = MemoryContextAllocZero(context, sizeof(Summary));

	summary->context = context;
	summary->root = MemoryContextAllocZero(context, sizeof(SummaryObject));
	summary->allocated = 8;
	summary->keys = MemoryContextAlloc(context, summary->allocated * sizeof(SummaryKey *));
	summary->by_name = summary_keys_create(context, 8, NULL);
	return summary;
}

/* The objects that stand under a key. */
SummaryObject *
summary_below(Summary *summary, SummaryKey *key)
{
	if (key->below == NULL)
	{
		key->below = MemoryContextAllocZero(summary->context, sizeof(SummaryObject));
		key->below->key = key;
		key->below->depth = key->object->depth + 1;
	}
	return key->below;
}

/* A key of an object; a new one, unless it was there before. */
SummaryKey *
summary_key(Summary *summary, SummaryObject *object, const char *name, int len)
{
	KeyName		key_name = {object, name, len};
	KeyEntry   *entry = summary_keys_lookup(summary->by_name, key_name);
	SummaryKey *key;
	char	   *copy;
	bool		found;

	if (entry != NULL)
		return entry->key;

	if (summary->nkeys >= SUMMARY_MAX_KEYS || summary->names_size + len > SUMMARY_MAX_NAMES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 summary->nkeys >= SUMMARY_MAX_KEYS ?
				 errmsg("documents have more than %d different keys", SUMMARY_MAX_KEYS) :
				 errmsg("keys of documents are longer than %d bytes together", SUMMARY_MAX_NAMES),
				 errhint("Summarise a part of the documents, metrics_summary(metrics, '{outer,inner}'), or one key, metrics_percentiles(metrics, '{outer,inner,key}').")));

	if (summary->nkeys == summary->allocated)
	{
		summary->allocated *= 2;
		summary->keys = repalloc(summary->keys, summary->allocated * sizeof(SummaryKey *));
	}
	copy = MemoryContextAlloc(summary->context, len + 1);
	memcpy(copy, name, len);
	key = MemoryContextAllocZero(summary->context, sizeof(SummaryKey));
	key->name = copy;
	key->len = len;
	key->object = object;
	key->index = summary->nkeys;

	/* Copied before: an entry, once there, must be whole. */
	key_name.text = copy;
	entry = summary_keys_insert(summary->by_name, key_name, &found);
	entry->key = key;
	summary->keys[summary->nkeys++] = key;
	summary->names_size += len;
	return key;
}

/* The numbers of a key, to add to. */
SummaryNumbers *
summary_numbers(Summary *summary, SummaryKey *key)
{
	if (key->numbers == NULL)
	{
		SummaryNumbers *numbers = MemoryContextAllocZero(summary->context, sizeof(SummaryNumbers));

		sketch_init(&numbers->sketch, SKETCH_DEFAULT_ERROR);
		key->numbers = numbers;
	}
	return key->numbers;
}

/* Give the sketch what it has not taken yet. */
void
summary_flush(Summary *summary, SummaryNumbers *numbers)
{
	MemoryContext old_context;

	if (numbers->npending == 0)
		return;
	old_context = MemoryContextSwitchTo(summary->context);
	if (!sketch_add(&numbers->sketch, numbers->pending, numbers->npending))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("bigint out of range")));
	numbers->npending = 0;
	MemoryContextSwitchTo(old_context);
}

static inline void
add_number(Summary *summary, SummaryKey *key, double number)
{
	SummaryNumbers *numbers = key->numbers;

	if (unlikely(numbers == NULL))
	{
		numbers = summary_numbers(summary, key);
		key->types |= SUMMARY_NUMBER;
	}
	numbers->pending[numbers->npending++] = number;
	if (numbers->npending == SKETCH_BATCH)
		summary_flush(summary, numbers);
}

static inline void
skip_value(SummaryKey *key, int type)
{
	key->types |= type;
	key->skipped++;
}

/* Does an object have the keys of a shape? */
static inline bool
shape_fits(const SummaryShape *shape, const JsonbContainer *container, uint32 npairs)
{
	return shape->npairs == npairs &&
		memcmp(container->children, shape->entries, npairs * sizeof(JEntry)) == 0 &&
		memcmp(&container->children[npairs * 2], shape->text, shape->text_size) == 0;
}

/* Fill a shape from an object. */
static void
make_shape(Summary *summary, SummaryObject *object, JsonbContainer *container, SummaryShape *shape)
{
	MemoryContext old_context = MemoryContextSwitchTo(summary->context);
	uint32		npairs = JsonContainerSize(container);
	const char *text = (const char *) &container->children[npairs * 2];
	uint32		end = 0;

	shape->keys = palloc_array(SummaryKey *, npairs);
	for (uint32 i = 0; i < npairs; i++)
	{
		uint32		start = end;

		JBE_ADVANCE_OFFSET(end, container->children[i]);
		shape->keys[i] = summary_key(summary, object, text + start, end - start);
	}
	shape->text_size = end;
	shape->text = palloc(end + 1);
	memcpy(shape->text, text, end);
	shape->entries = palloc_array(JEntry, npairs);
	memcpy(shape->entries, container->children, npairs * sizeof(JEntry));
	shape->npairs = npairs;
	MemoryContextSwitchTo(old_context);
}

/* The shape of an object that is not of the shape seen last; it comes first. */
static void
find_shape(Summary *summary, SummaryObject *object, JsonbContainer *container)
{
	SummaryShape *shapes = object->shapes;
	SummaryShape found;
	int			i;

	for (i = 1; i < object->nshapes; i++)
	{
		if (shape_fits(&shapes[i], container, JsonContainerSize(container)))
			break;
	}
	if (i < object->nshapes)
		found = shapes[i];
	else
	{
		make_shape(summary, object, container, &found);
		if (object->nshapes < SUMMARY_MAX_SHAPES)
			i = object->nshapes++;
		else
		{
			i = SUMMARY_MAX_SHAPES - 1;
			pfree(shapes[i].keys);
			pfree(shapes[i].text);
			pfree(shapes[i].entries);
		}
	}
	memmove(&shapes[1], &shapes[0], i * sizeof(SummaryShape));
	shapes[0] = found;
}

/* Add a nested object or array. */
static void
add_container(Summary *summary, SummaryKey *key, JsonbContainer *container)
{
	if (!JsonContainerIsObject(container))
		skip_value(key, SUMMARY_ARRAY);
	else if (JsonContainerSize(container) == 0 || key->object->depth + 1 >= SUMMARY_MAX_DEPTH)
		skip_value(key, SUMMARY_OBJECT);
	else
	{
		key->opened++;
		summary_add_object(summary, summary_below(summary, key), container);
	}
}

/* Add the values of an object: to the root, those of a document. */
void
summary_add_object(Summary *summary, SummaryObject *object, JsonbContainer *container)
{
	uint32		npairs = JsonContainerSize(container);
	const JEntry *entries = &container->children[npairs];
	char	   *data = (char *) &container->children[npairs * 2];
	SummaryShape *shape;
	uint32		end;

	if (npairs == 0)
		return;
	if (object->nshapes == 0 || !shape_fits(&object->shapes[0], container, npairs))
		find_shape(summary, object, container);

	shape = &object->shapes[0];
	end = shape->text_size;
	for (uint32 i = 0; i < npairs; i++)
	{
		SummaryKey *key = shape->keys[i];
		uint32		start = end;
		double		number;

		JBE_ADVANCE_OFFSET(end, entries[i]);
		switch (entries[i] & JENTRY_TYPEMASK)
		{
			case JENTRY_ISNUMERIC:
				if (numeric_to_float8((Numeric) (data + INTALIGN(start)), &number))
					add_number(summary, key, number);
				else
					skip_value(key, SUMMARY_NUMBER);
				break;
			case JENTRY_ISSTRING:
				if (json_special_number(data + start, end - start, &number))
					add_number(summary, key, number);
				else
					skip_value(key, SUMMARY_STRING);
				break;
			case JENTRY_ISCONTAINER:
				add_container(summary, key, (JsonbContainer *) (data + INTALIGN(start)));
				break;
			case JENTRY_ISNULL:
				key->types |= SUMMARY_NULL;
				break;
			default:
				skip_value(key, SUMMARY_BOOLEAN);
				break;
		}
	}
}

/* Add what another summary knows, which keeps nothing that it did not have. */
void
summary_merge(Summary *summary, Summary *other)
{
	SummaryKey **mapped = palloc_array(SummaryKey *, other->nkeys + 1);

	for (int i = 0; i < other->nkeys; i++)
	{
		SummaryKey *from = other->keys[i];
		SummaryObject *object = from->object->key == NULL ? summary->root :
			summary_below(summary, mapped[from->object->key->index]);
		SummaryKey *to = summary_key(summary, object, from->name, from->len);

		mapped[i] = to;
		to->types |= from->types;
		to->skipped += from->skipped;
		to->opened += from->opened;
		if (from->numbers != NULL)
		{
			SummaryNumbers *numbers = summary_numbers(summary, to);
			MemoryContext old_context;

			summary_flush(summary, numbers);
			summary_flush(other, from->numbers);
			old_context = MemoryContextSwitchTo(summary->context);
			if (!sketch_merge(&numbers->sketch, &from->numbers->sketch))
				ereport(ERROR,
						(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						 errmsg("bigint out of range")));
			MemoryContextSwitchTo(old_context);
		}
	}
	pfree(mapped);
}
