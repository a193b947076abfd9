/*
 * spill.h
 *	  A temporary file for the values of many groups.
 */
#ifndef METRICS_SPILL_H
#define METRICS_SPILL_H

typedef struct SpillFile SpillFile;
typedef struct SpillReader SpillReader;

/*
 * Elements of one group that lie together in the file; count 0 means none.
 * In the file each run begins with the one the group had before, so a group
 * needs to remember only its last.
 */
typedef struct SpillRun
{
	int64		offset;
	int64		count;
} SpillRun;

extern SpillFile *spill_create(MemoryContext context);
extern void spill_write(SpillFile *file, SpillRun *last,
						const void *elements, int64 count, Size element_size);
extern void spill_close(SpillFile *file);

extern SpillReader *spill_begin_read(SpillFile *file, SpillRun last,
									 Size element_size);
extern const void *spill_read(SpillReader *reader, int64 *count);
extern void spill_end_read(SpillReader *reader);

#endif							/* METRICS_SPILL_H */
