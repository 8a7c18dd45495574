/* fcgi-stat-accel/warm/warm.h -- make a file warm: the web server that opens it next will not wait for a disk.
 *
 *   warm_file() --> known a moment ago? --------------------------------> true, w->found is filled
 *        |    `---> in memory, says a local file system (no thread)? ---> true
 *        |    `---> asked before?  wait with those -----------.
 *        `--------> a thread opens it, reads what is wanted --+-> w->done(w), once
 *                                           w->deadline passes -'
 * After the answer the rest of a longer file is read ahead, a little at a time.
 *
 * Names    absolute.  One that ends in a slash, or is a directory, stands for its first index file that is there.
 * Owner    *w is the caller's, and lent from warm_file() == false until done() or warm_cancel().
 * Units    bytes; milliseconds where a name says so; nanoseconds in found.
 * Thread   the loop's.  The threads that may sleep are those of io/disk/pools.h.
 */
#ifndef FCGI_STAT_ACCEL_WARM_WARM_H
#define FCGI_STAT_ACCEL_WARM_WARM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/list.h"
#include "wire/range.h"
#include "fcgi-stat-accel/stats.h"

struct io;
struct warm;

enum warm_how { WARM_STAT, WARM_OPEN, WARM_READ };

#define WARM_ALL UINT64_MAX

struct warm_conf {
	enum warm_how how;
	uint64_t before;		/* WARM_READ: bytes in memory before the answer, a window (256 KiB) at least; WARM_ALL */
	uint64_t behind;		/* bytes behind those that are read ahead after it; 0: none; WARM_ALL */
	const char *const *roots;	/* files must lie below one of them; NULL at the end; NULL or empty: anywhere */
	const char *const *index;	/* "index.html", ...; NULL at the end; NULL: a directory is -EISDIR */
	const char *const *siblings;	/* ".gz", ...: warmed too if they are there; NULL */
	unsigned deadline_ms;		/* 0: none */
	unsigned remember_ms;		/* how long an answer holds for others, absences too; 0: not at all */
	unsigned slow_ms;		/* longer: one line in the log, ev=file.slow; 0: none */
};

struct warm_found {
	int	     err;		/* 0; -errno, -ETIMEDOUT: deadline, -EAGAIN: queue full or device hangs, -EXDEV: not below a root */
	bool	     hot;		/* no thread was needed */
	const char  *index;		/* which index file was meant, of conf.index; NULL: path is the file itself */
	struct statx stx;		/* err == 0: of the file */
	bool	     settled;		/* other contents will have other times (io/version.h) */
	uint64_t     queue_ns, stat_ns, read_ns;	/* waited for a thread, opened, read; 0 when hot */
};

struct warm_wait {
	void (*done)(struct warm_wait *);	/* found is filled; never from inside warm_file() or warm_cancel() */
	uint32_t     client;		/* who asks: waiting requests of different clients take turns */
	struct range_set want;		/* the bytes that will be sent, in whole pages; none: nothing is read */
	struct warm_found found;
	/* warm.c's */
	struct list  link, arrived;
	uint64_t     since_ns;
	void	    *entry;
};

/* *conf, its lists and *stats outlive it.  -errno: *bad is the root that cannot be opened, or NULL; -ENOSYS: no openat2(2). */
int  warm_new(const struct warm_conf *, struct io *, struct stats *, struct warm **, const char **bad);
void warm_free(struct warm **);		/* nobody may wait any more */

bool warm_file(struct warm *, const char *path, struct warm_wait *);
void warm_cancel(struct warm_wait *);	/* done() does not come; waiting or not */

#endif
