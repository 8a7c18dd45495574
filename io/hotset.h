/* io/hotset.h -- inside io/ only: windows of files in the server's own memory.
 *
 *   asked for again --> a thread reads the window --> hotset_add() --> hotset_get() --> send(2)
 *                       into memory of hotset_room()                   hotset_put()
 *
 * Its pages are sent by reference (io/loop/by_ref.h), so they are never written to twice: what
 * comes next gets fresh ones.
 *
 * What is sent from here cannot leave, except to swap: no page cache, no disk and no file system is
 * asked.  So the files that many clients want are served beside a thrashing page cache and beside a
 * hung disk.
 *
 * Units    bytes; CLOCK_MONOTONIC ns.
 * Bounds   `budget` bytes, reserved once and filled in pieces of HOTSET_PIECE.  To make room, the
 *          window that was not asked for the longest goes, if the new one is asked for more often.
 *          Full, the set takes in its own size in 10 s, so a scan of all files costs little.
 * Owner    hotset_room() gives a window with one reference, hotset_get() one more.  A window that
 *          was dropped lives until its last reference is put.
 * Thread   any.  hotset_get() and hotset_put() never wait longer than for a lock that is held
 *          while a list is changed.
 */
#ifndef IO_HOTSET_H
#define IO_HOTSET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "io/disk/pools.h"
#include "io/start/version.h"

#define HOTSET_PIECE  (32u << 10)
#define HOTSET_PIECES 8u /* of a window: IO_WINDOW */

struct hotset;

struct held_key {
	uint64_t dev, ino, nr; /* window nr begins at nr * IO_WINDOW */
};

struct held; /* a window */

struct hotset *hotset_new(uint64_t budget); /* NULL: no memory, or budget 0; then nothing is held */
/* The users of the set are about to end: no more windows are held, and the memory goes back to the
 * system, that of windows being sent with their last reference.  NULL is allowed. */
void hotset_close(struct hotset *);
void hotset_free(struct hotset *); /* no window may have references */

/* The window if it has the contents of this version, or NULL. */
struct held *hotset_get(struct hotset *, const struct held_key *, const struct io_version *,
    uint64_t now);
void hotset_put(struct held *);
/* Fills iov with the bytes from `from` to the end, at most max parts; returns the number of
 * parts. */
int held_iov(const struct held *, uint32_t from, struct iovec *iov, int max);

/* For the loop: true if a window may be read now; a full set allows it only at times. */
bool hotset_wants(struct hotset *, uint32_t len, uint64_t now);
/* Memory for a window that is not in the set yet, and is asked for every `interval` ns; NULL: there
 * is none.  *dropped: windows that made room. */
struct held *hotset_room(struct hotset *, uint32_t len, uint64_t interval, uint64_t now,
    unsigned *dropped);
/* Takes the reference.  A window with the same key is dropped; this one is found until then. */
void hotset_add(struct held *, const struct held_key *, const struct io_version *, uint64_t now,
    uint64_t until);

void hotset_status(struct hotset *, struct io_hotset_status *);

#endif
