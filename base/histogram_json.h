/* base/histogram_json.h -- {"count":...,"sum_ns":...,"p50_ns":...,"max_ns":...} */
#ifndef BASE_HISTOGRAM_JSON_H
#define BASE_HISTOGRAM_JSON_H

#include "base/buf.h"
#include "base/histogram.h"

void histogram_json(struct buf *, const struct histogram *);

#endif
