/* io/code/coder.c -- see coder.h */
#include "io/code/coder.h"

#include <brotli/encode.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/must.h"

#define OUT_STEP 16384u /* bytes of output at a time */

/* A larger window costs memory of server and client, and gives little for pages. */
#define GZIP_LEVEL    6
#define BROTLI_LEVEL  5
#define ZSTD_LEVEL    3
#define BROTLI_WINDOW 18
#define ZSTD_WINDOW   17
#define WINDOW_MAX    18 /* for Brotli and Zstandard */
#define BROTLI_MAX    6  /* a higher quality needs more than CODER_MEMORY */
#define ZSTD_MAX      9

struct coder {
	struct coder_conf conf;
	z_stream z;
	BrotliEncoderState *brotli;
	ZSTD_CCtx *zstd;
};

static bool
in_range(int v, int least, int most)
{
	return (v == 0 || (v >= least && v <= most));
}

bool
coder_conf_fits(const struct coder_conf *c)
{
	switch (c->coding) {
	case CODING_GZIP:
	case CODING_DEFLATE:
		return (c->level >= CODER_LEVEL && c->level <= 9 && in_range(c->window, 9, 15) &&
			in_range(c->memory, 1, 9) && c->strategy <= Z_FIXED);
	case CODING_BROTLI:
		return (c->level >= CODER_LEVEL && c->level <= 11 && in_range(c->window, 10, 24) &&
			c->strategy <= BROTLI_MODE_FONT);
	case CODING_ZSTD:
		return (c->level >= CODER_LEVEL && c->level <= 22 && in_range(c->window, 10, 31) &&
			c->strategy <= ZSTD_btultra2);
	default: return (false);
	}
}

/* ---- begin */

static bool
zlib_begin(struct coder *c)
{
	const struct coder_conf *k = &c->conf;
	int window = k->window != 0 ? k->window : 15;

	return (deflateInit2(&c->z, k->level != CODER_LEVEL ? k->level : GZIP_LEVEL, Z_DEFLATED,
		    k->coding == CODING_GZIP ? window + 16 : window, k->memory != 0 ? k->memory : 8,
		    k->strategy) == Z_OK);
}

static int
at_most(int v, int most)
{
	return (v < most ? v : most);
}

static bool
brotli_begin(struct coder *c, uint64_t size)
{
	const struct coder_conf *k = &c->conf;
	int level = k->level != CODER_LEVEL ? at_most(k->level, BROTLI_MAX) : BROTLI_LEVEL;
	int window = k->window != 0 ? at_most(k->window, WINDOW_MAX) : BROTLI_WINDOW;
	BrotliEncoderState *b = BrotliEncoderCreateInstance(NULL, NULL, NULL);

	c->brotli = b;
	if (b == NULL)
		return (false);
	if (size != 0 && size < UINT32_MAX)
		(void)BrotliEncoderSetParameter(b, BROTLI_PARAM_SIZE_HINT, (uint32_t)size);
	return (BrotliEncoderSetParameter(b, BROTLI_PARAM_QUALITY, (uint32_t)level) &&
		BrotliEncoderSetParameter(b, BROTLI_PARAM_LGWIN, (uint32_t)window) &&
		BrotliEncoderSetParameter(b, BROTLI_PARAM_MODE, k->strategy));
}

static bool
zstd_set(struct coder *c, ZSTD_cParameter p, int v)
{
	return (!ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, p, v)));
}

static bool
zstd_begin(struct coder *c, uint64_t size)
{
	const struct coder_conf *k = &c->conf;
	int level = k->level != CODER_LEVEL ? at_most(k->level, ZSTD_MAX) : ZSTD_LEVEL;
	int window = k->window != 0 ? at_most(k->window, WINDOW_MAX) : ZSTD_WINDOW;

	c->zstd = ZSTD_createCCtx();
	if (c->zstd == NULL)
		return (false);
	if (size != 0)
		(void)ZSTD_CCtx_setPledgedSrcSize(c->zstd, size);
	return (zstd_set(c, ZSTD_c_compressionLevel, level) &&
		zstd_set(c, ZSTD_c_windowLog, window) &&
		(k->strategy == 0 || zstd_set(c, ZSTD_c_strategy, k->strategy)));
}

