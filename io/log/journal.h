/* io/log/journal.h -- systemd's journal, by its native protocol: a datagram for each line, with
 * fields.
 *
 *   MESSAGE=ts=1173101341.237616 level=warn ev=reply.failed path="/a b" waited-ms=30
 *   PRIORITY=4
 *   SYSLOG_IDENTIFIER=accel-server
 *   ACCEL_EV=reply.failed
 *   ACCEL_PATH=/a b
 *   ACCEL_WAITED_MS=30
 *
 * A value has the escapes of the text form.  The journal itself adds time, process and unit.
 *
 * Thread   journal_open() the first one, the others any.
 */
#ifndef IO_JOURNAL_H
#define IO_JOURNAL_H

#include <sys/types.h>
#include "base/buf.h"
#include "base/text.h"

/* The socket if the journal reads standard error and can be reached, or -errno.  It is opened
 * once, so the first call comes before a sandbox that allows no new socket.  It belongs to the
 * process. */
int journal_open(void);
/* Sends a line, with or without its newline.  Returns its length or -errno; waits 0.1 s at most
 * (-EAGAIN). */
ssize_t journal_send(struct text line);

/* Pure: the fields ACCEL_... of a line of base/log.h in text form; other lines have none. */
void journal_fields(struct buf *out, struct text line);

#endif
