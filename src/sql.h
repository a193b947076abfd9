/*
 * sql.h
 *	  Running SQL text.
 */
#ifndef METRICS_SQL_H
#define METRICS_SQL_H

extern void run_sql(const char *format,...) pg_attribute_printf(1, 2);

#endif							/* METRICS_SQL_H */
