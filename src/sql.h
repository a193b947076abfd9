/*
 * sql.h
 *	  Running SQL text and what uses it, as whom, and without failing for good.
 */
#ifndef METRICS_SQL_H
#define METRICS_SQL_H

/* What act_as() changed. */
typedef struct SavedIdentity
{
	Oid			userid;
	int			sec_context;
	int			guc_level;
} SavedIdentity;

extern void run_sql(const char *format,...) pg_attribute_printf(1, 2);
extern ErrorData *run_in_subtransaction(bool (*function) (void *arg), void *arg);
extern void act_as(Oid role, const char *search_path, SavedIdentity *saved);
extern void act_as_before(const SavedIdentity *saved);
extern void set_local(const char *name, const char *value);

#endif							/* METRICS_SQL_H */
