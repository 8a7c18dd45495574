/* accel-load/http.h -- HTTP/1.1 requests: the part that is the same for all URLs of a target. */
#ifndef ACCEL_LOAD_HTTP_H
#define ACCEL_LOAD_HTTP_H

#include "accel-load/load.h"
#include "base/buf.h"

/* " HTTP/1.1", Host and the fields of --header. */
void load_http_fields(const struct load_conf *, const char *authority, struct buf *);

#endif
