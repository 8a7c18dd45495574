/* server/config/record.c -- records of questions and answers; see record.h
 *
 *   record     question answer ... question(END)
 *   question   kind, length; key with its NUL      written before the answer is looked for, so a
 *   answer     err, status, lengths; bytes; extra  reader knows what a hung recorder waits for
 *   failure    replaces a question or an answer: the recorder died
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/must.h"
#include "server/helper/wire.h"
#include "server/config/record.h"

#define KIND_END     SOURCE_KINDS
#define KIND_FAILURE (SOURCE_KINDS + 1)
#define KIND_ANSWER  (SOURCE_KINDS + 2)
#define KEY_MAX      (1u << 20)
#define EXTRA_MAX    (1u << 16)

struct question {
	uint32_t kind, nkey;
};

struct answer {
	/* KIND_ANSWER, or KIND_FAILURE: the next question ends the record */
	uint32_t kind;
	int32_t err, status;
	uint32_t nbytes, nextra;
};

struct item { /* offsets in the record */
	struct question q;
	struct answer a;
	size_t key, bytes, extra;
};

struct sources {
	int fd;        /* record: written to it; otherwise -1 */
	struct buf in; /* replay: bytes of the record */
	GArray *items;
	size_t parsed;         /* bytes of in that have become items */
	guint next;            /* the search for an answer begins here */
	struct question asked; /* nkey 0: no open question */
	uint64_t memory;
	const char *failure;
	bool whole;
	sources_hide_fn *hide; /* NULL: nothing is hidden */
	void *hide_arg;
};

void
source_free(struct source *s)
{
	if (s->bytes.p != NULL)
		explicit_bzero((char *)s->bytes.p, s->bytes.n); /* perhaps a private key */
	free((char *)s->bytes.p);
	free(s->extra);
	*s = (struct source){ 0 };
}

/* ---------------------------------------------------------------- record */

struct sources *
sources_record(int fd)
{
	struct sources *s = g_new0(struct sources, 1);

	s->fd = fd;
	return (s);
}

void
sources_hide(struct sources *s, sources_hide_fn *fn, void *arg)
{
	s->hide = fn;
	s->hide_arg = arg;
}

/* The reader has gone, so nobody needs the rest. */
static void
put(struct sources *s, const void *p, size_t n)
{
	const char *c = p;
	ssize_t done;

	for (; n > 0; c += done, n -= (size_t)done) {
		done = write(s->fd, c, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done <= 0)
			_exit(1);
	}
}

static void
put_question(struct sources *s, uint32_t kind, const char *key)
{
	struct question q = { kind, (uint32_t)strlen(key) + 1 };

	put(s, &q, sizeof(q));
	put(s, key, q.nkey);
}

static void
put_answer(struct sources *s, const struct source *is)
{
	size_t extra = is->extra != NULL ? strlen(is->extra) + 1 : 0;
	struct answer a = { KIND_ANSWER, is->err, is->status, (uint32_t)is->bytes.n,
		(uint32_t)MIN(extra, EXTRA_MAX) };

	put(s, &a, sizeof(a));
	put(s, is->bytes.p, a.nbytes);
	put(s, is->extra, a.nextra);
}

void
sources_end(struct sources *s, uint64_t memory)
{
	char number[32];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)memory);
	put_question(s, KIND_END, number);
}

size_t
sources_put_failure(char *dst, size_t size, const char *why)
{
	struct question q = { KIND_FAILURE, (uint32_t)strlen(why) + 1 };

	must(size >= sizeof(q) + q.nkey);
	memcpy(dst, &q, sizeof(q));
	memcpy(dst + sizeof(q), why, q.nkey);
	return (sizeof(q) + q.nkey);
}

/* ---------------------------------------------------------------- replay */

struct sources *
sources_replay(void)
{
	struct sources *s = g_new0(struct sources, 1);

	s->fd = -1;
	buf_init(&s->in, SOURCES_RECORD_MAX);
	s->items = g_array_new(FALSE, FALSE, sizeof(struct item));
	return (s);
}

