/* fcgi-stat-accel/record.h -- FastCGI records, read and checked before libfcgi sees anything.
 *
 * libfcgi 2.4.2 ends the process when one pair of PARAMS claims 2 GiB, and keeps a thread
 * waiting for the second half of a request.  So bytes are collected here, bounded, without
 * waiting, and what libfcgi gets to read is a whole request that record_take() wrote anew.
 *
 * Pure: bytes in, result out; no descriptor, no clock, no global.  Any split of the bytes gives
 * the same results.
 */
#ifndef FCGI_STAT_ACCEL_RECORD_H
#define FCGI_STAT_ACCEL_RECORD_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_HEAD	  8
#define RECORD_SMALL_MAX  256		/* BEGIN_REQUEST, GET_VALUES */
#define RECORD_PARAMS_MAX 65535		/* of one request; fits one record when written anew */

enum record_result {
	RECORD_MORE,			/* every byte is used */
	RECORD_REQUEST,			/* a whole request: record_take() it, then feed on */
	RECORD_CLOSE,			/* send what is in reply, then close */
	RECORD_BAD,			/* close; nothing after this byte can be trusted */
};

struct record {
	uint8_t	 head[RECORD_HEAD];	/* of the record that is being read */
	unsigned head_len;
	unsigned left, padding;		/* bytes of it still to come */
	enum { INTO_NOTHING, INTO_SMALL, INTO_PARAMS } into;
	uint8_t	 small[RECORD_SMALL_MAX];
	unsigned small_len;

	bool	 active, keep;		/* a request is being collected; KEEP_CONN was set */
	unsigned id, role;
	GString *params;		/* NULL without a request */
	unsigned max_requests;		/* what GET_VALUES is told */
};

void record_init(struct record *, unsigned max_requests);
void record_free(struct record *);

/* Reads up to n bytes; *used says how many.  Answers that need no file (GET_VALUES, refusals) are
 * appended to reply, at most twice as many bytes as were read. */
enum record_result record_feed(struct record *, const uint8_t *, size_t n, size_t *used,
    GString *reply);

/* Nothing has been begun: a peer that is silent now owes us nothing. */
bool record_idle(const struct record *);

/* The request as libfcgi shall read it: KEEP_CONN set, the names in use only, no STDIN.  Yours. */
GString *record_take(struct record *);

#endif
