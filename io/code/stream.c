/* io/code/stream.c -- see stream.h */
#include "io/code/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "io/engine.h"

static void
stream_free(struct io_work *w)
{
	struct code_stream *s = container_of(w, struct code_stream, work);

	coder_free(s->coder);
	buf_free(&s->in);
	buf_free(&s->out);
	free(s);
}

static void
stream_run(struct io_work *w)
{
	struct code_stream *s = container_of(w, struct code_stream, work);

	if (s->coder == NULL)
		s->coder = coder_new(&s->conf, 0);
	s->err =
	    s->coder != NULL ? coder_step(s->coder, buf_as_text(&s->in), s->how, &s->out) : -ENOMEM;
	s->in.n = 0;
}

struct code_stream *
code_stream_new(const struct coder_conf *conf)
{
	struct code_stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return (NULL);
	s->work = (struct io_work){ .run = stream_run, .free = stream_free, .refs = 1 };
	s->conf = *conf;
	buf_init(&s->in, 0);
	buf_init(&s->out, 0);
	return (s);
}
