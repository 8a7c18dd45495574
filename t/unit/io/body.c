/* t/unit/io/body.c -- pieces in order, chunks recycled, every lent byte released once. */
#include <stdio.h>
#include <string.h>
#include "io/body.h"
#include "io/engine.h"
#include "io/loop/sim.h"
#include "t/unit/test.h"

static struct io *io;
static struct body b;
static int released;

static void
release(void *owner)
{
	released++;
	g_assert_true(owner == &released);
}

static void
up(void)
{
	io = sim_new();
	body_init(&b, io);
	released = 0;
}

static void
down(void)
{
	body_clear(&b);
	g_assert_null(b.chunks);
	g_assert_cmpuint(b.left, ==, 0);
	io_free(io);
}

/* Takes the body off in steps of `step` bytes. */
static GString *
drain(size_t step)
{
	GString *s = g_string_new(NULL);
	struct iovec iov[5];
	size_t n;
	bool more;
	int i, k;

	while (!body_empty(&b)) {
		k = body_iov(&b, iov, 5, &more);
		g_assert_cmpint(k, >, 0);
		for (i = 0, n = 0; i < k && n < step; i++) {
			g_string_append_len(s, iov[i].iov_base,
			    (gssize)(iov[i].iov_len < step - n ? iov[i].iov_len : step - n));
			n += iov[i].iov_len;
		}
		body_sent(&b, n < step ? n : step);
	}
	return (s);
}

TEST("/body/order")
{
	GString *want = g_string_new(NULL), *got;
	char word[40];
	size_t step;
	int i, n;

	for (step = 1; step < 3000; step = step * 3 + 1) {
		up();
		g_string_truncate(want, 0);
		for (i = 0; i < 30; i++) {
			n = snprintf(word, sizeof(word), "<copied %d>", i);
			g_assert_true(body_copy(&b, (struct text){ word, (size_t)n }));
			g_assert_true(body_lend(&b, TEXT("lent"), release, &released));
			g_string_append_printf(want, "%slent", word);
		}
		g_assert_cmpuint(b.left, ==, want->len);
		got = drain(step);
		g_assert_cmpstr(got->str, ==, want->str);
		g_string_free(got, true);
		g_assert_cmpint(released, ==, 30);
		g_assert_null(b.chunks); /* an idle connection holds no buffer */
		down();
	}
	g_string_free(want, true);
}

/* A stream that is fed and drained for ever stays within two chunks. */
UP_TEST("/body/stream")
{
	char block[3000];
	unsigned i;

	memset(block, 'b', sizeof(block));
	g_assert_true(body_copy(&b, (struct text){ block, 2000 }));
	for (i = 0; i < 1000; i++) {
		g_assert_true(body_copy(&b, (struct text){ block, sizeof(block) }));
		body_sent(&b, sizeof(block));
		g_assert_cmpuint(b.left, ==, 2000);
		g_assert_cmpuint(b.n, <=, 2);
	}
	g_assert_cmpuint(io->nchunks, <=, 2);
}

UP_TEST("/body/room")
{
	GString *got;
	char *p;

	g_assert_null(body_room(&b, IO_CHUNK + 1));
	p = body_room(&b, IO_CHUNK);
	memcpy(p, "abc", 3);
	body_wrote(&b, 3);
	p = body_room(&b, 100);
	memcpy(p, "def", 3);
	body_wrote(&b, 3);
	body_wrote(&b, 0);
	g_assert_cmpuint(b.n, ==, 1); /* it only became longer */
	got = drain(100);
	g_assert_cmpstr(got->str, ==, "abcdef");
	g_string_free(got, true);
}

UP_TEST("/body/bounds")
{
	struct io_file *f;
	unsigned i;

	f = io_file_new(io, 70, 100);
	for (i = 0; i < BODY_PIECES; i++)
		g_assert_true(i % 2 != 0 ? body_lend(&b, TEXT("x"), release, &released)
					 : body_file(&b, f, 0, 1));
	g_assert_false(body_lend(&b, TEXT("x"), release, &released));
	g_assert_false(body_file(&b, f, 0, 1));
	g_assert_false(body_copy(&b, TEXT("x")));
	g_assert_cmpint(released, ==, 0); /* what was not taken is still the caller's */
	g_assert_cmpuint(f->refs, ==, 1 + BODY_PIECES / 2);
	g_assert_true(body_lend(&b, TEXT(""), release, &released));
	g_assert_cmpint(released, ==, 1);
	body_clear(&b);
	g_assert_cmpint(released, ==, 1 + (int)BODY_PIECES / 2);
	g_assert_cmpuint(f->refs, ==, 1);
	io_file_put(f);
	g_assert_cmpuint(sim_closed(io, 70), ==, 1);
}

/* A slow client takes the head at once, and the file for hours. */
UP_TEST("/body/a head that is sent holds no chunk")
{
	struct io_file *f = io_file_new(io, 70, 100);

	g_assert_true(body_copy(&b, TEXT("head")));
	g_assert_true(body_file(&b, f, 0, 100));
	body_sent(&b, 3);
	g_assert_nonnull(b.chunks);
	body_sent(&b, 2);
	g_assert_null(b.chunks);
	g_assert_cmpuint(b.left, ==, 99);
	g_assert_true(body_copy(&b, TEXT("more")));
	g_assert_nonnull(b.chunks);
	body_sent(&b, 99 + 4);
	g_assert_true(body_empty(&b));
	io_file_put(f);
}
