/* io/body.c -- a ring of pieces; copied bytes live in counted chunks. */
#include <string.h>
#include "io/body.h"
#include "io/engine.h"

/* Freed with its last piece: a file after it may take hours. */
struct body_chunk {
	struct io *io;
	struct body_chunk *next; /* older chunks of the same body */
	uint32_t used, pieces;
	char data[IO_CHUNK];
};

void
body_init(struct body *b, struct io *io)
{
	memset(b, 0, sizeof(*b));
	b->io = io;
	b->piece = b->inl;
	b->cap = NELEM(b->inl);
}

static struct body_piece *
piece_at(const struct body *b, unsigned i)
{
	return (&b->piece[(b->first + i) % b->cap]);
}

_Static_assert(BODY_PIECES * sizeof(struct body_piece) <= sizeof(struct body_chunk),
    "a ring fits in a chunk");

/* Only the newest chunk is written to. */
static void
chunk_release(void *owner)
{
	struct body_chunk *c = owner;

	must(c->pieces > 0);
	c->pieces--;
}

static void
chunks_sweep(struct body *b)
{
	struct body_chunk **pp = &b->chunks, *c;

	while ((c = *pp) != NULL) {
		if (c->pieces != 0) {
			pp = &c->next;
			continue;
		}
		*pp = c->next;
		io_chunk_put(c->io, c);
	}
}

static void
piece_drop(struct body *b)
{
	struct body_piece *p = &b->piece[b->first];

	b->left -= p->len;
	b->first = (uint16_t)((b->first + 1) % b->cap);
	b->n--;
	io_file_put(p->file);
	if (p->release != NULL)
		p->release(p->owner);
}

void
body_clear(struct body *b)
{
	while (b->n != 0)
		piece_drop(b);
	chunks_sweep(b);
	if (b->piece != b->inl)
		io_chunk_put(b->io, b->piece);
	body_init(b, b->io);
}

static bool
ring_grow(struct body *b)
{
	struct body_piece *p;
	unsigned i;

	if (b->n < b->cap)
		return (true);
	if (b->n >= BODY_PIECES)
		return (false);
	/* sixteen pipelined replies need no malloc */
	p = io_chunk_get(b->io, sizeof(struct body_chunk));
	if (p == NULL)
		return (false);
	for (i = 0; i < b->n; i++)
		p[i] = *piece_at(b, i);
	b->piece = p;
	b->first = 0;
	b->cap = BODY_PIECES;
	return (true);
}

static bool
piece_add(struct body *b, struct body_piece piece)
{
	if (!ring_grow(b))
		return (false);
	*piece_at(b, b->n++) = piece;
	b->left += piece.len;
	return (true);
}

static bool
chunk_add(struct body *b)
{
	struct body_chunk *c = io_chunk_get(b->io, sizeof(*c));

	if (c == NULL)
		return (false);
	c->io = b->io;
	c->used = c->pieces = 0;
	c->next = b->chunks;
	b->chunks = c;
	return (true);
}

/* True if the next bytes only extend the last piece. */
static bool
continues(const struct body *b)
{
	const struct body_chunk *c = b->chunks;
	const struct body_piece *last;

	if (c == NULL || b->n == 0)
		return (false);
	last = piece_at(b, b->n - 1u);
	return (last->owner == c && last->p + last->len == c->data + c->used);
}

/* Reserves the piece first, so that body_wrote() cannot fail. */
char *
body_room(struct body *b, size_t n)
{
	struct body_chunk *c = b->chunks;
	bool fits = c != NULL && IO_CHUNK - c->used >= n;

	if (n > IO_CHUNK)
		return (NULL);
	if (!(fits && continues(b)) && !ring_grow(b))
		return (NULL);
	if (!fits && !chunk_add(b))
		return (NULL);
	return (b->chunks->data + b->chunks->used);
}

void
body_wrote(struct body *b, size_t n)
{
	struct body_chunk *c = b->chunks;
	char *at = c->data + c->used;
	bool added, joins = continues(b);

	must(c->used + n <= IO_CHUNK);
	if (n == 0)
		return;
	c->used += (uint32_t)n;
	if (joins) {
		piece_at(b, b->n - 1u)->len += n;
		b->left += n;
		return;
	}
	c->pieces++;
	added = piece_add(b,
	    (struct body_piece){ .p = at, .len = n, .release = chunk_release, .owner = c });
	must(added);
}

bool
body_copy(struct body *b, struct text t)
{
	size_t n;
	char *to;

	while (t.n > 0) {
		n = b->chunks != NULL ? IO_CHUNK - b->chunks->used : 0;
		n = n == 0 || n > t.n ? (t.n < IO_CHUNK ? t.n : IO_CHUNK) : n;
		to = body_room(b, n);
		if (to == NULL)
			return (false);
		memcpy(to, text_take(&t, n).p, n);
		body_wrote(b, n);
	}
	return (true);
}

bool
body_lend(struct body *b, struct text t, void (*release)(void *), void *owner)
{
	if (t.n != 0)
		return (piece_add(b, (struct body_piece){ .p = t.p,
					 .len = t.n,
					 .release = release,
					 .owner = owner }));
	if (release != NULL)
		release(owner);
	return (true);
}

bool
body_file(struct body *b, struct io_file *f, uint64_t off, uint64_t len)
{
	if (len == 0)
		return (true);
	if (!piece_add(b, (struct body_piece){ .file = f, .off = off, .len = len }))
		return (false);
	io_file_ref(f);
	return (true);
}

void
body_peek(const struct body *b, uint64_t skip, char *dst, size_t n)
{
	const struct body_piece *p;
	size_t take;
	unsigned i;

	for (i = 0; i < b->n && n != 0; i++) {
		p = piece_at(b, i);
		if (skip >= p->len) {
			skip -= p->len;
			continue;
		}
		must(p->file == NULL);
		take = p->len - skip < n ? (size_t)(p->len - skip) : n;
		memcpy(dst, p->p + skip, take);
		dst += take;
		n -= take;
		skip = 0;
	}
	must(n == 0);
}

int
body_iov(const struct body *b, struct iovec *iov, int max, bool *more)
{
	const struct body_piece *p;
	unsigned i;

	for (i = 0; i < b->n && i < (unsigned)max; i++) {
		p = piece_at(b, i);
		if (p->file != NULL)
			break;
		iov[i] = (struct iovec){ (char *)p->p, p->len };
	}
	*more = i < b->n;
	return ((int)i);
}

void
body_sent(struct body *b, uint64_t n)
{
	struct body_piece *p = body_front(b);

	for (; p != NULL && n >= p->len; p = body_front(b)) {
		n -= p->len;
		piece_drop(b);
	}
	if (n > 0) {
		must(p != NULL);
		if (p->file == NULL)
			p->p += n;
		p->off += n;
		p->len -= n;
		b->left -= n;
	}
	chunks_sweep(b);
}
