/* wire/codec/fcgi_record.h -- FastCGI records, checked before libfcgi reads them.
 *
 * libfcgi 2.4.2 aborts the process if one pair of PARAMS claims 2 GiB, and waits for the second
 * half of a request.  So bytes are collected here, bounded, without waiting. libfcgi reads only
 * whole requests that record_take() has written.
 *
 *   record_feed() --> RECORD_REQUEST --> record_take() --> ... look-up ... --> record_answered()
 *        ^                                    |
 *        `------ still fed: skips a body, notices ABORT_REQUEST, holds back the next request
 *
 * Pure: bytes in, result out; no descriptor, no clock, no global.  Any split of the bytes gives the
 * same results.
 */
#ifndef WIRE_FCGI_RECORD_H
#define WIRE_FCGI_RECORD_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"
#include "wire/codec/fcgi.h"

#define RECORD_VALUES_MAX 256 /* bytes of one GET_VALUES */
/* bytes of one request; one record holds them when they are written again */
#define RECORD_PARAMS_MAX 65535

enum record_result {
	RECORD_MORE,    /* all bytes are used */
	RECORD_REQUEST, /* a whole request: call record_take(), then feed on */
	/* The next request begins: feed on after record_answered(). */
	RECORD_HOLD,
	/* The web server aborted the taken request; reply confirms it. */
	RECORD_ABORT,
	RECORD_CLOSE, /* send reply, then close */
	RECORD_BAD,   /* close; bytes after this one cannot be trusted */
};

/* Shared by all connections, and outlives them. */
struct record_conf {
	/* Variables that are passed on; the others are checked and dropped. */
	const struct text *names;
	size_t n_names;
	unsigned max_conns, max_reqs; /* the answer to GET_VALUES */
};

/* One for each connection, idle ones too, so it holds no memory that only a request needs. */
struct record {
	const struct record_conf *conf;
	GString *params;          /* NULL without a request */
	GString *values;          /* of GET_VALUES; NULL without one */
	uint16_t id, left;        /* of the request; bytes left of this record */
	uint8_t head[FCGI_HEAD];  /* of the current record */
	uint8_t begin[FCGI_HEAD]; /* content of BEGIN_REQUEST */
	uint8_t head_len, begin_len, padding, into, role;
	bool active : 1;  /* a request is being collected */
	bool running : 1; /* a request was taken and is not answered yet */
	bool held : 1;    /* head belongs to the next request */
	bool keep : 1;    /* KEEP_CONN was set */
	/* More than RECORD_PARAMS_MAX bytes came: the taken request has no variables. */
	bool too_long : 1;
};

void record_init(struct record *, const struct record_conf *);
void record_free(struct record *);
void record_drop_string(GString **); /* sets it to NULL; NULL is allowed */

/* Removes bytes from *in.  Appends answers that need no file (GET_VALUES, refusals) to reply, at
 * most twice as many bytes as were read. */
enum record_result record_feed(struct record *, struct text *in, GString *reply);

/* True if no request has begun: the peer may be silent. */
bool record_idle(const struct record *);

/* Writes the request for libfcgi: KEEP_CONN set, only the needed variables, no STDIN.  The
 * string is yours. */
GString *record_take(struct record *);
void record_answered(struct record *);

/* True if these bytes after a taken request are the end of its body and nothing else: the peer
 * has sent everything. */
bool record_body_ends(const struct record *, struct text);

#endif
