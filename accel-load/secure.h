/* accel-load/secure.h -- https: what the connections of a thread speak TLS with, one for each
 * target. */
#ifndef ACCEL_LOAD_SECURE_H
#define ACCEL_LOAD_SECURE_H

#include "accel-load/load.h"

struct io_secure;
struct target;

/* By the number of the target; NULL at those of http.  0, or the exit status after a message; *out
 * is yours in any case. */
int secure_open(const struct load_conf *, const struct target *list, struct io_secure ***out);
void secure_close(const struct target *list, struct io_secure ***);

#endif
