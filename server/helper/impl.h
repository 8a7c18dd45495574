/* server/helper/impl.h -- between the helper_*.c files; nobody else includes it.
 *
 *   wire.c     messages
 *   process.c  the helper process: requests, children, names
 *   work.c     what a child does
 *   helper.c          the server's side
 */
#ifndef SERVER_HELPER_IMPL_H
#define SERVER_HELPER_IMPL_H

#include "server/helper/helper.h"
#include "server/helper/wire.h"

/* Serves requests from the pair until its end of file; never returns. */
_Noreturn void helper_process(int pair, pid_t server, const char *file);

/* ---- in a child; the result is its exit status */

/* Writes a record to reply and names to the helper. */
int helper_work_load(const char *file, int reply, int names);
/* Opens what is named and sends the descriptor to reply. */
int helper_work_open(const struct helper_request *, const struct helper_name *, pid_t server, int reply);
int helper_work_unpid(const char *path, pid_t server); /* 0 or -errno */

#endif
