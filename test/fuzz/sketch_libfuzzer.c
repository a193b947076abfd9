/*
 * sketch_libfuzzer.c
 *	  libFuzzer on the sketch's parsers.  An input that begins with "{" or a
 *	  space is text, any other binary.
 */
#include "postgres.h"

#include "sketch.h"

int			LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (size > 0 && (data[0] == '{' || data[0] == ' '))
	{
		char	   *text = palloc(size + 1);

		memcpy(text, data, size);
		text[size] = '\0';
		(void) check_text(text);
		pfree(text);
	}
	else
		(void) check_binary(data, size);
	return 0;
}
