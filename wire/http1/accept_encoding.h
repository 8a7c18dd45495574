/* wire/http1/accept_encoding.h -- Accept-Encoding (RFC 9110, 12.5.3): which content coding a client
 * gets. Pure.
 *
 * Bounds   ACCEPT_MEMBERS members of all lines are read; further ones count as not sent.
 * Errors   a malformed member counts as not sent, so its coding is not used.
 */
#ifndef WIRE_ACCEPT_ENCODING_H
#define WIRE_ACCEPT_ENCODING_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

enum coding {
	CODING_IDENTITY,
	CODING_GZIP,
	CODING_DEFLATE,
	CODING_BROTLI,
	CODING_ZSTD,
	CODINGS,
};

#define ACCEPT_MEMBERS 64u
#define ACCEPT_UNSET   0xffffu /* the coding is not named */

struct accept_encoding {
	uint16_t q[CODINGS]; /* thousandths, or ACCEPT_UNSET */
	uint16_t any;        /* of "*" */
	unsigned members;
};

/* The name in headers; CODINGS for another name.  "x-gzip" is gzip. */
struct text coding_name(enum coding);
enum coding coding_find(struct text name);

void accept_encoding_init(struct accept_encoding *); /* no line: identity only */
void accept_encoding_line(struct accept_encoding *, struct text line);
bool accept_encoding_takes(const struct accept_encoding *, enum coding);
/* The first coding of order that the client takes and does not like less than identity;
 * CODING_IDENTITY: none. */
enum coding accept_encoding_pick(const struct accept_encoding *, const uint8_t *order, unsigned n);

#endif
