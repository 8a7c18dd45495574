/* files/warm/warm.h -- make a file warm: a web server that opens it next does not wait for a disk.
 *
 *   warm_file() --> found a moment ago? --------------------------------> true, w->found is filled
 *        |    `---> in memory, says a local file system (no thread)? ---> true
 *        |    `---> being looked up?  join ------------------.
 *        `--------> a thread opens it, reads what is wanted --+-> w->done(w), once
 *                                           w->deadline passes -'
 * After the answer the rest of a longer file is read ahead, a little at a time.
 *
 * Names    absolute.  A name that ends in a slash, or is a directory, stands for the first of its
 *          index files that exists.
 * Owner    *w is the caller's, and lent from warm_file() == false until done() or warm_cancel().
 * Units    bytes; milliseconds where a name says so; nanoseconds in found.
 * Thread   the loop's.  The threads that may sleep are those of io/disk/pools.h.
 */
#ifndef FILES_WARM_WARM_H
#define FILES_WARM_WARM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/histogram.h"
#include "files/lookup.h"
#include "wire/http1/range.h"

struct io;
struct warm;
struct warm_counters; /* files/warm/counters.h */

enum warm_how { WARM_STAT, WARM_OPEN, WARM_READ };

#define WARM_ALL UINT64_MAX

struct warm_conf {
	enum warm_how how;
	/* WARM_READ: bytes in memory before the answer, at least a window (256 KiB); WARM_ALL. */
	uint64_t before;
	/* WARM_READ: bytes from the start, read at full speed when the file has its turn, also
	 * after the answer.  With more than `before` the answer waits for the turn; 0: just
	 * those. */
	uint64_t soon;
	/* bytes after those of before, read ahead after the answer; 0: none; WARM_ALL */
	uint64_t behind;
	/* Files must be below one of them; NULL at the end; NULL or empty: anywhere. */
	const char *const *roots;
	/* "index.html", ...; NULL at the end; NULL: a directory is -EISDIR */
	const char *const *index;
	const char *const *siblings; /* ".gz", ...: warmed too if they exist; NULL */
	unsigned deadline_ms;        /* 0: none */
	/* for this long an answer, or an absence, answers other requests; 0: not at all */
	unsigned remember_ms;
	unsigned slow_ms; /* a look-up that takes longer is logged, ev=file.slow; 0: none is */
};

struct warm_stages {
	unsigned waiting; /* requests that wait for their file, or for warm_open() */
	struct histogram queue, stat, read; /* nanoseconds: waiting for a thread, open(), reading */
};

struct warm_found {
	/* 0; -errno, -ETIMEDOUT: deadline, -EAGAIN: queue full or device hangs, -EXDEV: not below a
	 * root */
	int err;
	bool hot;        /* no thread was needed */
	bool remembered; /* the answer of an earlier request */
	/* the index file that was found, of conf.index; NULL: path is the file itself */
	const char *index;
	struct statx stx; /* err == 0: facts about the file */
	bool settled;     /* other contents will have other times (io/start/version.h) */
	/* waited for a thread, opened, read; 0 if hot */
	uint64_t queue_ns, stat_ns, read_ns;
	/* these times passed without a sleep: the threads waited for no disk */
	bool awake;
};

struct warm_wait {
	struct lookup_wait wait; /* .client is the caller's, the rest warm.c's */
	/* found is filled; never from inside warm_file() or warm_cancel() */
	void (*done)(struct warm_wait *);
	/* The bytes that will be sent, in whole pages; none: nothing is read. */
	struct range_set want;
	/* A file that appears when it was absent: an absence is not remembered, and there are no
	 * siblings. */
	bool cached;
	struct warm_found found;
	/* warm.c's */
	struct list arrived;
	uint64_t since_ns;
};

/* *conf, its lists, *counters and *stages must outlive it.  -errno: *bad is the root that cannot be
 * opened, or NULL; -ENOSYS: no openat2(2). */
int warm_new(const struct warm_conf *, struct io *, struct warm_counters *, struct warm_stages *,
    struct warm **, const char **bad);
void warm_free(struct warm **); /* after all waits have ended */

bool warm_file(struct warm *, const char *path, struct warm_wait *);
/* Drops a small file from memory, in a thread.  False: not now, or its file system cannot tell what
 * is in memory.  done(arg, gone) comes later, unless warm_free() is first; gone: it is cold now. */
bool warm_forget(struct warm *, const char *path, void (*done)(void *arg, bool gone), void *arg);
uint64_t warm_memory(const struct warm *); /* bytes of remembered answers */
/* done() does not come.  May be called if *w waits for nothing. */
void warm_cancel(struct warm_wait *);

struct warm_open;
struct warm_opening {
	uint32_t client;
	uint64_t since_ns;     /* the deadline of warm_conf counts from here; io_now() */
	struct range_set want; /* as in warm_wait */
	/* Comes later, once.  res: a descriptor, O_RDONLY, which is the callee's; or -errno as in
	 * warm_found, -EPERM for what is neither a file nor a directory. */
	void (*done)(void *arg, int res);
	void *arg;
};

/* Opens a file or directory for another process, whatever is remembered of it, and reads what is
 * wanted through this descriptor: see open.c.  NULL: it is below no root. */
struct warm_open *warm_open(struct warm *, const char *path, const struct warm_opening *);
void warm_open_cancel(struct warm_open **); /* done() does not come; *o may be NULL */

#endif
