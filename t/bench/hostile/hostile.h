/* t/bench/hostile/hostile.h -- clients that try to take a server from the others.
 *
 *   options.c   what is asked for: one or more attacks, each with its own connections and addresses
 *   attack.c    what a connection of each attack sends, and when
 *   http2.h     HTTP/2, and the attacks h2-*
 *   engine.c    one epoll loop that does it and counts what comes back
 *   report.c    the counts as JSON
 *
 * Only loopback targets.  Connections, rate and time are bounded, and every connection is closed at
 * the end.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "t/bench/args.h"
#include "t/bench/hostile/http2.h"

#define ATTACKS_MAX 64
#define CONNS_MAX   20000 /* of all attacks together */
#define SECONDS_MAX 3600
#define RATE_MAX    50000 /* new connections per second of one attack */
#define PIECE_MAX   16384 /* bytes one call of next() may give */
#define NS          1000000000ull
#define NEVER       UINT64_MAX

struct peer;
struct run;

struct attack {
	const char *name, *doc;
	unsigned conns, rate; /* default: connections at a time; new ones per second */
	/* between two pieces; or after an answer, before next() is called anew */
	unsigned pause_ms;
	/* breaks the connection this long after the last piece; 0: never */
	unsigned reset_ms;
	unsigned sip;   /* bytes read at a time, one sip in 100 ms; 0: reads all */
	bool deaf;      /* never reads */
	bool half_deaf; /* every second connection never reads */
	/* next() is called anew when all requests so far are answered */
	bool again;
	/* The next piece to send and how many requests begin in it; 0: nothing more. */
	size_t (*next)(struct peer *, char out[PIECE_MAX], unsigned *requests);
	/* of HTTP/2, where next() is h2_next(): the frames of the next piece; none: nothing more */
	void (*frames)(struct peer *, struct h2_out *);
};
extern const struct attack attacks[], h2_attacks[]; /* end with a NULL name */
const struct attack *attack_named(const char *);    /* or NULL */

/* One attack of this run. */
struct run {
	const struct attack *attack;
	unsigned conns, rate, pause_ms;
	struct in_addr from; /* first source address */
	unsigned nfrom;      /* how many, counting up */
	struct peer *peers;
	uint64_t next_connect; /* ns */
	unsigned turn;         /* of the source addresses */

	uint64_t connections, failed, requests, sent, received, answers[6];
	uint64_t closed, broken, resets; /* by the server: FIN, RST; by us: RST */
	unsigned open, open_most;
	uint64_t frames; /* sent, of HTTP/2 */
	struct h2_said h2;
};

struct peer {
	struct run *run;
	int fd; /* -1: none */
	/* counts connections of the run; the seed of what is sent */
	unsigned number;
	unsigned step; /* pieces so far */
	unsigned asked, answered;
	unsigned matched; /* bytes of "HTTP/1.1 N" seen at the end of what came */
	uint64_t due;     /* next piece, or the reset when `last` */
	uint64_t sip_at;
	bool connecting, blocked, last, reading;
	char *rest; /* rest of a piece that the socket did not take as a whole */
	size_t rest_len;
	uint32_t stream; /* of HTTP/2: the next one */
	bool open_head;  /* no other frame may come now */
	struct h2_in h2;
};

struct options {
	struct sockaddr_in addr;
	char host[64];
	double seconds;
	const char *file, *big, *app, *app_big, *stream, *stale;
	const char *cold; /* prefix; names are PREFIX0 to PREFIX(ncold-1) */
	unsigned ncold;
	struct run runs[ATTACKS_MAX];
	unsigned nruns;
};
extern struct options opt;

void options_read(int argc, char **argv);
void engine_run(void); /* ends when the time is over, or on INT or TERM */
void report(double seconds);

uint64_t clock_ns(void);
uint32_t dice(uint32_t sides); /* the same sequence in each run */

#endif
