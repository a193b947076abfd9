/*
 * model.h
 *	  Making a table like another.
 */
#ifndef METRICS_MODEL_H
#define METRICS_MODEL_H

extern void copy_properties(Oid model, Oid relid, Oid parent);
extern Oid	create_like(Oid model, Oid parent, const char *name);
extern void copy_foreign_key_comments(Oid partition);

#endif							/* METRICS_MODEL_H */
