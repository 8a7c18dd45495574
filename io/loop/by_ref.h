/* io/loop/by_ref.h -- inside io/loop/ only: sends memory without copying it.
 *
 *   memory --vmsplice(2)--> pipe of the loop --splice(2)--> socket
 *
 * The socket (on loopback even the receiver) refers to the pages until their bytes are
 * acknowledged.  So they must not be written to again: see io/hotset.h.
 *
 * Measured, CPU of a whole request, in ratio to sendfile(2) from the page cache: see doc/DESIGN.md.
 *
 * Thread   the loop's; never waits.
 */
#ifndef IO_LOOP_BY_REF_H
#define IO_LOOP_BY_REF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct by_ref {
	int in, out, null; /* all -1: the system cannot do it */
};

#define BY_REF_MIN   (48u << 10) /* fewer bytes are copied faster */
#define BY_REF_PARTS 24u

void by_ref_none(struct by_ref *); /* by_ref_send() is always -ENOSYS */
void by_ref_init(struct by_ref *); /* ... too, if the system cannot do it */
void by_ref_fini(struct by_ref *);
/* Bytes, perhaps fewer although the socket is not full; or -errno: -ENOSYS if the caller must copy
 * them. */
int64_t by_ref_send(struct by_ref *, int sock, const struct iovec *iov, int n, bool more,
    bool *full);

#endif
