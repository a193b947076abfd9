/*
 * lttb.h
 *	  Downsampling by largest triangle three buckets.
 */
#ifndef METRICS_LTTB_H
#define METRICS_LTTB_H

typedef struct LttbPoint
{
	double		x;
	double		y;
} LttbPoint;

extern int	lttb_select(const LttbPoint *points, int npoints, int *chosen, int max_points);

#endif							/* METRICS_LTTB_H */
