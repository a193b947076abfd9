/*
 * model.h
 *	  Making a table like another.
 */
#ifndef METRICS_MODEL_H
#define METRICS_MODEL_H

extern void copy_properties(Oid model, Oid relid);
extern Oid	create_like(Oid model, Oid namespace, const char *name);

#endif							/* METRICS_MODEL_H */
