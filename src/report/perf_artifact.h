/*
 * perf_artifact.h
 *	  What a performance test reports: PERFHERDER_DATA, read and checked.
 */
#ifndef METRICS_PERF_ARTIFACT_H
#define METRICS_PERF_ARTIFACT_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

/* What may be missing. */
typedef struct PerfNumber
{
	bool		given;
	double		value;
} PerfNumber;

typedef enum PerfFlag
{
	FLAG_MISSING,
	FLAG_FALSE,
	FLAG_TRUE,
} PerfFlag;

typedef struct PerfStrings
{
	int			count;
	char	  **items;			/* sorted by their bytes, each once */
} PerfStrings;

typedef struct PerfNumbers
{
	int			count;
	double	   *items;			/* as they were given */
} PerfNumbers;

/* A suite, or one of its subtests; strings that are missing are NULL. */
typedef struct PerfTest
{
	char	   *name;
	char	   *public_name;
	PerfNumber	value;
	PerfNumbers replicates;
	char	   *unit;
	PerfFlag	lower_is_better;
	PerfFlag	should_alert;
	PerfFlag	monitor;
	PerfNumber	alert_threshold;
	char	   *alert_severity;
	char	   *alert_change_type;
	PerfNumber	min_back_window;
	PerfNumber	max_back_window;
	PerfNumber	fore_window;
	PerfStrings alert_notify_emails;
} PerfTest;

typedef struct PerfSuite
{
	PerfTest	test;
	PerfStrings tags;
	PerfStrings extra_options;
	int			nsubtests;
	PerfTest   *subtests;		/* by name, those of one name in the order of the artifact */
} PerfSuite;

typedef struct PerfArtifact
{
	char	   *framework;
	char	   *application;
	char	   *application_version;
	char	   *os_name;
	char	   *platform_version;
	PerfNumber	push_timestamp; /* seconds since 1970 */
	int			nsuites;
	PerfSuite  *suites;			/* by name and extra options, equal ones in the order of the artifact */
} PerfArtifact;

extern void perf_artifact_read(PerfArtifact *artifact, Jsonb *document);
extern int	perf_artifact_measurements(const PerfArtifact *artifact);
extern bool perf_strings_sort(PerfStrings *strings);
extern int	perf_strings_compare(const PerfStrings *a, const PerfStrings *b);

#endif							/* METRICS_PERF_ARTIFACT_H */
