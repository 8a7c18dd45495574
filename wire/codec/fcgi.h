/* wire/codec/fcgi.h -- the records of FastCGI 1.0, for both roles: fastcgi.c asks, fcgi_record.c
 * answers.
 *
 *   record    version  type  id(2)  length(2)  padding  0   content(length)   (padding)
 *   pair      length of the name, length of the value, name, value
 *   length    one byte below 128, or four with the top bit set
 */
#ifndef WIRE_FCGI_H
#define WIRE_FCGI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/text.h"

#define FCGI_VERSION 1
#define FCGI_HEAD    8 /* bytes before the content of a record */

enum fcgi_type {
	BEGIN_REQUEST = 1,
	ABORT_REQUEST,
	END_REQUEST,
	PARAMS,
	STDIN,
	STDOUT,
	STDERR,
	DATA,
	GET_VALUES,
	GET_VALUES_RESULT,
	UNKNOWN_TYPE
};
enum { REQUEST_COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE };
enum { RESPONDER = 1, AUTHORIZER, FILTER };
enum { KEEP_CONN = 1 };

static inline void
fcgi_head(uint8_t h[FCGI_HEAD], enum fcgi_type type, unsigned id, size_t content)
{
	const uint8_t head[FCGI_HEAD] = { FCGI_VERSION, (uint8_t)type, (uint8_t)(id >> 8),
		(uint8_t)id, (uint8_t)(content >> 8), (uint8_t)content };

	memcpy(h, head, sizeof(head));
}

static inline unsigned
fcgi_id(const uint8_t h[FCGI_HEAD])
{
	return ((unsigned)h[2] << 8 | h[3]);
}

static inline uint16_t
fcgi_content(const uint8_t h[FCGI_HEAD])
{
	return ((uint16_t)(h[4] << 8 | h[5]));
}

/* A record whose content was not known when its head was written. */
static inline void
fcgi_set_content(char *head, size_t content)
{
	head[4] = (char)(content >> 8);
	head[5] = (char)content;
}

/* A length of less than 2^31; how many bytes it takes. */
static inline size_t
fcgi_length(char b[4], size_t n)
{
	if (n < 0x80) {
		b[0] = (char)n;
		return (1);
	}
	b[0] = (char)(0x80 | n >> 24);
	b[1] = (char)(n >> 16);
	b[2] = (char)(n >> 8);
	b[3] = (char)n;
	return (4);
}

/* Removes one length from *in: a byte below 128, or four with the top bit set.  False: too few
 * bytes. */
static inline bool
fcgi_take_length(struct text *in, size_t *len)
{
	const uint8_t *b = (const uint8_t *)in->p;
	bool is_short = in->n > 0 && b[0] < 0x80;

	if (!is_short && in->n < 4)
		return (false);
	*len = is_short
		   ? b[0]
		   : (size_t)(b[0] & 0x7f) << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	text_take(in, is_short ? 1 : 4);
	return (true);
}

/* Removes one pair.  Both lengths are below 2^31, so their sum cannot overflow; it is compared with
 * the available bytes. */
static inline bool
fcgi_take_pair(struct text *in, struct text *name, struct text *value)
{
	size_t n, v;

	if (!fcgi_take_length(in, &n) || !fcgi_take_length(in, &v) || (uint64_t)n + v > in->n)
		return (false);
	*name = text_take(in, n);
	*value = text_take(in, v);
	return (true);
}

#endif
