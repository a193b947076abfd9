#ifndef A_H
#define A_H
#include "store/store.h"
void store_activate(const MetricsStore *s);
#endif
