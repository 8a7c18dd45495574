/* io/code/stream.h -- a piece of a stream in a content coding, by a thread: an IO_WORK that is
 * submitted again for each piece. */
#ifndef IO_CODE_STREAM_H
#define IO_CODE_STREAM_H

#include "io/code/coder.h"
#include "io/io.h"

struct code_stream {
	struct io_work work;
	struct coder_conf conf;
	struct coder *coder; /* made with the first piece */
	struct buf in;       /* the piece; empty after it was coded */
	enum coder_step how;
	struct buf out; /* its bytes are added here */
	int err;        /* 0, or -ENOMEM for ever */
};

struct code_stream *code_stream_new(const struct coder_conf *); /* NULL: no memory */

#endif
