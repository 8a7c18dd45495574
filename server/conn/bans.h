/* server/conn/bans.h -- server.ban-file: the clients that are not served.
 *
 *   io/watch.h, a thread --> struct ban_list --> version, list --> each worker takes it when its
 *                                                                  next connection or request comes
 *
 * A worker compares one number for each request.  It takes the lock only when the file has changed.
 *
 * A connection whose peer is banned is closed without a reply, at once or at its next request.  The
 * connection of a trusted proxy has several clients, so a banned one gets 403 there.
 *
 * Bounds   BAN_LIST_MAX entries, BANS_FILE_MAX bytes.  A longer file, and one that cannot be read,
 *          leaves the last list in force.  A missing file is an empty list.
 * Thread   new, set, free: the main thread.  The others: any.
 */
#ifndef SERVER_CONN_BANS_H
#define SERVER_CONN_BANS_H

#include "io/io.h"

#define BANS_FILE_MAX (16u << 20)

struct bans;

struct bans_view { /* of a worker; starts as {0} */
	uint32_t version;
	struct ban_set *set; /* NULL: nobody is banned */
};

struct bans *bans_new(void); /* NULL: no memory or thread */
void bans_free(struct bans *);
/* NULL: no file.  A new path is awaited for two seconds at most, and the thread of the last one for
 * one second. */
void bans_set(struct bans *, const char *path);
/* Changes with the list; 0: there has been none. */
const uint32_t *bans_version(const struct bans *);
/* bans NULL: nobody is banned. */
bool bans_has(struct bans *, struct bans_view *, const union io_addr *, uint64_t now_s);
void bans_view_end(struct bans_view *);

#endif
