/* t/bench/fload/answer.h -- the records of one answer, read strictly.  Pure: bytes in, result
 * out. */
#ifndef FLOAD_ANSWER_H
#define FLOAD_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#define ANSWER_TEXT_MAX 1536 /* of head and body; the rest is dropped */

enum answer_result { ANSWER_MORE, ANSWER_WHOLE, ANSWER_BAD };

struct answer {
	uint16_t id;             /* every record must have it */
	uint8_t head[8], end[8]; /* the record being read; the body of END_REQUEST */
	unsigned head_len, end_len, left, padding;
	char text[ANSWER_TEXT_MAX + 1];
	size_t text_len;
};

void answer_start(struct answer *, uint16_t id);

/* Reads up to the end of the answer.  BAD: a record that must not be here, an END_REQUEST that says
 * anything but "complete", a head without end. */
enum answer_result answer_take(struct answer *, const char *p, size_t n, size_t *used);

int answer_status(const struct answer *); /* 200 without a Status, as CGI has it */

/* The value of a header and its length; NULL without one. */
const char *answer_field(const struct answer *, const char *name, size_t *len);

#endif
