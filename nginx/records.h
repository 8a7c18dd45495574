/* nginx/records.h -- bytes of FastCGI: a question is written, an answer read.  Without sockets.
 *
 *   Owner    buffers and the reader are the caller's */
#ifndef STAT_ACCEL_RECORDS_H
#define STAT_ACCEL_RECORDS_H

#include "nginx/stat_accel.h"

#define ACCEL_PATH_LIMIT 60000u /* what a record has room for, beside the other parameters */

/* ---------------------------------------------------------------- written */

#define ACCEL_ORDER_SIZE 64u /* of each but a question */

size_t accel_question_size(const struct accel_question *q); /* at most */
/* They return the end of what was written. */
u_char *accel_put_question(u_char *p, const struct accel_question *q);
u_char *accel_put_get_values(u_char *p);
u_char *accel_put_abort(u_char *p);

/* ---------------------------------------------------------------- read */

enum accel_record {
	ACCEL_RECORD_PART,   /* more is to come, or it says nothing */
	ACCEL_RECORD_VALUES, /* what GET_VALUES asked for */
	ACCEL_RECORD_END,    /* of an answer */
	ACCEL_RECORD_BAD,    /* not FastCGI, or not asked for */
};

struct accel_reader {
	bool asked;       /* an answer is to come */
	u_char head[512]; /* of an answer; more is skipped */
	size_t head_len;
	/* the record that is read */
	u_char record[8];
	size_t record_len, left; /* left: of its content and padding */
	size_t content;          /* left: of its content */
};

void accel_reader_begin(struct accel_reader *r); /* of an answer */
/* Up to the end of a record; *p moves on. */
enum accel_record accel_read_record(struct accel_reader *r, const u_char **p, const u_char *end);
bool accel_answer_is_late(const struct accel_reader *r);
ngx_err_t accel_answer_errno(const struct accel_reader *r); /* of its open(); 0: none */

#endif
