/*
 * trial.h
 *	  A trial and what its next report needs to know of the earlier ones.
 */
#ifndef METRICS_TRIAL_H
#define METRICS_TRIAL_H

#include "datatype/timestamp.h"
#include "storage/itemptr.h"
#include "utils/jsonb.h"

#include "compat.h"
#include "report/summary.h"
#include "store/store.h"

/* Group of the validations, and the key of metrics in their documents. */
#define VALIDATION_GROUP "validation"
#define VALIDATION_KEY "validation_metrics"
#define TRAINING_GROUP "training"
#define METRICS_KEY "avg_metrics"

typedef struct Validation
{
	int64		id;				/* 0: there is none */
	TimestampTz end_time;
	double		value;			/* of the searcher metric */
} Validation;

/*
 * A row of trials, locked, with its row of metrics_trial_state.  Whoever holds
 * the lock is alone in writing rows of the trial that count steps.
 */
typedef struct Trial
{
	int32		id;				/* first: the key of a TrialSet */
	MemoryContext context;		/* of what hangs on it */
	ItemPointerData tid;		/* of this version of the row */
	int32		run_id;
	int32		total_batches;
	Jsonb	   *stored_summary; /* as read, until trial_read_state() */
	Summary    *summary;
	Validation	latest;
	Validation	best;
	char	   *searcher_metric;	/* or NULL */
	bool		smaller_is_better;

	bool		has_state;		/* there is a row of metrics_trial_state */
	ItemPointerData state_tid;
	int32		state_run_id;
	int32		rolled_back_to; /* no unarchived row of a run before has more batches */

	bool		out_of_date;	/* nothing is known of the rows: recompute */
	bool		dirty;			/* has to be saved */
} Trial;

/* Trials that one call reports to, each read and saved once. */
typedef struct TrialSet
{
	MemoryContext context;
	struct HTAB *trials;
} TrialSet;

extern TrialSet *trial_set_create(void);
extern void trial_set_save(const MetricsStore *store, TrialSet *set);

extern bool trial_lock(const MetricsStore *store, int32 id, Trial *trial);
extern void trial_read_state(Trial *trial, int first_column);
extern void trial_check_run(int32 id, int32 reported, int32 expected);
extern uint64 trial_rollback(const MetricsStore *store, Trial *trial, const char *partition_key,
							 int32 steps);
extern void trial_add(Trial *trial, const char *group, JsonbContainer *metrics,
					  JsonbContainer *new_metrics, TimestampTz end_time, int64 id);
extern uint64 trial_recomputes;
extern void trial_recompute(const MetricsStore *store, Trial *trial);
extern Jsonb *trial_recompute_and_save(const MetricsStore *store, int32 id);
extern bool trial_save(const MetricsStore *store, Trial *trial);
pg_noreturn extern void trial_unknown(int32 id);

extern const char *group_document_key(const char *group);
extern JsonbContainer *document_metrics(Jsonb *document, const char *group);

#endif							/* METRICS_TRIAL_H */
