/*
 * lttb.c
 *	  Downsampling by largest triangle three buckets.
 *
 * Source of the rule: S. Steinarsson, "Downsampling Time Series for Visual
 * Representation", University of Iceland, 2013.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"

#include "percentile/lttb.h"

/*
 * Choose at most max_points (at least 2) of the points, which are in order of
 * x, and write their numbers to chosen; returns how many.  The first and the
 * last are always among them.  The points between are divided into buckets of
 * equal size, and of each that point is taken which makes the largest triangle
 * with the one taken before and the average of the next bucket; of equals the
 * first.
 */
int
lttb_select(const LttbPoint *points, int npoints, int *chosen, int max_points)
{
	double		width;
	int			last = 0;

	Assert(max_points >= 2);
	if (npoints <= max_points)
	{
		for (int i = 0; i < npoints; i++)
			chosen[i] = i;
		return npoints;
	}

	width = (double) (npoints - 2) / Max(max_points - 2, 1);
	chosen[0] = 0;
	for (int bucket = 0; bucket < max_points - 2; bucket++)
	{
		int			begin = (int) floor(bucket * width) + 1;
		int			end = (int) floor((bucket + 1) * width) + 1;
		int			next_end = Min((int) floor((bucket + 2) * width) + 1, npoints);
		double		next_x = 0;
		double		next_y = 0;
		double		largest = -1;
		int			best = begin;

		CHECK_FOR_INTERRUPTS();
		for (int i = end; i < next_end; i++)
		{
			next_x += points[i].x / (next_end - end);
			next_y += points[i].y / (next_end - end);
		}
		for (int i = begin; i < end; i++)
		{
			double		area = fabs((points[last].x - next_x) * (points[i].y - points[last].y) -
									(points[last].x - points[i].x) * (next_y - points[last].y));

			if (area > largest)
			{
				largest = area;
				best = i;
			}
		}
		last = best;
		chosen[bucket + 1] = best;
	}
	chosen[max_points - 1] = npoints - 1;
	return max_points;
}
