/* io/http2/batch.c -- see batch.h */
#include "io/http2/batch.h"

#include <stdlib.h>

#include "io/engine.h"

/* A shorter piece is copied: a part of a send costs as much. */
#define IN_PLACE_MIN 2048u

void
http2_batch_init(struct http2_batch *b, size_t most)
{
	b->limit = b->most = most;
}

bool
http2_batch_open(struct http2_batch *b, struct io *io)
{
	if (b->out_owned)
		http2_batch_free(b, io);
	if (b->out == NULL && (b->out = io_window_get(io)) == NULL)
		return (false);
	b->out_size = io->window;
	b->out_n = 0;
	return (true);
}

void
http2_batch_free(struct http2_batch *b, struct io *io)
{
	if (b->out_owned)
		free(b->out);
	else
		io_give_back(io, b->out);
	b->out = NULL;
	b->out_owned = false;
	b->out_n = b->left = 0;
	b->niov = 0;
}

/* ---- frames go in */

bool
http2_batch_has_room(const struct http2_batch *b)
{
	return (b->left < b->limit && b->niov < HTTP2_PIECES - 4);
}

static void
add_piece(struct http2_batch *b, const char *p, size_t n)
{
	struct iovec *last = b->iov + b->niov - 1;

	b->left += n;
	if (b->niov > 0 && (const char *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
		return;
	}
	must(b->niov < HTTP2_PIECES);
	b->iov[b->niov++] = (struct iovec){ (void *)(uintptr_t)p, n };
}

void
http2_batch_put(struct http2_batch *b, const void *p, size_t n)
{
	must(b->out != NULL && b->out_n + n <= b->out_size);
	memcpy(b->out + b->out_n, p, n);
	add_piece(b, b->out + b->out_n, n);
	b->out_n += n;
}

void
http2_batch_put_in_place(struct http2_batch *b, const void *p, size_t n)
{
	if (n < IN_PLACE_MIN || b->niov >= HTTP2_PIECES - 2)
		http2_batch_put(b, p, n);
	else
		add_piece(b, p, n);
}

/* ---- bytes go out */

void
http2_batch_skip(struct http2_batch *b, size_t n)
{
	int i = 0;

	b->left -= n;
	while (i < b->niov && n >= b->iov[i].iov_len)
		n -= b->iov[i++].iov_len;
	b->niov -= i;
	memmove(b->iov, b->iov + i, (size_t)b->niov * sizeof(*b->iov));
	if (n != 0)
		b->iov[0] = (struct iovec){ (char *)b->iov[0].iov_base + n, b->iov[0].iov_len - n };
}

bool
http2_batch_keep_rest(struct http2_batch *b, struct io *io)
{
	size_t n = b->left, at = 0;
	char *p;
	int i;

	if (b->out_owned || n == 0)
		return (true);
	p = malloc(n);
	if (p == NULL)
		return (false);
	for (i = 0; i < b->niov; at += b->iov[i++].iov_len)
		memcpy(p + at, b->iov[i].iov_base, b->iov[i].iov_len);
	http2_batch_free(b, io);
	b->out = p;
	b->out_owned = true;
	b->left = n;
	b->iov[b->niov++] = (struct iovec){ p, n };
	return (true);
}

void
http2_batch_grow(struct http2_batch *b)
{
	b->limit = 2 * b->limit < b->most ? 2 * b->limit : b->most;
}

void
http2_batch_shrink(struct http2_batch *b)
{
	b->limit = HTTP2_BATCH_MIN;
}
