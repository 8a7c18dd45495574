/* wire/fcgi_record.h -- FastCGI records, read and checked before libfcgi sees anything.
 *
 * libfcgi 2.4.2 ends the process when one pair of PARAMS claims 2 GiB, and waits for the second half
 * of a request.  So bytes are collected here, bounded, without waiting, and what libfcgi gets to
 * read is a whole request that record_take() wrote anew.
 *
 *   record_feed() --> RECORD_REQUEST --> record_take() --> ... looked up ... --> record_answered()
 *        ^                                    |
 *        `------ still fed: a body is skipped, ABORT_REQUEST heard, the next request held back
 *
 * Pure: bytes in, result out; no descriptor, no clock, no global.  Any split of the bytes gives
 * the same results.
 */
#ifndef WIRE_FCGI_RECORD_H
#define WIRE_FCGI_RECORD_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

#define RECORD_HEAD	  8
#define RECORD_VALUES_MAX 256		/* of one GET_VALUES */
#define RECORD_PARAMS_MAX 65535		/* of one request; fits one record when written anew */

enum record_result {
	RECORD_MORE,			/* every byte is used */
	RECORD_REQUEST,			/* a whole request: record_take() it, then feed on */
	RECORD_HOLD,			/* the next request begins: feed on after record_answered() */
	RECORD_ABORT,			/* the request that was taken is not wanted any more, and that is said in reply */
	RECORD_CLOSE,			/* send what is in reply, then close */
	RECORD_BAD,			/* close; nothing after this byte can be trusted */
};

/* What all connections share; outlives them. */
struct record_conf {
	const struct text *names;	/* variables that are passed on; the rest is checked and left behind */
	size_t	 n_names;
	unsigned max_conns, max_reqs;	/* the answer to GET_VALUES */
};

/* An idle connection has one of these: nothing is in here that only a request needs. */
struct record {
	const struct record_conf *conf;
	GString	*params;		/* NULL without a request */
	GString	*values;		/* of GET_VALUES; NULL without one */
	uint16_t id, left;		/* of the request; bytes of this record still to come */
	uint8_t	 head[RECORD_HEAD];	/* of the record that is being read */
	uint8_t	 begin[RECORD_HEAD];	/* content of BEGIN_REQUEST */
	uint8_t	 head_len, begin_len, padding, into, role;
	bool	 active : 1;		/* a request is being collected */
	bool	 running : 1;		/* one has been taken and not been answered */
	bool	 held : 1;		/* head is that of the request behind it */
	bool	 keep : 1;		/* KEEP_CONN was set */
	bool	 too_long : 1;		/* more than RECORD_PARAMS_MAX came: the request that is taken has no variables */
};

void record_init(struct record *, const struct record_conf *);
void record_free(struct record *);

/* Reads up to n bytes; *used says how many.  Answers that need no file (GET_VALUES, refusals) are
 * appended to reply, at most twice as many bytes as were read. */
enum record_result record_feed(struct record *, const uint8_t *, size_t n, size_t *used,
    GString *reply);

/* Nothing has been begun: a peer that is silent now owes us nothing. */
bool record_idle(const struct record *);

/* The request as libfcgi shall read it: KEEP_CONN set, the names in use only, no STDIN.  Yours. */
GString *record_take(struct record *);
void record_answered(struct record *);

/* These bytes behind a request that was taken are the end of its body, and nothing else: the peer has said all. */
bool record_body_ends(const struct record *, const uint8_t *, size_t n);

#endif
