/*
 * active.h
 *	  Where maintenance may run by itself.
 */
#ifndef METRICS_ACTIVE_H
#define METRICS_ACTIVE_H

#include "store/store.h"

extern bool store_is_active(const MetricsStore *store);
extern void store_activate(const MetricsStore *store);

#endif							/* METRICS_ACTIVE_H */
