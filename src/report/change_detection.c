/*
 * change_detection.c
 *	  Where the level of a series of measurements changes.
 *
 * Before and after each push a window of pushes is compared by Student's t,
 * with weights that fall with the distance from the push.  A change is a push
 * whose t is above the threshold and not below that of a neighbour.
 *
 * The rules, the order of additions included, are those of Perfherder, so that
 * t is the same to the last digit.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/float.h"

#include "report/change_detection.h"

/* Where a push begins among the measurements that are sorted by push. */
typedef struct PushRun
{
	TimestampTz timestamp;
	int			arrival;		/* number of its first measurement */
	int			begin;			/* its measurements in the array of numbers */
	int			end;
} PushRun;

static inline int
compare_numbers(int a, int b, const Measurement *measurements)
{
	int64		push_a = measurements[a].push_id;
	int64		push_b = measurements[b].push_id;

	if (push_a != push_b)
		return push_a < push_b ? -1 : 1;
	return a < b ? -1 : 1;
}

static inline int
compare_runs(const PushRun *a, const PushRun *b)
{
	if (a->timestamp != b->timestamp)
		return a->timestamp < b->timestamp ? -1 : 1;
	return a->arrival < b->arrival ? -1 : 1;
}

#define ST_SORT sort_numbers
#define ST_ELEMENT_TYPE int
#define ST_COMPARE_ARG_TYPE const Measurement
#define ST_COMPARE(a, b, arg) compare_numbers(*(a), *(b), arg)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_runs
#define ST_ELEMENT_TYPE PushRun
#define ST_COMPARE compare_runs
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Collect the measurements of each push, in order of arrival, and put the
 * pushes in order of time, those of one time in order of arrival.  A push has
 * the time of its first measurement.  Allocates in the current context.
 */
void
series_group_by_push(Series *series, const Measurement *measurements, int count)
{
	int		   *numbers = palloc_array(int, count + 1);
	PushRun    *runs = palloc_array(PushRun, count + 1);
	int			nruns = 0;
	int			nvalues = 0;

	for (int i = 0; i < count; i++)
		numbers[i] = i;
	sort_numbers(numbers, count, measurements);
	for (int i = 0; i < count; i++)
	{
		const Measurement *measurement = &measurements[numbers[i]];

		if (i == 0 || measurement->push_id != measurements[numbers[i - 1]].push_id)
			runs[nruns++] = (PushRun) {measurement->push_timestamp, numbers[i], i, i};
		runs[nruns - 1].end = i + 1;
	}
	sort_runs(runs, nruns);

	series->npushes = nruns;
	series->pushes = palloc0_array(SeriesPush, nruns + 1);
	series->values = palloc_array(double, count + 1);
	for (int i = 0; i < nruns; i++)
	{
		SeriesPush *push = &series->pushes[i];

		push->timestamp = runs[i].timestamp;
		push->id = measurements[runs[i].arrival].push_id;
		push->first = nvalues;
		push->nvalues = runs[i].end - runs[i].begin;
		for (int number = runs[i].begin; number < runs[i].end; number++)
			series->values[nvalues++] = measurements[numbers[number]].value;
	}
	pfree(numbers);
	pfree(runs);
}

typedef struct WindowStats
{
	int			nvalues;
	double		mean;
	double		weighted_mean;
	double		variance;		/* around the weighted mean */
} WindowStats;

/*
 * Describe a window of pushes, the nearest first: begin, begin + step, and so
 * on.  Of n pushes they weigh n/n, (n-1)/n, …, 1/n.
 */
static WindowStats
describe_window(const Series *series, int begin, int step, int npushes)
{
	WindowStats stats = {0};
	double		sum = 0;
	double		weighted_sum = 0;
	double		weights = 0;
	double		squares = 0;

	for (int i = 0; i < npushes; i++)
	{
		const SeriesPush *push = &series->pushes[begin + i * step];
		const double *values = &series->values[push->first];
		double		weight = (double) (npushes - i) / npushes;
		double		push_sum = 0;
		double		push_weighted_sum = 0;

		CHECK_FOR_INTERRUPTS();
		for (int v = 0; v < push->nvalues; v++)
		{
			push_sum += values[v];
			push_weighted_sum += values[v] * weight;
		}
		sum += push_sum;
		weighted_sum += push_weighted_sum;
		weights += weight * push->nvalues;
		stats.nvalues += push->nvalues;
	}
	stats.mean = sum / stats.nvalues;
	stats.weighted_mean = weighted_sum / weights;
	if (stats.nvalues < 2)
		return stats;

	for (int i = 0; i < npushes; i++)
	{
		const SeriesPush *push = &series->pushes[begin + i * step];

		for (int v = 0; v < push->nvalues; v++)
		{
			double		deviation = series->values[push->first + v] - stats.weighted_mean;

			squares += deviation * deviation;
		}
	}
	stats.variance = squares / (stats.nvalues - 1);
	return stats;
}

/* Student's t of two windows: 0 if they are equal, infinite if only noise is missing. */
static double
students_t(const WindowStats *prev, const WindowStats *next)
{
	double		delta = next->weighted_mean - prev->weighted_mean;

	if (delta == 0)
		return 0;
	if (prev->variance == 0 && next->variance == 0)
		return get_float8_infinity();
	return fabs(delta / sqrt(prev->variance / prev->nvalues + next->variance / next->nvalues));
}

/*
 * Compare the windows around a push.  Pushes before it are taken up to a
 * distance, and all only until there are enough values.
 */
static void
compare_windows(Series *series, int number, int distance, const ChangeWindows *windows)
{
	SeriesPush *push = &series->pushes[number];
	int			nprev = 0;
	int			nnext = 0;
	WindowStats prev;
	WindowStats next;

	while (push->nprev < windows->max_back && nprev < number && nprev < distance)
		push->nprev += series->pushes[number - ++nprev].nvalues;
	while (push->nnext < windows->fore && number + nnext < series->npushes)
		push->nnext += series->pushes[number + nnext++].nvalues;

	next = describe_window(series, number, 1, nnext);
	push->new_value = next.mean;
	if (nprev == 0)
		return;					/* the first push has nothing before it */
	prev = describe_window(series, number - 1, -1, nprev);
	push->prev_value = prev.mean;
	push->t = students_t(&prev, &next);
}

/*
 * Fill in what is known of the pushes of a series.  While nothing likely
 * happens, the window before grows from min_back to max_back pushes.
 */
void
series_detect_changes(Series *series, const ChangeWindows *windows)
{
	SeriesPush *pushes = series->pushes;
	int			quiet = 0;		/* pushes since the last likely change */

	for (int i = 0; i < series->npushes; i++)
	{
		compare_windows(series, i, Min(Max(quiet, windows->min_back), windows->max_back), windows);
		if (i > 0)
			quiet = pushes[i].t > windows->t_threshold ? 0 : quiet + 1;
	}

	for (int i = 1; i < series->npushes; i++)
		pushes[i].is_change = pushes[i].nprev >= windows->min_back &&
			pushes[i].nnext >= windows->fore &&
			pushes[i].t > windows->t_threshold &&
			!(pushes[i - 1].t > pushes[i].t) &&
			!(i + 1 < series->npushes && pushes[i + 1].t > pushes[i].t);
}
