/* t/unit/io/coder.c -- content codings: bounds of settings; pieces decode to their input. */
#include <brotli/decode.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "io/code/coder.h"
#include "t/unit/test.h"

#define ROOM (1u << 20)

static char decoded[ROOM];

static size_t
inflate_all(struct text in)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)in.p,
		.avail_in = (uInt)in.n,
		.next_out = (Bytef *)decoded,
		.avail_out = ROOM };

	g_assert_cmpint(inflateInit2(&z, 15 + 32), ==, Z_OK); /* gzip or zlib */
	(void)inflate(&z, Z_SYNC_FLUSH);
	(void)inflateEnd(&z);
	return (ROOM - z.avail_out);
}

/* What a client has decoded from the bytes so far. */
static size_t
decode(enum coding c, struct text in)
{
	BrotliDecoderState *b;
	const uint8_t *next = (const uint8_t *)in.p;
	uint8_t *to = (uint8_t *)decoded;
	ZSTD_inBuffer from = { in.p, in.n, 0 };
	ZSTD_outBuffer out = { decoded, ROOM, 0 };
	size_t left = in.n, room = ROOM;
	ZSTD_DStream *z;

	if (c == CODING_GZIP || c == CODING_DEFLATE)
		return (inflate_all(in));
	if (c == CODING_BROTLI) {
		b = BrotliDecoderCreateInstance(NULL, NULL, NULL);
		g_assert_cmpint(BrotliDecoderDecompressStream(b, &left, &next, &room, &to, NULL),
		    !=, BROTLI_DECODER_RESULT_ERROR);
		BrotliDecoderDestroyInstance(b);
		return (ROOM - room);
	}
	z = ZSTD_createDStream();
	while (from.pos < from.size)
		g_assert_false(ZSTD_isError(ZSTD_decompressStream(z, &out, &from)));
	(void)ZSTD_freeDStream(z);
	return (out.pos);
}

/* Each flush lets the client see all bytes so far. */
static void
round_trip(const struct coder_conf *conf, size_t piece)
{
	g_autoptr(GString) in = g_string_new(NULL);
	struct coder *k = coder_new(conf, 0);
	struct buf out;
	unsigned i;

	g_assert_nonnull(k);
	buf_init(&out, 0);
	for (i = 0; i < 20; i++) {
		size_t at = in->len;

		while (in->len < at + piece)
			g_string_append_printf(in, "line %u of %zu\n", i * 7919, in->len);
		g_assert_cmpint(coder_step(k, (struct text){ in->str + at, in->len - at },
				    i == 19      ? CODE_END
				    : i % 3 != 0 ? CODE_FLUSH
						 : CODE_MORE,
				    &out),
		    ==, 0);
		if (i == 19 || i % 3 != 0) {
			g_assert_cmpuint(decode(conf->coding, buf_as_text(&out)), ==, in->len);
			g_assert_cmpint(memcmp(decoded, in->str, in->len), ==, 0);
		}
	}
	coder_free(k);
	buf_free(&out);
}

TEST("/coder/round-trips")
{
	static const struct coder_conf confs[] = { { CODING_GZIP, CODER_LEVEL, 0, 0, 0 },
		{ CODING_GZIP, 1, 9, 1, 2 }, { CODING_GZIP, 9, 15, 9, 4 },
		{ CODING_DEFLATE, 6, 0, 0, 0 }, { CODING_BROTLI, CODER_LEVEL, 0, 0, 0 },
		{ CODING_BROTLI, 0, 10, 0, 1 }, { CODING_BROTLI, 11, 24, 0, 2 },
		{ CODING_ZSTD, CODER_LEVEL, 0, 0, 0 }, { CODING_ZSTD, 1, 10, 0, 1 },
		{ CODING_ZSTD, 22, 31, 0, 9 } };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(confs); i++) {
		round_trip(&confs[i], 1);
		round_trip(&confs[i], 20000);
	}
}

TEST("/coder/settings")
{
	static const struct {
		struct coder_conf conf;
		bool fits;
	} rows[] = { { { CODING_GZIP, 9, 15, 9, 4 }, true },
		{ { CODING_GZIP, 10, 0, 0, 0 }, false }, { { CODING_GZIP, 1, 8, 0, 0 }, false },
		{ { CODING_GZIP, 1, 16, 0, 0 }, false }, { { CODING_GZIP, 1, 0, 10, 0 }, false },
		{ { CODING_GZIP, 1, 0, 0, 5 }, false }, { { CODING_BROTLI, 12, 0, 0, 0 }, false },
		{ { CODING_BROTLI, 1, 25, 0, 0 }, false }, { { CODING_BROTLI, 1, 0, 0, 3 }, false },
		{ { CODING_ZSTD, 23, 0, 0, 0 }, false }, { { CODING_ZSTD, 1, 32, 0, 0 }, false },
		{ { CODING_ZSTD, 1, 0, 0, 10 }, false },
		{ { CODING_IDENTITY, 1, 0, 0, 0 }, false } };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(rows); i++)
		g_assert_cmpint(coder_conf_fits(&rows[i].conf), ==, rows[i].fits);
}
