/* t/unit/io/transfer.c -- the bytes of each backend: sizes, windows, pauses, several ranges. */
#include "t/unit/io/transfer_test.h"

/* Whole, and ranges that begin and end in the middle of pages. */
static void
sizes_by(uint32_t chunk)
{
	static const uint64_t sizes[] = { 0, 1, 4095, 4096, 4097, 65535, 65537, 100 << 10, 100001,
		IO_WINDOW, IO_WINDOW + 1, (1 << 20) - 1, (1 << 20) + 1, 10 << 20 };
	uint64_t n;
	size_t i;
	char *path;

	loop_up(backend, 4, 64);
	if (chunk != 0)
		io->chunk = chunk;
	for (i = 0; i < NELEM(sizes); i++) {
		n = sizes[i];
		if (chunk != 0 && n > 2 << 20)
			continue; /* nothing new in 2560 pieces */
		path = file_make(dir, "f", n);
		transfer(path, n, 0, n, false, 0, false);
		transfer(path, n, 0, n, true, 0, true);
		transfer(path, n, n / 3, n / 2, true, 0, false);
		transfer(path, n, n / 2, n - n / 2, true, 0, true);
		if (n > 4100) {
			transfer(path, n, 4095, n - 4095, true, 0, true);
			transfer(path, n, 1, 4095, true, 0, true);
			transfer(path, n, 4096, n - 4100, false, 0, false);
		}
		g_free(path);
	}
	loop_down();
}

static void
test_sizes(void)
{
	sizes_by(0);
}

static void
test_chunk_4096(void)
{
	sizes_by(4096);
}

static void
test_chunk_odd(void)
{
	sizes_by(5000);
}

/* Buffers are used again while their former bytes are still on the way: those must not change. */
static void
test_slow_client(void)
{
	g_autofree char *path = file_make(dir, "f", 3 << 20);
	struct client c = { .pause_us = 2000 };
	struct io_file *f;

	loop_up(backend, 4, 64);
	io->chunk = 64 << 10;
	evict(path);
	f = file_open(path, 3 << 20);
	client_start(&c, true, 1 << 20);
	reply_start(f, 0, 3 << 20);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	client_end(&c);
	check_bytes(c.got, 0, 3 << 20);
	client_free(&c);
	io_file_put(f);
	loop_down();
}

static void
test_tiny_buffer(void)
{
	g_autofree char *path = file_make(dir, "f", 600001);

	loop_up(backend, 4, 64);
	transfer(path, 600001, 0, 600001, false, 1, false);
	transfer(path, 600001, 0, 600001, true, 1, true);
	transfer(path, 600001, 599000, 1001, true, 1, false);
	loop_down();
}

/* Many ranges of one file between memory, more pieces than are inline. */
static void
test_multipart(void)
{
	char *path = file_make(dir, "f", 1000000), sep[32];
	GByteArray *want = g_byte_array_new();
	struct client c = { 0 };
	struct io_file *f;
	uint64_t i, k, off;

	loop_up(backend, 4, 64);
	f = file_open(path, 1000000);
	client_start(&c, true, 0);
	body_init(&body, io);
	for (i = 0; i < 16; i++) {
		snprintf(sep, sizeof(sep), "--part %d--", (int)i);
		off = i * 61111;
		g_assert_true(body_copy(&body, text_of(sep)));
		g_assert_true(body_file(&body, f, off, 1000 * i));
		g_byte_array_append(want, (guint8 *)sep, (guint)strlen(sep));
		for (k = 0; k < 1000 * i; k++)
			g_byte_array_append(want, (guint8[]){ (guint8)pattern(off + k) }, 1);
	}
	io_file_put(f);
	ended = false;
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 10000, sender_ended);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	client_end(&c);
	g_assert_cmpmem(c.got->data, c.got->len, want->data, want->len);
	client_free(&c);
	g_byte_array_free(want, true);
	loop_down();
	g_free(path);
}

static const struct backend_test tests[] = {
	{ "sizes", test_sizes },
	{ "chunk-4096", test_chunk_4096 },
	{ "chunk-odd", test_chunk_odd },
	{ "tiny-buffer", test_tiny_buffer },
	{ "slow-client", test_slow_client },
	{ "multipart", test_multipart },
};

int
main(int argc, char **argv)
{
	return (run_each_backend(argc, argv, tests, NELEM(tests)));
}
