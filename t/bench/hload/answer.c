/* t/bench/hload/answer.c -- bytes to answers: heads, bodies with a length, chunks, and --check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include "t/bench/hload/hload.h"

/* The value of a header field in a head that ends in an empty line, or NULL. */
static const char *
field(const char *head, const char *name)
{
	const char *p = head;
	size_t len = strlen(name);

	while ((p = strchr(p, '\n')) != NULL) {
		p++;
		if (strncasecmp(p, name, len) == 0 && p[len] == ':') {
			p += len + 1;
			return (p + strspn(p, " \t"));
		}
	}
	return (NULL);
}

static bool
has_word(const char *value, const char *word)
{
	const char *end, *p;

	if (value == NULL)
		return (false);
	end = value + strcspn(value, "\r\n");
	for (p = value; p + strlen(word) <= end; p++)
		if (strncasecmp(p, word, strlen(word)) == 0)
			return (true);
	return (false);
}

/* How the head says that the body ends. */
static void
head_length(struct conn *c, const char *head, int status)
{
	const char *v;

	c->chunked = has_word(field(head, "Transfer-Encoding"), "chunked");
	c->until_eof = false;
	c->left = 0;
	c->part = BODY;
	if (strcmp(opt.method, "HEAD") == 0 || status == 204 || status == 304)
		c->chunked = false;
	else if (c->chunked)
		c->part = CHUNK_LINE;
	else if ((v = field(head, "Content-Length")) != NULL)
		c->left = strtoull(v, NULL, 10);
	else {
		c->until_eof = c->last = true;
		c->left = UINT64_MAX;
	}
}

/* Reads a whole head that ends in a NUL.  False: malformed. */
static bool
head_read(struct conn *c, const char *head)
{
	int status;

	if (strncmp(head, "HTTP/1.", 7) != 0 || head[8] != ' ')
		return (false);
	status = atoi(head + 9);
	if (status < 100 || status > 599)
		return (false);
	if (status < 200)
		return (true); /* the final head follows */
	c->begun = true;
	c->got = 0;
	c->abort_at = NEVER;
	c->status_ok = opt.status != 0 ? status == opt.status : status / 100 == 2;
	c->bytes_ok = true;
	c->last = opt.close || has_word(field(head, "Connection"), "close") ||
		  (head[7] == '0' && !has_word(field(head, "Connection"), "keep-alive"));
	head_length(c, head, status);
	if (opt.abort_pct > 0 && (double)(random_u64() % 10000) < opt.abort_pct * 100)
		c->abort_at =
		    c->left == 0 ? 0 : random_u64() % (c->left < (1 << 30) ? c->left : 4096);
	return (true);
}

static void
check_bytes(struct conn *c, const char *p, size_t n)
{
	const struct url *u = c->asked[c->first].url;

	if (u->expect == NULL || !c->status_ok || !c->bytes_ok)
		return;
	if (c->got + n <= u->expect_len && memcmp(u->expect + c->got, p, n) == 0)
		return;
	c->bytes_ok = false;
	fprintf(stderr, "hload: %s: wrong bytes between %llu and %llu\n", u->path,
	    (unsigned long long)c->got, (unsigned long long)(c->got + n));
}

void
answer_done(struct conn *c)
{
	const struct asked *a = &c->asked[c->first];

	if (!c->status_ok)
		cnt.status++;
	else if (!c->bytes_ok || (a->url->expect != NULL && c->got != a->url->expect_len))
		cnt.wrong++;
	cnt.answered++;
	latency_add(now() - a->at);
	c->first = (c->first + 1) % PIPELINE_MAX;
	c->n--;
	c->part = HEAD;
	c->begun = false;
}

size_t
body_take(struct conn *c, const char *p, size_t n)
{
	if (n > c->left)
		n = (size_t)c->left;
	if (c->got == 0 && n > 0)
		first_add(now() - c->asked[c->first].at);
	if (p != NULL && opt.check != NULL)
		check_bytes(c, p, n);
	c->left -= n;
	c->got += n;
	cnt.bytes += n;
	return (n);
}

/* Reads a whole head, chunk length or trailer.  False: malformed. */
static bool
line_done(struct conn *c, char *line)
{
	char *end;

	switch (c->part) {
	case HEAD: return (head_read(c, line));
	case CHUNK_LINE:
		c->left = strtoull(line, &end, 16);
		c->part = c->left > 0 ? BODY : TRAILER;
		return (end != line);
	case CHUNK_END: c->part = CHUNK_LINE; return (true);
	case TRAILER:
		if (line[0] == '\r' || line[0] == '\n')
			answer_done(c);
		return (true);
	default: return (false);
	}
}

/* Moves bytes into c->buf until a head or line is whole.  Returns how many it used, or -1. */
static ssize_t
line_take(struct conn *c, const char *p, size_t n)
{
	const char *mark = c->part == HEAD ? "\r\n\r\n" : "\n", *found;
	size_t mark_len = strlen(mark), from, take;

	take = n < HEAD_MAX - c->have ? n : HEAD_MAX - c->have;
	memcpy(c->buf + c->have, p, take);
	from = c->have < mark_len ? 0 : c->have - mark_len + 1;
	found = memmem(c->buf + from, c->have + take - from, mark, mark_len);
	if (found == NULL) {
		c->have += take;
		return (c->have < HEAD_MAX ? (ssize_t)take : -1);
	}
	take = (size_t)(found - c->buf) + mark_len - c->have;
	c->buf[c->have + take] = '\0';
	c->have = 0;
	return (line_done(c, c->buf) ? (ssize_t)take : -1);
}

/* Avoids the copy if the received bytes hold a whole head. */
static ssize_t
head_take(struct conn *c, char *p, size_t n)
{
	char *found, kept;
	ssize_t used;

	if (c->part != HEAD || c->have > 0 || (found = memmem(p, n, "\r\n\r\n", 4)) == NULL)
		return (line_take(c, p, n));
	found += 4;
	used = found - p;
	kept = *found; /* the buffer has room for one more byte */
	*found = '\0';
	if (!head_read(c, p))
		used = -1;
	*found = kept;
	return (used);
}

bool
answer_take(struct conn *c, char *p, size_t n)
{
	ssize_t used;

	for (;;) {
		if (c->part == BODY && c->got >= c->abort_at) {
			cnt.aborted += c->n;
			conn_close(c);
			conn_next(c);
			return (false);
		}
		if (c->part == BODY && c->left == 0) {
			if (!c->chunked)
				answer_done(c);
			else
				c->part = CHUNK_END;
		}
		if (n == 0)
			return (true);
		if (c->n == 0)
			break; /* bytes without a request */
		used = c->part == BODY ? (ssize_t)body_take(c, p, n) : head_take(c, p, n);
		if (used < 0)
			break;
		p += used;
		n -= (size_t)used;
	}
	conn_fail(c, &cnt.malformed);
	return (false);
}
