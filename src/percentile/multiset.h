/*
 * multiset.h
 *	  Keys in order, with fast insertion, removal and access by rank.
 */
#ifndef METRICS_MULTISET_H
#define METRICS_MULTISET_H

typedef struct Multiset Multiset;

extern Multiset *multiset_create(MemoryContext context);
extern void multiset_add(Multiset *set, int64 key, int64 weight);
extern bool multiset_remove(Multiset *set, int64 key, int64 weight);
extern int64 multiset_at(const Multiset *set, int64 rank);

#endif							/* METRICS_MULTISET_H */
