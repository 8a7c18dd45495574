/* io/file.h -- an open regular file, and the backends that send its bytes to a socket.
 *
 * Owner    io_file_new() takes the descriptor and gives one reference.  The engine holds one of its
 *          own while a thread uses the file, so a descriptor is never closed during a read.  The
 *          last io_file_put() closes it off the loop.
 * Thread   the loop's.
 */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "io/io.h"
#include "io/start/version.h"

#define IO_AHEAD 4u /* windows of a file in flight */

struct io_file {
	int fd;
	uint32_t refs;
	uint64_t size;  /* at open: the length promised to clients */
	bool no_nowait; /* its file system has no preadv2(RWF_NOWAIT) */
	bool grows;     /* io_file_temp(): size is the number of bytes written so far */
	bool no_direct; /* engine: O_DIRECT is refused, or not asynchronous */
	bool watched;   /* version is set: a change during a send is detected */
	bool stale;     /* it has changed: the next request opens the file again */
	struct io_version version;
	uint64_t dev;        /* engine: st_dev, 0: unknown */
	uint64_t ino;        /* of a watched file */
	uint64_t watched_ns; /* the times of the file have been watched since then */
	/* Engine: when a thread last read it, or saw that a read writes no access time. */
	uint64_t marked_ns;
	struct io *io;
	struct io_seen *seen;           /* engine: what is known of its windows */
	struct io_job *ahead[IO_AHEAD]; /* engine: reads of its next windows */
};

/* NULL: no memory, and fd is closed */
struct io_file *io_file_new(struct io *, int fd, uint64_t size);
/* A temporary file, from IO_OPEN without a path: empty, and longer after each IO_WRITE. */
struct io_file *io_file_temp(struct io *, int fd); /* NULL: no memory, and fd is closed */
struct io_file *io_file_ref(struct io_file *);
void io_file_put(struct io_file *); /* NULL is allowed */
/* sets the version that its promised length and tag come from */
void io_file_watch(struct io_file *, const struct statx *);
/* 0: the contents are the watched ones, or the file is not watched.  -ETXTBSY: other contents;
 * -ENODATA: fewer bytes.  Never waits, so on a file system of another machine the result may be
 * old. */
int io_file_look(struct io_file *);
/* True for a file system of this machine, as far as known without waiting: its clock times the
 * files, and bytes in memory are available at once. */
bool io_fd_is_local(int fd);
bool io_facts_are_local(const struct statx *); /* the same, of an IO_OPEN */
/* A thread has just read these bytes. */
void io_file_proved(struct io_file *, uint64_t off, uint64_t len);
/* Reading it writes no access time: one was written lately, or its file system keeps none. */
void io_file_marked(struct io_file *);
/* True if the page cache has all these bytes, or is reading them: a hint, never waits. */
bool io_file_counted(const struct io_file *, uint64_t off, uint64_t len);

/* A backend is a table at the end of its file; backends.def lists them.
 *
 * READ and SEND_FILE ops reach the backend through the engine.  Without .send the sender reads
 * windows and sends memory.
 */
struct file_backend {
	const char *name;  /* value of server.network-backend */
	const char *doc;   /* its line in the manual */
	const char *waits; /* what its loop may wait for; NULL: for nothing */
	const char *tag;   /* first word of its timing lines: "network_gthread_aio.c.78:" */
	bool send_file;    /* IO_SEND_FILE works; otherwise use IO_READ and IO_SEND */
	bool holds;        /* windows asked for again are sent from memory: io/hotset.h */
	uint32_t chunk;    /* default of the bytes read at a time; 0: IO_WINDOW */
	struct {
		uint32_t async, sync;
	} counts;                           /* FILE_COUNTS() of io/counters.h */
	const struct file_backend *instead; /* used if open() fails; NULL: open() never fails */
	/* SEND_FILE: idle threads read windows after the next one. */
	bool spare_ahead;
	/* sets io->backend_state; -errno and *why, a text */
	int (*open)(struct io *, const struct io_conf *, const char **why);
	void (*close)(struct io *);
	void (*read)(struct io_op *);
	void (*send)(struct io_op *);
	void (*flush)(struct io *);     /* before the loop waits; NULL: no work */
	bool (*leave)(struct io *);     /* see io_leave(); NULL: true */
	void (*drop)(struct io_sock *); /* frees sock->kept; NULL: never sets it */
};
/* .waits of a backend that uses io_look_for() */
#define IO_LOOK_WAITS                                                                             \
	"nothing; where cachestat(2) is refused, perhaps for a disk that has hung for less than " \
	"50 ms"

extern const struct file_backend *const file_backends[]; /* NULL at the end */
/* Also finds names of old configurations ("write", "linux-aio" ...); *note then names the
 * backend. NULL: unknown. */
const struct file_backend *file_backend_by_name(const char *name, const char **note);
const struct file_backend *io_backend(const struct io *); /* the current backend */
/* why it is not the requested one; NULL: it is */
const char *io_fallback_why(const struct io *);

#endif
