/* io/disk/links.h -- inside io/ only: IO_OPEN with IO_LINKS, where the kernel's walk is not enough.
 *
 *   a/b              the kernel's walk; if a link refuses it, this one in a thread
 *   host/www//a/b    host/www is opened first, and a/b stays below that
 *
 * The kernel refuses every absolute link beneath a root.  This walk lets the kernel follow it,
 * and then looks where the descriptor has come to.  So a file that moves meanwhile cannot deceive
 * it.
 *
 * Thread   the one that has the job, never the loop.
 */
#ifndef IO_DISK_LINKS_H
#define IO_DISK_LINKS_H

#include "io/disk/job.h"

/* The path needs this walk from the start. */
bool io_links_inner(const char *path);
/* A descriptor, or -errno as of openat2(2).  Logs the link that is refused. */
int io_links_open(const struct io_job *);
/* As io_links_open(), for a directory and a path.  tells: logs the link that is refused. */
int io_links_open_at(int root, const char *path, const struct open_how *, bool tells);
/* Where a descriptor is, from malloc; NULL: unknown. */
char *io_links_name(int fd);

#endif
