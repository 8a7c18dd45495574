/* io/file.h -- an open regular file, and the ways its bytes travel to a socket.
 *
 * Owner    io_file_new() takes the descriptor and gives one reference; the engine holds one of its own
 *          while a thread uses the file, so a descriptor is never closed under a read.  The last
 *          io_file_put() closes it off the loop.
 * Thread   the loop's.
 */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/counter.h"
#include "io/io.h"
#include "io/version.h"

#define IO_AHEAD 4u /* windows of a file that may be on their way */

struct io_file {
	int fd;
	uint32_t refs;
	uint64_t size;        /* when it was opened: the length that was promised to clients */
	uint64_t resident_ns; /* when all of it was last known to be in memory (files of one window), 0: unknown */
	bool no_nowait;       /* its file system has no preadv2(RWF_NOWAIT) */
	bool grows;           /* io_file_temp(): size is what has been written so far */
	bool no_direct;       /* engine: O_DIRECT is refused, or not asynchronous there */
	bool watched;         /* version is set: a change of it is noticed while the file is sent */
	bool stale;           /* and was: opened anew for the next one who asks */
	struct io_version version;
	uint64_t dev;         /* engine: st_dev, 0: not asked yet */
	struct io *io;
	struct io_proof *proof; /* engine: which windows are known to be in memory */
	struct io_job *ahead[IO_AHEAD]; /* engine: reads of its next windows */
};

struct io_file *io_file_new(struct io *, int fd, uint64_t size); /* NULL: no memory, fd closed */
/* A temporary file, from IO_TEMP: empty, and longer after each IO_WRITE. */
struct io_file *io_file_temp(struct io *, int fd); /* NULL: no memory, fd closed */
struct io_file *io_file_ref(struct io_file *);
void io_file_put(struct io_file *); /* NULL is fine */
void io_file_watch(struct io_file *, const struct statx *); /* what its promised length and tag were made of */
/* 0: its contents are those watched, or it is not watched.  -ETXTBSY: others; -ENODATA: fewer.  As far as is known without
 * waiting: on a file system of another machine that may be old news. */
int io_file_look(struct io_file *);
/* The clock that times it is this machine's; never waits. */
bool io_file_is_local(const struct io_file *);
/* These bytes have just been read, so they are in memory: counts for a second. */
void io_file_proved(struct io_file *, uint64_t off, uint64_t len);
/* Its page cache holds all these bytes, or is getting them: a hint, never waits. */
bool io_file_counted(const struct io_file *, uint64_t off, uint64_t len);

/* A backend is a table at the end of its file; backends.def lists them.
 *
 * READ ops and SEND_FILE ops reach the backend through the engine.  A backend without .send leaves
 * sending to the sender, which then reads windows and sends memory. */
struct file_backend {
	const char *name; /* value of server.network-backend */
	const char *doc;  /* its line in the manual */
	const char *tag;  /* first word of its timing lines: "network_gthread_aio.c.78:" */
	bool send_file;   /* IO_SEND_FILE works; otherwise use IO_READ and IO_SEND */
	uint32_t chunk;   /* bytes read at a time unless configured; 0: IO_WINDOW */
	struct { uint32_t async, sync; } counts; /* offsets into struct counters: FILE_COUNTS() */
	const struct file_backend *instead;      /* when open() fails; NULL: never fails */
	int (*open)(struct io *, const struct io_conf *, void **state, const char **why); /* -errno, *why in words */
	void (*close)(struct io *, void *state);
	void (*read)(struct io *, void *state, struct io_op *);
	void (*send)(struct io *, void *state, struct io_op *);
	void (*look)(struct io *, void *state, struct io_op *); /* OPEN, STAT; NULL: threads of the stat pool do it */
	void (*flush)(struct io *, void *state); /* before the loop waits; NULL: nothing to do */
	bool (*leave)(struct io *, void *state); /* as io_leave(); NULL: true */
	void (*drop)(struct io *, void *state, struct io_sock *); /* puts sock->kept away; NULL: never sets it */
};
#define FILE_COUNTS(name) {offsetof(struct counters, name##_async), offsetof(struct counters, name##_sync)}

extern const struct file_backend *const file_backends[]; /* NULL at the end */
/* Other names of old configurations ("write", "linux-aio" ...) find the backend that is meant; *note says so then.
 * NULL: unknown. */
const struct file_backend *file_backend_by_name(const char *name, const char **note);
const struct file_backend *io_backend(const struct io *); /* the one at work */
const char *io_fallback_why(const struct io *);           /* why it is not the one asked for; NULL: it is */

#endif
