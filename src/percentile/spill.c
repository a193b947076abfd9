/*
 * spill.c
 *	  A temporary file for the values of many groups.
 *
 * Not a BufFile, which reads and writes blocks: here a run is written and read
 * in pieces as large as it has.  The file is the current resource owner's: an
 * aborted transaction closes it, and nobody else must.
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "percentile/spill.h"

#define BUFFER_SIZE 65536

/* What is written or read by one call; between calls a cancel is heard. */
#define MAX_TRANSFER (1024 * 1024)

struct SpillFile
{
	File		file;
	off_t		size;			/* of what has reached the file */
	Size		buffered;
	char	   *buffer;			/* what comes after that */
};

struct SpillReader
{
	SpillFile  *file;
	Size		element_size;
	SpillRun	next;			/* run not yet begun */
	off_t		offset;			/* where we are in the current one */
	int64		left;			/* and what is left of it */
	char		buffer[FLEXIBLE_ARRAY_MEMBER];
};

/* A new file in temp_tablespaces; its memory is allocated in the context. */
SpillFile *
spill_create(MemoryContext context)
{
	SpillFile  *file = MemoryContextAllocZero(context, sizeof(SpillFile));

	file->buffer = MemoryContextAlloc(context, BUFFER_SIZE);
	PrepareTempTablespaces();
	file->file = OpenTemporaryFile(false);
	return file;
}

/* Close and remove the file; its memory goes with its context. */
void
spill_close(SpillFile *file)
{
	FileClose(file->file);
}

static void
write_out(SpillFile *file, const char *data, Size size)
{
	while (size > 0)
	{
		int			length = (int) Min(size, MAX_TRANSFER);
		int			written;

		CHECK_FOR_INTERRUPTS();
		errno = 0;
		written = FileWrite(file->file, (char *) data, length, file->size,
							WAIT_EVENT_BUFFILE_WRITE);
		if (written <= 0)
		{
			/* A file system that takes nothing and says nothing is full. */
			if (written == 0 && errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to file \"%s\": %m",
							FilePathName(file->file))));
		}
		pgBufferUsage.temp_blks_written += (written + BLCKSZ - 1) / BLCKSZ;
		file->size += written;
		data += written;
		size -= written;
	}
}

static void
flush_buffer(SpillFile *file)
{
	write_out(file, file->buffer, file->buffered);
	file->buffered = 0;
}

static void
append(SpillFile *file, const void *data, Size size)
{
	if (file->buffered + size > BUFFER_SIZE)
		flush_buffer(file);
	if (size > BUFFER_SIZE)
		write_out(file, data, size);
	else
	{
		memcpy(file->buffer + file->buffered, data, size);
		file->buffered += size;
	}
}

/* Append a run of a group whose last one so far is *last, which it becomes. */
void
spill_write(SpillFile *file, SpillRun *last,
			const void *elements, int64 count, Size element_size)
{
	SpillRun	run;

	if (count == 0)
		return;
	run.offset = file->size + file->buffered;
	run.count = count;
	append(file, last, sizeof(*last));
	append(file, elements, count * element_size);
	*last = run;
}

static void
read_in(SpillFile *file, char *data, Size size, off_t offset)
{
	while (size > 0)
	{
		int			nread = FileRead(file->file, data, size, offset,
									 WAIT_EVENT_BUFFILE_READ);

		if (nread < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m",
							FilePathName(file->file))));
		if (nread == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("file \"%s\" ended before offset %lld",
							FilePathName(file->file),
							(long long) (offset + size))));
		pgBufferUsage.temp_blks_read += (nread + BLCKSZ - 1) / BLCKSZ;
		data += nread;
		size -= nread;
		offset += nread;
	}
}

/*
 * Begin to read all runs of a group.  The reader is palloc'd and must not
 * outlive the file; nothing may be written meanwhile.
 */
SpillReader *
spill_begin_read(SpillFile *file, SpillRun last, Size element_size)
{
	SpillReader *reader = palloc(offsetof(SpillReader, buffer) + BUFFER_SIZE);

	flush_buffer(file);
	reader->file = file;
	reader->element_size = element_size;
	reader->next = last;
	reader->left = 0;
	return reader;
}

/*
 * The next elements, in no particular order, or NULL after the last.  They stay
 * where they are until the next call.
 */
const void *
spill_read(SpillReader *reader, int64 *count)
{
	Size		header = reader->left > 0 ? 0 : sizeof(SpillRun);
	int64		fit = (BUFFER_SIZE - header) / reader->element_size;
	Size		size;

	CHECK_FOR_INTERRUPTS();
	if (header > 0)
	{
		if (reader->next.count == 0)
			return NULL;
		reader->offset = reader->next.offset;
		reader->left = reader->next.count;
	}
	*count = Min(reader->left, fit);
	size = header + *count * reader->element_size;
	read_in(reader->file, reader->buffer, size, reader->offset);
	if (header > 0)
		memcpy(&reader->next, reader->buffer, header);
	reader->offset += size;
	reader->left -= *count;
	return reader->buffer + header;
}

void
spill_end_read(SpillReader *reader)
{
	pfree(reader);
}
