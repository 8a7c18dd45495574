/* base/log.h -- one line per event, key=value or JSON, to the registered sink.
 *
 *   ts=1173101341.237616 level=warn ev=exchange.failed id=c17.3/4bf92f35 backend=unix:/run/a ...
 *   {"ts":1173101341.237616,"level":"warn","ev":"exchange.failed","id":"c17.3","request":"4bf9...
 *
 * base/ never waits: the sink (io/log/logfile.h in the server) takes a finished line and must not
 * block.
 * Without a sink, lines go to stderr.
 * Thread   any.  A line is formatted on the caller's stack, at most LOG_LINE_MAX bytes.  A longer
 *          one is cut with "..."; one in JSON is still an object, and has "cut":true.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/buf.h"
#include "base/text.h"

#define LOG_LINE_MAX   4096
#define LOG_ID_REQUEST '/' /* splits an id: connection, then request */

enum log_level { LOG_INFO, LOG_WARN, LOG_ERROR, LOG_ALERT };

struct log_field {
	const char *key;
	enum { LF_KIND_STR, LF_KIND_TEXT, LF_KIND_U64, LF_KIND_I64, LF_KIND_ERR } kind;
	union {
		const char *s;
		struct text t;
		uint64_t u;
		int64_t i;
	};
};

#define LF_STR(k, v)  ((struct log_field){ .key = (k), .kind = LF_KIND_STR, .s = (v) })
#define LF_TEXT(k, v) ((struct log_field){ .key = (k), .kind = LF_KIND_TEXT, .t = (v) })
#define LF_U64(k, v)  ((struct log_field){ .key = (k), .kind = LF_KIND_U64, .u = (uint64_t)(v) })
#define LF_I64(k, v)  ((struct log_field){ .key = (k), .kind = LF_KIND_I64, .i = (v) })
/* v: -errno; 0: no field */
#define LF_ERR(k, v) ((struct log_field){ .key = (k), .kind = LF_KIND_ERR, .i = (v) })

/* Values with bytes other than letters, digits and ./:_-+@ are quoted and escaped. */
#define log_event(level, id, ev, ...)                                                    \
	log_event_fields((level), (id), (ev), (const struct log_field[]){ __VA_ARGS__ }, \
	    sizeof((const struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field))

/* For events that an outsider (a client, an application, a disk) can cause: at most per_second
 * lines a second from this place in the program, in all threads.  The others are counted, and the
 * next line says suppressed=N. */
#define log_limited(per_second, level, id, ev, ...)                             \
	do {                                                                    \
		static struct log_site site_;                                   \
		if (log_permit(&site_, (ev), (per_second)))                     \
			log_site_fields(&site_, (level), (id),                  \
			    (const struct log_field[]){ __VA_ARGS__ },          \
			    sizeof((const struct log_field[]){ __VA_ARGS__ }) / \
				sizeof(struct log_field));                      \
	} while (0)

struct log_site {       /* static, one for each log_limited() */
	const char *ev; /* NULL: not in the list of sites yet */
	struct log_site *next;
	uint64_t used; /* start of the second, ms << 16 | lines in it */
	uint64_t suppressed;
};
bool log_permit(struct log_site *, const char *ev, unsigned per_second);
void log_site_fields(struct log_site *, enum log_level, const char *id, const struct log_field *,
    size_t n);
uint64_t log_suppressed(void); /* suppressed lines since the start */
/* Logs ev=log.suppressed for each kind with a count that was not logged yet.  A new second
 * begins for each. */
void log_suppressed_flush(void);

struct log_entry { /* a line before it has its form */
	enum log_level level;
	/* "c17.3", or "c17.3/REQUEST", which JSON has in two fields; id may be NULL */
	const char *id, *ev;
	const struct log_field *f;
	size_t n;
};

/* The line in the form of the process, with its newline; returns its length. */
size_t log_line(char out[LOG_LINE_MAX], const struct log_entry *);
size_t log_line_event(char out[LOG_LINE_MAX], const struct log_entry *); /* text, from ev on */
void log_set_json(bool); /* the form of later lines, in all threads */
bool log_is_json(void);
enum log_level log_level_of(struct text line); /* of either form; LOG_INFO: a line without level */

/* Lines of this thread above LOG_INFO are added to *said, too, as text, from the name of the event
 * on; NULL: no more.  Returns what was set before. */
struct buf *log_overhear(struct buf *said);

/* id may be NULL. */
void log_event_fields(enum log_level, const char *id, const char *ev, const struct log_field *,
    size_t n);
void log_raw(struct text line);    /* a finished line with its newline (timing lines) */
bool log_goes_to(const void *arg); /* true if this is the argument of the sink */
/* line ends with '\n'.  NULL: stderr. */
void log_set_sink(void (*sink)(void *arg, struct text line), void *arg);

#endif
