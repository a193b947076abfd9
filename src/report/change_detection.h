/*
 * change_detection.h
 *	  Where the level of a series of measurements changes.
 */
#ifndef METRICS_CHANGE_DETECTION_H
#define METRICS_CHANGE_DETECTION_H

#include "datatype/timestamp.h"

typedef struct Measurement
{
	TimestampTz push_timestamp;
	int64		push_id;
	double		value;
} Measurement;

/* All measurements of one push. */
typedef struct SeriesPush
{
	TimestampTz timestamp;		/* of its first measurement */
	int64		id;
	int			first;			/* number of its first value in Series.values */
	int			nvalues;
	int			nprev;			/* how many values were looked at before it, */
	int			nnext;			/* and how many from it on */
	double		prev_value;		/* their means, if there are any */
	double		new_value;
	double		t;				/* the distance between them in standard errors */
	bool		is_change;
} SeriesPush;

typedef struct Series
{
	int			npushes;
	SeriesPush *pushes;
	double	   *values;			/* those of a push side by side, in order of arrival */
} Series;

typedef struct ChangeWindows
{
	int			min_back;
	int			max_back;
	int			fore;
	double		t_threshold;
} ChangeWindows;

extern void series_group_by_push(Series *series, const Measurement *measurements, int count);
extern void series_detect_changes(Series *series, const ChangeWindows *windows);

#endif							/* METRICS_CHANGE_DETECTION_H */
