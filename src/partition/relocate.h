/*
 * relocate.h
 *	  Finding the rows of a key in a table, and moving them to another.
 */
#ifndef METRICS_RELOCATE_H
#define METRICS_RELOCATE_H

#include "partition/list_table.h"

extern bool relocate_wants_index(Oid source, const ListTable *table);
extern List *relocate_keys(Oid source, const ListTable *table);
extern uint64 relocate_count(Oid source, const ListTable *table, Datum key, uint64 limit);
extern uint64 relocate_rows(Oid source, Oid target, const ListTable *table, Datum key);

#endif							/* METRICS_RELOCATE_H */
