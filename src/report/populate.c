/*
 * populate.c
 *	  Sample data of the shapes that real trials and profilers report.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "args.h"
#include "report/report.h"

PG_FUNCTION_INFO_V1(metrics_populate);

/* Steps from one validation to the next, and from one profile to the next. */
#define VALIDATION_PERIOD 10
#define PROFILING_PERIOD 10

static const StoreQuery add_trial_query = {
	"INSERT INTO @store@.trials (id, experiment_id, searcher_metric)"
	" SELECT COALESCE(pg_catalog.max(id), 0) + 1, 1, 'validation_loss' FROM @store@.trials"
	" ON CONFLICT DO NOTHING RETURNING id",
	.nargs = 0
};

/* Report one group; the time is steps seconds after the transaction began. */
static void
report_sample(const MetricsStore *store, TrialSet *set, int32 trial_id, char *group, int32 step, char *json)
{
	Report		report = {.trial_id = trial_id,.group = group};

	report.metrics = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json)));
	report.has_steps = true;
	report.steps = step;
	if (store->layout >= LAYOUT_1_1)
	{
		report.has_time = true;
		report.time = GetCurrentTransactionStartTimestamp() + step * USECS_PER_SEC;
	}
	report_write(store, &report, set);
}

/*
 * One step of a trial: a loss that falls with a ripple on it, now and then a
 * validation and what the machine was doing.  No randomness: the same call
 * gives the same values.
 */
static void
report_step(const MetricsStore *store, TrialSet *set, int32 trial_id, int32 step, int32 steps)
{
	double		progress = (double) step / steps;
	double		ripple = sin(step * 0.7 + trial_id);
	double		loss = 2.3 * exp(-3 * progress) * (1 + 0.05 * ripple) + 0.01 * (trial_id % 7);

	report_sample(store, set, trial_id, "training", step,
				  psprintf("{\"loss\": %.6f, \"lr\": %.6f, \"epoch\": %d}",
						   loss, 0.001 * (1 - 0.9 * progress), step / 100));
	if (step % VALIDATION_PERIOD == 0)
		report_sample(store, set, trial_id, "validation", step,
					  psprintf("{\"validation_loss\": %.6f, \"accuracy\": %.6f}",
							   loss * 1.1, 1 - loss / 2.6));
	if (step % PROFILING_PERIOD == 0 && store->layout >= LAYOUT_1_1)
	{
		report_sample(store, set, trial_id, "cpu", step,
					  psprintf("{\"agent-1\": {\"cpu_util_simple\": %.3f}}", 55 + 30 * ripple));
		report_sample(store, set, trial_id, "gpu", step,
					  psprintf("{\"agent-1\": {\"GPU-0\": {\"gpu_util\": %.3f, \"gpu_free_memory\": %.1f},"
							   " \"GPU-1\": {\"gpu_util\": %.3f, \"gpu_free_memory\": %.1f}}}",
							   90 + 8 * ripple, 4e9 - 1e8 * ripple, 85 - 8 * ripple, 5e9 + 1e8 * ripple));
		report_sample(store, set, trial_id, "memory", step,
					  psprintf("{\"agent-1\": {\"memory_free\": %.3f}}", 24 - 6 * progress));
		report_sample(store, set, trial_id, "network", step,
					  psprintf("{\"agent-1\": {\"net_throughput_sent\": %.1f, \"net_throughput_recv\": %.1f}}",
							   2e6 + 5e5 * ripple, 9e6 - 2e6 * ripple));
		report_sample(store, set, trial_id, "disk", step,
					  psprintf("{\"agent-1\": {\"disk_iops\": %.1f, \"/\": {\"disk_util\": %.3f}}}",
							   150 + 90 * ripple, 40 + 5 * progress));
	}
}

/* metrics_populate(trials, steps) → integer, the id of the first new trial */
Datum
metrics_populate(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"trials", "steps"};
	int32		trials;
	int32		steps;
	int32		first = 0;
	MemoryContext step_context;
	MetricsStore store;
	TrialSet   *set;

	check_not_null(fcinfo, names, lengthof(names));
	trials = PG_GETARG_INT32(0);
	steps = PG_GETARG_INT32(1);
	if (trials < 1 || steps < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("trials and steps must be positive, got %d and %d", trials, steps),
				 errhint("For example metrics_populate(10, 1000).")));

	PreventCommandIfReadOnly("metrics_populate()");
	store_open(fcinfo, RowExclusiveLock, &store);
	step_context = AllocSetContextCreate(CurrentMemoryContext, "metrics_ext step",
										 ALLOCSET_DEFAULT_SIZES);
	for (int32 i = 0; i < trials; i++)
	{
		int32		trial_id;
		bool		isnull;

		SPI_connect();
		/* Another session may take the same id: then try the next. */
		while (store_execute(&store, &add_trial_query, NULL, NULL, NULL) == 0)
			CHECK_FOR_INTERRUPTS();
		trial_id = DatumGetInt32(store_column(1, &isnull));
		SPI_finish();
		if (first == 0)
			first = trial_id;
		set = trial_set_create();

		for (int32 step = 1; step <= steps; step++)
		{
			MemoryContext old_context = MemoryContextSwitchTo(step_context);

			CHECK_FOR_INTERRUPTS();
			SPI_connect();
			report_step(&store, set, trial_id, step, steps);
			SPI_finish();
			MemoryContextSwitchTo(old_context);
			MemoryContextReset(step_context);
		}
		SPI_connect();
		trial_set_save(&store, set);
		SPI_finish();
	}
	PG_RETURN_INT32(first);
}
