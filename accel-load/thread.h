/* accel-load/thread.h -- one thread: its loop, its connections, its counts; shares nothing.
 *
 *	idle --> conn_ask() --> running --> idle        keep-alive
 *	  ^                        |`--> ending --'     the server closes: its FIN is awaited, so
 *	  `------- resting <-------'                    that TIME_WAIT is not on our side
 *	                           after an error
 */
#ifndef ACCEL_LOAD_THREAD_H
#define ACCEL_LOAD_THREAD_H

#include <pthread.h>
#include "accel-load/answer.h"
#include "accel-load/count.h"
#include "accel-load/urls.h"
#include "base/clock.h"
#include "base/list.h"
#include "io/io.h"

#define NEVER UINT64_MAX

struct conn;
struct asks;

/* Of all threads. */
struct run {
	const struct load_conf *conf;
	struct urls *urls;
	struct urls *beside; /* --beside; empty: none */
	const struct load_protocol *protocol;
	const struct sockaddr *from;        /* NULL: any */
	uint64_t start_ns, warm_ns, end_ns; /* warm_ns: what happens from then on counts */
	int over_fd;                        /* an eventfd: a thread has nothing left to do */
	unsigned rounds; /* 1; --hold: one more for each line on standard input.  Atomic. */
};

/* The requests of --beside; as the fields of the same names in struct thread. */
struct beside {
	struct counts *counts, *warming, *counted; /* NULL: no --beside */
	struct turn turn;
	uint64_t outstanding;
};

struct thread {
	const struct run *run;
	const struct load_conf *conf;
	unsigned nr;
	pthread_t id;
	struct io *io;
	struct io_secure **secure;        /* secure.h */
	struct counts *counts;            /* one of these */
	struct counts *warming, *counted; /* warming: until run->warm_ns; NULL: no --warm-up */
	struct turn turn;
	struct beside beside;
	struct asks *asks;      /* streams.h; NULL: another protocol */
	struct list streams[2]; /* HTTP/2: with a request, the oldest first; [1]: beside */
	struct conn *conns;
	unsigned nconns;
	/* Connections: ready for a request; waiting after an error.  Then those with requests, and
	 * those that the server closes, each with the oldest first. */
	struct list idle, resting, running, ending;
	uint64_t now;                         /* ns; read at the beginning of each callback */
	uint64_t limit, started, outstanding; /* requests; limit 0: none */
	uint64_t scheduled;                   /* open loop: requests so far */
	unsigned round;                       /* --hold: each connection is asked once in a round */
	/* when the last request ended, or the time was over */
	uint64_t ended_ns;
	uint64_t warm_cpu_ns; /* of the process, when the warm-up ended */
	bool stopping;
	uint64_t never,
	    least; /* at the end: connections without an answer, fewest answers of one */
	/* atomic: */
	bool stop; /* set by others, with io_wake() */
	/* Rounds that are done, UINT_MAX at the end.  With --hold the connections stay open until
	 * stop. */
	unsigned done;
	unsigned held; /* --hold: connections that are answered and open */
	/* the last connect(2) that failed with a cause on this side: EADDRNOTAVAIL, ... */
	int trouble;
	const char *tls_trouble; /* why the last handshake failed; NULL: none did */
};

/* NULL: no memory or descriptor; *err = -errno. */
struct thread *thread_new(const struct run *, unsigned nr, int *err);
int thread_start(struct thread *); /* 0 or -errno */
void thread_stop(struct thread *); /* any thread */
void thread_join(struct thread *);
void thread_free(struct thread *);

static inline bool
thread_has_time(const struct thread *t)
{
	return (!t->stopping && t->now < t->run->end_ns);
}

/* May the thread start another request? */
static inline bool
thread_may_start(const struct thread *t)
{
	return (thread_has_time(t) && (t->limit == 0 || t->started < t->limit));
}

#endif
