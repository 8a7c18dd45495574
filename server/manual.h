/* server/manual.h -- manual pages from the tables: accel-server.conf(5) and accel-server(8). */
#ifndef SERVER_MANUAL_H
#define SERVER_MANUAL_H

#include "base/buf.h"

/* page: "text" or "roff" for the configuration file, "program" or "program-roff" for the program.
 * 0, or -EINVAL for any other. */
int manual_print(const char *page, struct buf *out);

#endif
