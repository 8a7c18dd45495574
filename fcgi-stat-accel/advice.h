/* fcgi-stat-accel/advice.h -- notices when the questions show that nothing is accelerated.
 *
 *   answers --> window (100 of them, and this many ms) --> shares --> an advice begins, or ends
 *
 *   begins   at ADVICE_BEGIN_PERCENT of a window; ends below ADVICE_END_PERCENT: a share between
 *            them changes nothing.
 *            always-warm, cache-misses, and one name that exists need ADVICE_LONG such windows in
 *            a row: minutes without a cold file, a new cache, a benchmark of one file are usual.
 *   few requests: the window stays open, and nothing is said.
 *
 * No clock, no file, no memory of its own.  An answer costs a hash of its path and a few additions.
 *
 * Units    nanoseconds.
 * Thread   the loop's.
 */
#ifndef FCGI_STAT_ACCEL_ADVICE_H
#define FCGI_STAT_ACCEL_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* A small window could be one page and its missing images. */
#define ADVICE_ANSWERS 100u
/* A web server opens few connections, and a refused one again for each request. */
#define ADVICE_CONNS 20u
/* "Nearly all": a healthy site has a few per cent of absences; a storm of 404s reaches half. */
#define ADVICE_BEGIN_PERCENT 90u
#define ADVICE_END_PERCENT   75u
/* One name: a favourite file reaches a third of the answers; a constant name reaches all but those
 * from other locations. */
#define ADVICE_EQUAL_BEGIN 98u
#define ADVICE_EQUAL_END   90u
/* With the default --advice (a minute): an hour. */
#define ADVICE_LONG 60u
/* A cache that fills begins with misses only. */
#define ADVICE_MISS_PERCENT 99u
/* Questions that show the order; more decide nothing new. */
#define ADVICE_PROBES 3u
/* The questions must come within this many windows; otherwise the advice names both causes. */
#define ADVICE_PROBE_WINDOWS 20u
/* In a warm window at most one answer of this many waited for a disk. */
#define ADVICE_COLD_ONE_OF 1000u
/* Shorter waits are a thread's switch, not a disk's answer. */
#define ADVICE_COLD_NS 1000000u
/* CPU of server and accelerator for a question about a hot file (nginx: 36 us with it, 9 without).
 * An accelerator that saves less than this costs more than it gives. */
#define ADVICE_ASK_NS 26000u
/* An advice that comes and goes is logged once in this time. */
#define ADVICE_AGAIN_NS (3600 * 1000000000ull)
/* Bytes of an example; longer names of clients are cut. */
#define ADVICE_NAME_MAX 200u

enum advice_id {
#define ADVICE(name, id, seen, next) ADVICE_##name,
#include "fcgi-stat-accel/advice.def"
#undef ADVICE
	ADVICE_IDS
};
#define ADVICE_CAUSES (ADVICE_failing + 1)

struct advice_info {
	const char *id, *seen, *next;
};
extern const struct advice_info advice_infos[ADVICE_IDS];

struct advice_name {
	uint8_t n;
	bool cut; /* the name is longer */
	char text[ADVICE_NAME_MAX];
};

struct advice_state {
	bool on;
	bool logged;        /* that it began */
	uint64_t logged_ns; /* when; 0: never */
	unsigned percent;
	/* of the window, or of all windows that led to it */
	uint64_t answers, waited_ns;
	struct advice_name example; /* may be empty */
};

struct advice_window {
	uint64_t since_ns; /* of the first answer */
	uint64_t answers, files, cold, misses, waited_ns;
	uint64_t causes[ADVICE_CAUSES];
	/* a majority vote: at least this many answers are for the name with this hash */
	uint64_t votes, hash;
	struct advice_name name, file, example[ADVICE_CAUSES]; /* the first of each kind */
};

/* Files may be warm when the question comes because they stay in memory, or because the server has
 * read them before it asks.  To find out, one file is dropped from memory.  If it is warm again at
 * the next question, another program has read it.  Only after ADVICE_LONG windows without a cold
 * file, at most one file a window. */
struct advice_probe {
	enum { PROBE_IDLE, PROBE_SENT, PROBE_OUT } state;
	uint64_t hash; /* of the file that was dropped */
	unsigned warm, cold;
};

struct advice {
	uint64_t window_ns; /* 0: never says anything */
	/* Drops a file from memory, then calls advice_forgotten().  False: not possible now; NULL:
	 * never. */
	bool (*forget)(struct advice *, const char *path);
	void *forget_arg;
	const char *const *roots; /* shown beside examples; NULL: none */
	/* began or ended; NULL: no callback */
	void (*say)(const struct advice *, enum advice_id);
	struct advice_state state[ADVICE_IDS];
	/* inside */
	struct advice_window window;
	struct advice_probe probe;
	struct {
		uint64_t windows, answers, waited_ns;
	} warm, equal, missing; /* windows in a row */
	uint64_t equal_hash;
	struct {
		uint64_t since_ns, all, refused;
	} conns;
};

struct advice_answer {
	/* path that was looked up; unnamed: what the request has in its place */
	struct text path;
	bool unnamed;
	bool cached;        /* of a cache of nginx, where absences are usual */
	int err;            /* of the look-up */
	bool fresh;         /* the file was looked at for this answer, with its bytes */
	uint64_t waited_ns; /* opening and reading; 0: no thread was needed */
	bool awake;         /* the thread did not sleep meanwhile: it waited for no disk */
};

void advice_answered(struct advice *, const struct advice_answer *, uint64_t now_ns);
/* gone: the file of .forget is cold now. */
void advice_forgotten(struct advice *, bool gone);
/* A new connection. */
void advice_connected(struct advice *, bool welcome, uint64_t now_ns);

static inline struct text
advice_example(const struct advice_state *s)
{
	return ((struct text){ s->example.text, s->example.n });
}

#endif
