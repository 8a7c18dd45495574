/* server/request/fault.h -- tells why a client got 5xx, or a part of a file: one line with path,
 * device and stage.
 *
 *   reply.failed status=503 path=/a/b device=/srv/nfs stage=open waited-ms=30001 why="..."
 *
 * A reply whose reason has a line of its own (exchange.failed, request.refused, auth.unusable) gets
 * none.  The device is named by its mount point, found in the table of mounts, so a disk that
 * hangs is not asked.
 */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include "io/disk/pools.h"

struct file_entry;
struct request;

/* The look-up of r->lookup below r->scope failed.  Logs file.denied if the server's user may not
 * open it, which is the client's 403. */
void fault_is(struct request *, int err); /* a 5xx that no look-up of a file explains */
void fault_note(struct request *, const struct file_entry *);
/* The reason was logged. */
void fault_told(struct request *);
/* The server answers with this status, in place of the requested reply.  If it is called several
 * times, the first status counts, for fault_count(). */
void fault_own(struct request *, int status);
void fault_count(const struct request *); /* of a reply with a status from 500 to 599 */
void fault_tell(struct request *);        /* of a reply with a status from 500 to 599 */
/* The mount point of the file that r->lookup names below r->scope. */
const char *fault_device(const struct request *, char mount[IO_MOUNT_NAME]);
/* A disk was too slow while the file was sent.  False: it was the client. */
bool fault_tell_read(struct request *);

#endif
