/*
 * rekey.h
 *	  Constant-key change of a LIST-partitioned table.
 */
#ifndef METRICS_REKEY_H
#define METRICS_REKEY_H

#include "nodes/pg_list.h"

extern List *rekey_blockers(Oid parent);
extern void rekey_to_text(Oid parent, const char *while_empty);

#endif							/* METRICS_REKEY_H */