static bool
begin(struct coder *c, uint64_t size)
{
	switch (c->conf.coding) {
	case CODING_GZIP:
	case CODING_DEFLATE: return (zlib_begin(c));
	case CODING_BROTLI: return (brotli_begin(c, size));
	default: return (zstd_begin(c, size));
	}
}

void
coder_free(struct coder *c)
{
	if (c == NULL)
		return;
	if (c->brotli != NULL)
		BrotliEncoderDestroyInstance(c->brotli);
	(void)ZSTD_freeCCtx(c->zstd);
	if (c->conf.coding == CODING_GZIP || c->conf.coding == CODING_DEFLATE)
		(void)deflateEnd(&c->z);
	free(c);
}

struct coder *
coder_new(const struct coder_conf *conf, uint64_t size)
{
	struct coder *c = calloc(1, sizeof(*c));

	must(conf->coding != CODING_IDENTITY && coder_conf_fits(conf));
	if (c == NULL)
		return (NULL);
	c->conf = *conf;
	if (begin(c, size))
		return (c);
	coder_free(c);
	return (NULL);
}

/* ---- step */

static int
zlib_step(struct coder *c, struct text in, enum coder_step how, struct buf *out)
{
	int flush = how == CODE_END ? Z_FINISH : how == CODE_FLUSH ? Z_SYNC_FLUSH : Z_NO_FLUSH;
	char *room;
	int err;

	c->z.next_in = (Bytef *)(uintptr_t)in.p;
	c->z.avail_in = (uInt)in.n;
	do {
		room = buf_extend(out, OUT_STEP);
		if (room == NULL)
			return (-ENOMEM);
		c->z.next_out = (Bytef *)room;
		c->z.avail_out = OUT_STEP;
		err = deflate(&c->z, flush);
		out->n -= c->z.avail_out;
		if (err != Z_OK && err != Z_STREAM_END && err != Z_BUF_ERROR)
			return (-ENOMEM);
	} while (c->z.avail_out == 0 || c->z.avail_in != 0);
	return (0);
}

static int
brotli_step(struct coder *c, struct text in, enum coder_step how, struct buf *out)
{
	BrotliEncoderOperation op = how == CODE_END     ? BROTLI_OPERATION_FINISH
				    : how == CODE_FLUSH ? BROTLI_OPERATION_FLUSH
							: BROTLI_OPERATION_PROCESS;
	const uint8_t *next = (const uint8_t *)in.p, *got;
	size_t left = in.n, none = 0, n;

	do {
		if (!BrotliEncoderCompressStream(c->brotli, op, &left, &next, &none, NULL, NULL))
			return (-ENOMEM);
		n = 0;
		got = BrotliEncoderTakeOutput(c->brotli, &n);
		buf_text(out, (struct text){ (const char *)got, n });
		if (out->failed)
			return (-ENOMEM);
	} while (left != 0 || BrotliEncoderHasMoreOutput(c->brotli));
	return (0);
}

static int
zstd_step(struct coder *c, struct text in, enum coder_step how, struct buf *out)
{
	ZSTD_EndDirective op = how == CODE_END     ? ZSTD_e_end
			       : how == CODE_FLUSH ? ZSTD_e_flush
						   : ZSTD_e_continue;
	ZSTD_inBuffer from = { in.p, in.n, 0 };
	ZSTD_outBuffer to;
	size_t left;
	char *room;

	do {
		room = buf_extend(out, OUT_STEP);
		if (room == NULL)
			return (-ENOMEM);
		to = (ZSTD_outBuffer){ room, OUT_STEP, 0 };
		left = ZSTD_compressStream2(c->zstd, &to, &from, op);
		out->n -= OUT_STEP - to.pos;
		if (ZSTD_isError(left))
			return (-ENOMEM);
	} while (from.pos < from.size || (how != CODE_MORE && left != 0));
	return (0);
}

int
coder_step(struct coder *c, struct text in, enum coder_step how, struct buf *out)
{
	switch (c->conf.coding) {
	case CODING_GZIP:
	case CODING_DEFLATE: return (zlib_step(c, in, how, out));
	case CODING_BROTLI: return (brotli_step(c, in, how, out));
	default: return (zstd_step(c, in, how, out));
	}
}
