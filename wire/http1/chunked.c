/* wire/http1/chunked.c -- chunked bodies, byte by byte, data in runs; see http1.h
 *
 * 	size [BWS ";" extension] CR LF  data CR LF  ...  0 CR LF  *(name ":" value CR LF)  CR LF
 */
#include "wire/http1/http1.h"
#include "wire/http1/class.h"

#define CHUNK_LINE_MAX 256
#define TRAILERS_MAX   8192

enum {
	CH_SIZE,
	CH_BLANK,
	CH_EXT,
	CH_SIZE_LF,
	CH_DATA,
	CH_DATA_CR,
	CH_DATA_LF,
	CH_TRAILER,
	CH_NAME,
	CH_VALUE,
	CH_VALUE_LF,
	CH_LAST_LF,
	CH_DONE,
	CH_BAD
};

static uint8_t
chunk_size(struct http1_chunked *c, char ch)
{
	int digit = text_hex_digit(ch);

	if (digit >= 0) {
		if (c->left > (uint64_t)INT64_MAX >> 4)
			return (CH_BAD);
		c->left = c->left << 4 | (unsigned)digit;
		return (CH_SIZE);
	}
	if (c->line == 1) /* without a digit before it */
		return (CH_BAD);
	return (ch == '\r'                ? CH_SIZE_LF
		: ch == ';'               ? CH_EXT
		: ch == ' ' || ch == '\t' ? CH_BLANK
					  : CH_BAD);
}

/* The state after one byte of framing. */
static uint8_t
chunk_step(struct http1_chunked *c, char ch)
{
	switch (c->state) {
	case CH_SIZE: return (chunk_size(c, ch));
	case CH_BLANK: return (ch == ';' ? CH_EXT : ch == ' ' || ch == '\t' ? CH_BLANK : CH_BAD);
	case CH_EXT: return (ch == '\r' ? CH_SIZE_LF : is(ch, C_VALUE) ? CH_EXT : CH_BAD);
	case CH_SIZE_LF:
		c->line = 0;
		return (ch != '\n' ? CH_BAD : c->left > 0 ? CH_DATA : CH_TRAILER);
	case CH_DATA_CR: return (ch == '\r' ? CH_DATA_LF : CH_BAD);
	case CH_DATA_LF: c->line = 0; return (ch == '\n' ? CH_SIZE : CH_BAD);
	case CH_TRAILER: return (ch == '\r' ? CH_LAST_LF : is(ch, C_TOKEN) ? CH_NAME : CH_BAD);
	case CH_NAME: return (ch == ':' ? CH_VALUE : is(ch, C_TOKEN) ? CH_NAME : CH_BAD);
	case CH_VALUE: return (ch == '\r' ? CH_VALUE_LF : is(ch, C_VALUE) ? CH_VALUE : CH_BAD);
	case CH_VALUE_LF: return (ch == '\n' ? CH_TRAILER : CH_BAD);
	case CH_LAST_LF: return (ch == '\n' ? CH_DONE : CH_BAD);
	default: return (CH_BAD);
	}
}

static void
chunk_data(struct http1_chunked *c, struct text *in, struct text *data)
{
	*data = text_take(in, (size_t)c->left);
	c->left -= data->n;
	if (c->left == 0)
		c->state = CH_DATA_CR;
}

/* PARSE_MORE without data only if *in is used up. */
enum parse
http1_chunked(struct http1_chunked *c, struct text *in, struct text *data)
{
	uint32_t limit;

	*data = TEXT_NONE;
	while (in->n > 0 && c->state < CH_DONE) {
		if (c->state == CH_DATA) {
			chunk_data(c, in, data);
			return (PARSE_MORE);
		}
		limit = c->state >= CH_TRAILER ? TRAILERS_MAX : CHUNK_LINE_MAX;
		if (++c->line > limit)
			c->state = CH_BAD;
		else
			c->state = chunk_step(c, *in->p);
		text_take(in, 1);
	}
	return (c->state == CH_DONE ? PARSE_DONE : c->state == CH_BAD ? PARSE_BAD : PARSE_MORE);
}

/* An empty one is CR LF. */
size_t
http1_chunked_trailers(const struct http1_chunked *c)
{
	bool empty = c->line <= 2 && (c->state == CH_LAST_LF || c->state == CH_DONE);

	return (c->state >= CH_TRAILER && !empty ? c->line : 0);
}