/* True if n more bytes exist; *at moves past them. */
static bool
have(const struct sources *s, size_t *at, size_t n)
{
	if (s->in.n - *at < n)
		return (false);
	*at += n;
	return (true);
}

static int
take_last(struct sources *s, const struct question *q, const char *key)
{
	if (q->kind == KIND_FAILURE) {
		s->failure = key;
		return (0);
	}
	s->whole = true;
	return (text_u64(text_of(key), &s->memory) == 0 ? 0 : -EPROTO);
}

/* 1: *q and the offset of its key are set, *at is after them; 0: more bytes are needed;
 * -EPROTO. */
static int
take_question(const struct sources *s, size_t *at, struct question *q, size_t *key)
{
	const char *p = s->in.p + *at;

	if (!have(s, at, sizeof(*q)))
		return (0);
	memcpy(q, p, sizeof(*q));
	if (q->kind > KIND_FAILURE || q->nkey == 0 || q->nkey > KEY_MAX + 1)
		return (-EPROTO);
	*key = *at;
	if (!have(s, at, q->nkey))
		return (0);
	return (s->in.p[*at - 1] == '\0' ? 1 : -EPROTO);
}

/* As take_question(), for an answer: it->a and its offsets. */
static int
take_answer(const struct sources *s, size_t *at, struct item *it)
{
	it->bytes = *at + sizeof(it->a);
	if (!have(s, at, sizeof(it->a)))
		return (0);
	memcpy(&it->a, s->in.p + it->bytes - sizeof(it->a), sizeof(it->a));
	if (it->a.kind != KIND_ANSWER || it->a.err > 0 || it->a.err < -ERRNO_MAX ||
	    it->a.nbytes > SOURCES_FILE_MAX || it->a.nextra > EXTRA_MAX)
		return (-EPROTO);
	it->extra = it->bytes + it->a.nbytes;
	if (!have(s, at, (size_t)it->a.nbytes + it->a.nextra))
		return (0);
	return (it->a.nextra == 0 || s->in.p[*at - 1] == '\0' ? 1 : -EPROTO);
}

static bool
failure_follows(const struct sources *s, size_t at)
{
	uint32_t kind = 0;

	if (s->in.n - at >= sizeof(kind))
		memcpy(&kind, s->in.p + at, sizeof(kind));
	return (kind == KIND_FAILURE);
}

/* 1: took an item; 0: more bytes are needed; -EPROTO. */
static int
take_item(struct sources *s)
{
	struct item it = { 0 };
	size_t at = s->parsed;
	int res;

	s->asked.nkey = 0;
	res = take_question(s, &at, &it.q, &it.key);
	if (res != 1)
		return (res);
	if (it.q.kind >= SOURCE_KINDS) {
		s->parsed = at;
		return (take_last(s, &it.q, s->in.p + it.key));
	}
	s->asked = it.q;
	if (failure_follows(s, at)) {
		res = take_question(s, &at, &it.q, &it.key);
		return (res == 1 ? take_last(s, &it.q, s->in.p + it.key) : res);
	}
	res = take_answer(s, &at, &it);
	if (res != 1)
		return (res);
	g_array_append_val(s->items, it);
	s->parsed = at;
	s->asked.nkey = 0;
	return (1);
}

/* realloc(3) would leave a copy in the heap, perhaps of a private key. */
static bool
make_room(struct sources *s, size_t n)
{
	size_t need = s->in.n + n, want = need < SOURCES_RECORD_MAX / 2 ? 2 * need : need;
	struct buf next;

	if (n <= s->in.cap - s->in.n)
		return (true);
	buf_init(&next, SOURCES_RECORD_MAX);
	if (buf_extend(&next, want) == NULL)
		return (false);
	next.n = 0;
	buf_add(&next, s->in.p, s->in.n);
	if (s->in.p != NULL)
		explicit_bzero(s->in.p, s->in.n);
	buf_free(&s->in);
	s->in = next;
	return (true);
}

