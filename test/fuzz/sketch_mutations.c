/*
 * sketch_mutations.c
 *	  The sketch's parsers on a given number of mutated forms, the same ones in
 *	  every run.  With a folder as second argument, writes the seeds there
 *	  instead, for libFuzzer to begin with.
 */
#include "postgres.h"

#include <math.h>
#include <stdio.h>

#include "percentile/sketch.h"
#include "sketch.h"

#undef printf
#undef fprintf
#undef snprintf

#define NSEEDS 10
#define MAX_SIZE 200000

static uint64 state = 1;

/* splitmix64 */
static uint64
draw(uint64 below)
{
	uint64		z = (state += UINT64CONST(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % below;
}

static double
seed_value(int seed, int i)
{
	switch (seed)
	{
		case 1:
			return 42;
		case 2:
			return i % 5 - 2;
		case 3:
			return pow(10, i % 600 - 300);
		case 4:
			return (i % 7 == 0) ? NAN : (i % 5 == 0) ? INFINITY : (i % 3 == 0) ? -INFINITY : i;
		case 5:
			return i * 4.9406564584124654e-324;
		case 6:
			return (i % 2 == 0 ? -1 : 1) * 1e300 / i;
		case 7:
			return pow(1.3, i % 2600 - 1300);
		default:
			return i;
	}
}

static void
make_seed(Sketch *sketch, int seed)
{
	static const int sizes[NSEEDS] = {0, 1, 5, 40, 30, 100, 60, 6000, 20, 1000};

	sketch_init(sketch, seed == 7 ? 0.001 : seed == 8 ? 0.1 : 0.01);
	for (int i = 1; i <= sizes[seed]; i++)
	{
		double		value = seed_value(seed, i);

		if (seed == 8)
			(void) sketch_add_weighted(sketch, value, PG_INT64_MAX / 20);
		else
			(void) sketch_add(sketch, &value, 1);
	}
}

/* Change size bytes in one of several ways; there is room for twice as many. */
static size_t
mutate(unsigned char *data, size_t size)
{
	static const char *const text[] = {"9223372036854775807", "-1", "0", "1e999", "NaN", "[", "]", "}", ",", "1e-400", "18446744073709551616"};
	size_t		at = draw(size + 1);
	size_t		n = 1 + draw(8);
	const char *word;

	switch (draw(8))
	{
		case 0:
			if (at < size)
				data[at] ^= 1 << draw(8);
			return size;
		case 1:
			if (at < size)
				data[at] = (unsigned char) draw(256);
			return size;
		case 2:
			return at;
		case 3:
			n = Min(n, size - at);
			memmove(data + at, data + at + n, size - at - n);
			return size - n;
		case 4:
			memmove(data + at + n, data + at, size - at);
			for (size_t i = 0; i < n; i++)
				data[at + i] = (unsigned char) draw(256);
			return size + n;
		case 5:
			n = Min(draw(64), size - at);
			memmove(data + at + n, data + at, size - at);
			return size + n;
		case 6:
			n = Min(n, size - at);
			memset(data + at, draw(2) == 0 ? 0xff : 0, n);
			return size;
		default:
			word = text[draw(lengthof(text))];
			n = strlen(word);
			memmove(data + at + n, data + at, size - at);
			memcpy(data + at, word, n);
			return size + n;
	}
}

static void
write_seed(const char *folder, const char *kind, int seed, const void *data, size_t size)
{
	char		path[1024];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s_%d", folder, kind, seed);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0)
	{
		perror(path);
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	unsigned char *forms[2][NSEEDS];
	size_t		sizes[2][NSEEDS];
	unsigned char *data = palloc(2 * MAX_SIZE);
	int			mutations = argc > 1 ? atoi(argv[1]) : 100000;
	int			accepted[2] = {0};

	for (int seed = 0; seed < NSEEDS; seed++)
	{
		Sketch		sketch;

		make_seed(&sketch, seed);
		forms[0][seed] = palloc(sketch_encoded_size(&sketch));
		sizes[0][seed] = sketch_encode(&sketch, forms[0][seed]);
		forms[1][seed] = (unsigned char *) sketch_print(&sketch);
		sizes[1][seed] = strlen((char *) forms[1][seed]);
		sketch_free(&sketch);
		if (!check_binary(forms[0][seed], sizes[0][seed]) || !check_text((char *) forms[1][seed]))
		{
			fprintf(stderr, "seed %d is refused\n", seed);
			return 1;
		}
		if (argc > 2)
		{
			write_seed(argv[2], "binary", seed, forms[0][seed], sizes[0][seed]);
			write_seed(argv[2], "text", seed, forms[1][seed], sizes[1][seed]);
		}
	}
	for (int i = 0; i < mutations; i++)
	{
		for (int kind = 0; kind < 2; kind++)
		{
			/* the long seed takes most of the time */
			int			seed = (int) draw(i % 16 == 0 ? NSEEDS : 7);
			size_t		size = sizes[kind][seed];

			memcpy(data, forms[kind][seed], size);
			for (uint64 changes = 1 + draw(3); changes > 0 && size < MAX_SIZE; changes--)
				size = mutate(data, size);
			if (kind == 0)
			{
				/* at the end of its own allocation, so that reading on is seen */
				unsigned char *input = palloc(Max(size, 1));

				memcpy(input, data, size);
				accepted[kind] += check_binary(input, size);
				pfree(input);
			}
			else
			{
				char	   *input = palloc(size + 1);

				memcpy(input, data, size);
				input[size] = '\0';
				accepted[kind] += check_text(input);
				pfree(input);
			}
		}
	}
	for (int kind = 0; kind < 2; kind++)
		for (int seed = 0; seed < NSEEDS; seed++)
			pfree(forms[kind][seed]);
	pfree(data);
	printf("%d mutations each: %d of binary, %d of text accepted\n", mutations, accepted[0], accepted[1]);
	return 0;
}