int
sources_feed(struct sources *s, const void *p, size_t n)
{
	int res;

	if (s->whole || s->failure != NULL)
		return (-EPROTO); /* bytes after the end */
	if (n > SOURCES_RECORD_MAX - s->in.n)
		return (-EFBIG);
	if (!make_room(s, n))
		return (-ENOMEM);
	buf_add(&s->in, p, n);
	while ((res = take_item(s)) == 1)
		;
	if (res == 0 && s->whole && s->parsed != s->in.n)
		res = -EPROTO;
	return (res);
}

bool
sources_whole(const struct sources *s)
{
	return (s->whole);
}

uint64_t
sources_memory(const struct sources *s)
{
	return (s->memory);
}

char *
sources_digest(const struct sources *s)
{
	return (g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)s->in.p, s->in.n));
}

bool
sources_refused(const struct sources *s)
{
	return (s != NULL && s->fd < 0 && s->whole && s->memory == 0);
}

const char *
sources_failure(const struct sources *s)
{
	return (s->failure);
}

void
sources_waits_for(const struct sources *s, struct buf *out)
{
	static const char *const before[SOURCE_KINDS] = {
		[SOURCE_FILE] = "the file ",
		[SOURCE_SHELL] = "the command ",
		[SOURCE_GLOB] = "the files of ",
		[SOURCE_HOST] = "the addresses of ",
		[SOURCE_STDIN] = "",
	};
	const char *key;

	if (s->asked.nkey == 0)
		return;
	key = s->in.p + s->parsed + sizeof(s->asked);
	buf_str(out, before[s->asked.kind]);
	buf_char(out, '"');
	buf_log_quoted(out, (struct text){ key, MIN(strlen(key), 200) });
	buf_char(out, '"');
}

static char *
copy(const char *p, size_t n, int *err)
{
	char *c = malloc(n + 1);

	if (c == NULL) {
		*err = -ENOMEM;
		return (NULL);
	}
	memcpy(c, p, n);
	c[n] = '\0';
	return (c);
}

static struct source
answer_of(const struct sources *s, const struct item *it)
{
	struct source is = { .err = it->a.err, .status = it->a.status };

	if (it->a.nbytes > 0)
		is.bytes =
		    (struct text){ copy(s->in.p + it->bytes, it->a.nbytes, &is.err), it->a.nbytes };
	if (it->a.nextra > 0)
		is.extra = copy(s->in.p + it->extra, it->a.nextra - 1, &is.err);
	if (is.bytes.p == NULL)
		is.bytes.n = 0;
	return (is);
}

/* Questions come in the order of the record, so the first item is nearly always the right one. */
static struct source
replayed(struct sources *s, enum source_kind kind, const char *key)
{
	const struct item *it;
	guint i, at;

	for (i = 0; i < s->items->len; i++) {
		at = (s->next + i) % s->items->len;
		it = &g_array_index(s->items, struct item, at);
		if (it->q.kind == kind && strcmp(s->in.p + it->key, key) == 0) {
			s->next = at + 1;
			return (answer_of(s, it));
		}
	}
	return ((struct source){ .err = -ENODATA });
}

/* ---------------------------------------------------------------- all three */

struct source
sources_get(struct sources *s, enum source_kind kind, const char *key, const char *dir)
{
	struct source is;

	if (s != NULL && s->fd < 0)
		return (replayed(s, kind, key));
	if (s != NULL)
		put_question(s, kind, key);
	is = source_read(kind, key, dir);
	if (s != NULL && s->hide != NULL && kind == SOURCE_FILE && is.err == 0)
		is.err = s->hide(s->hide_arg, &is.bytes);
	if (s != NULL)
		put_answer(s, &is);
	return (is);
}

void
sources_free(struct sources *s)
{
	if (s == NULL)
		return;
	if (s->fd < 0) {
		if (s->in.p != NULL)
			explicit_bzero(s->in.p, s->in.n); /* it may have private keys */
		buf_free(&s->in);
		g_array_free(s->items, TRUE);
	}
	g_free(s);
}
