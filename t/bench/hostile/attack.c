/* t/bench/hostile/attack.c -- the table of attacks and what their connections send. */
#include <stdio.h>
#include <string.h>
#include "t/bench/hostile/hostile.h"

#define HEAD_MAX (PIECE_MAX / 4) /* a piece holds some heads */

static size_t
put(char *out, const char *method, const char *path, const char *fields)
{
	return ((size_t)snprintf(out, HEAD_MAX, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method,
	    path, opt.host, fields));
}

/* ---------------------------------------------------------------- readers */

static size_t
ask_big(struct peer *p, char *out, unsigned *requests)
{
	if (p->step > 0)
		return (0);
	*requests = 1;
	return (put(out, "GET", opt.big, ""));
}

static size_t
ask_app(struct peer *p, char *out, unsigned *requests)
{
	if (p->step > 0)
		return (0);
	*requests = 1;
	return (put(out, "GET", opt.app_big, ""));
}

/* As many requests as fit, again and again, until the socket takes no more. */
static size_t
pipeline(struct peer *p, char *out, unsigned *requests)
{
	char one[512];
	size_t len = 0, n;

	n = (size_t)snprintf(one, sizeof(one), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n",
	    p->number % 2 ? opt.big : opt.file, opt.host);
	for (; *requests < 64 && len + n <= PIECE_MAX; (*requests)++, len += n)
		memcpy(out + len, one, n);
	return (p->step < 64 ? len : 0);
}

/* ---------------------------------------------------------------- writers */

/* A head that never ends, a byte at a time. */
static size_t
drip_head(struct peer *p, char *out, unsigned *requests)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\nX-Drip: ";

	out[0] = p->step < sizeof(head) - 1 ? head[p->step] : 'x';
	return (1);
}

static size_t
post_head(char *out, const char *fields)
{
	return (put(out, "POST", opt.app, fields));
}

static size_t
drip_body(struct peer *p, char *out, unsigned *requests)
{
	if (p->step == 0) {
		*requests = 1;
		return (post_head(out, "Content-Length: 100000\r\n"));
	}
	memset(out, 'b', 10);
	return (10);
}

static size_t
drip_chunked(struct peer *p, char *out, unsigned *requests)
{
	if (p->step == 0) {
		*requests = 1;
		return (post_head(out, "Transfer-Encoding: chunked\r\n"));
	}
	return ((size_t)snprintf(out, PIECE_MAX, "1\r\nb\r\n"));
}

/* Announces half a megabyte, and sends a part of it. */
static size_t
stop_body(struct peer *p, char *out, unsigned *requests)
{
	static const unsigned pieces[] = { 0, 1, 8, 24 };

	if (p->step == 0) {
		*requests = 1;
		return (post_head(out, p->number % 2 ? "Content-Length: 524288\r\n"
						     : "Transfer-Encoding: chunked\r\n"));
	}
	if (p->step > pieces[p->number % 4])
		return (0);
	memset(out, 'b', PIECE_MAX);
	if (p->number % 2 == 0)
		/* the chunk fills the piece; its line break comes only with the next piece */
		memcpy(out, "3ffa\r\n", 6);
	if (p->number % 2 == 0 && p->step > 1)
		memcpy(out, "\r\n3ff8\r\n", 8);
	return (PIECE_MAX);
}

static size_t
silent(struct peer *p, char *out, unsigned *requests)
{
	return (0);
}

static size_t
half_head(struct peer *p, char *out, unsigned *requests)
{
	int n =
	    snprintf(out, PIECE_MAX, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Half: ", opt.file, opt.host);

	if (p->step > 0)
		return (0);
	memset(out + n, 'h', 2048);
	return ((size_t)n + 2048);
}

/* ---------------------------------------------------------------- storms */

static size_t
ask_cold(struct peer *p, char *out, unsigned *requests)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%u", opt.cold, dice(opt.ncold));
	*requests = 1;
	return (put(out, "GET", path, ""));
}

static size_t
ask_cold_once(struct peer *p, char *out, unsigned *requests)
{
	return (p->step > 0 ? 0 : ask_cold(p, out, requests));
}

/* Names that do not exist: in memory, and on the slow disk. */
static size_t
ask_absent(struct peer *p, char *out, unsigned *requests)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s-absent-%u-%u", p->number % 2 ? "/" : opt.cold, "no",
	    p->number, dice(1u << 30));
	*requests = 1;
	return (put(out, "HEAD", path, ""));
}

/* 200 ranges that overlap, then sixteen that do not. */
static size_t
ask_ranges(struct peer *p, char *out, unsigned *requests)
{
	char field[4096] = "Range: bytes=";
	size_t n = strlen(field);
	unsigned i, many = p->step % 2 ? 16 : 200;

	for (i = 0; i < many; i++)
		n += (size_t)snprintf(field + n, sizeof(field) - n, "%s%u-%u", i > 0 ? "," : "",
		    i * (many == 16 ? 1000 : 1),
		    i * (many == 16 ? 1000 : 1) + (many == 16 ? 1 : 4000));
	snprintf(field + n, sizeof(field) - n, "\r\n");
	*requests = 1;
	return (put(out, "GET", opt.big, field));
}

/* Combinations of words that conditions on User-Agent look for, and hosts in many spellings. */
static size_t
ask_agents(struct peer *p, char *out, unsigned *requests)
{
	char fields[512] = "User-Agent: ";
	unsigned bits = dice(1u << 15), i;
	size_t n = strlen(fields);

	for (i = 0; i < 15; i++)
		n += (size_t)snprintf(fields + n, sizeof(fields) - n, "%s%u ",
		    bits >> i & 1 ? "a" : "b", i);
	snprintf(fields + n, sizeof(fields) - n, "\r\n");
	*requests = 1;
	return (put(out, "HEAD", opt.file, fields));
}

/* ---------------------------------------------------------------- nonsense */

/* In turn: a head near the limit, one field over it, many fields over it, a list of 2000 Connection
 * words. */
static size_t
big_head(struct peer *p, char *out, unsigned *requests)
{
	unsigned kind = p->number % 4;
	size_t n, fill = kind == 0 ? 7500 : 15000;

	*requests = 1;
	n = (size_t)snprintf(out, PIECE_MAX, "GET %s HTTP/1.1\r\nHost: %s\r\n", opt.file, opt.host);
	if (kind == 3)
		n += (size_t)snprintf(out + n, PIECE_MAX - n, "Connection: ");
	else if (kind < 2)
		n += (size_t)snprintf(out + n, PIECE_MAX - n, "X-Fill: ");
	while (n < fill)
		n += (size_t)snprintf(out + n, PIECE_MAX - n,
		    kind == 3   ? "a,"
		    : kind == 2 ? "X-%zu: v\r\n"
				: "f",
		    n);
	return (n + (size_t)snprintf(out + n, PIECE_MAX - n, kind == 2 ? "\r\n" : "\r\n\r\n"));
}

static size_t
bad_chunks(struct peer *p, char *out, unsigned *requests)
{
	static const char *const bodies[] = {
		"ffffffffffffffffff\r\nx",
		"-1\r\nx\r\n0\r\n\r\n",
		"5\r\nabc\r\n0\r\n\r\n",
		"1;\r\nx\r\n0\r\n\r\n",
		"0x5\r\nhello\r\n",
		"\r\n\r\n\r\n",
		"7fffffffffffffff\r\nabc",
		"1\r\nx\r\n0\r\nA: b\r\nGET / HTTP/1.1\r\n\r\n",
		"5\nhello\n0\n\n",
		"00000000000000000000000000000000000000001\r\nx\r\n",
	};
	size_t n;

	*requests = 1;
	n = post_head(out, "Transfer-Encoding: chunked\r\n");
	return (n + (size_t)snprintf(out + n, PIECE_MAX - n, "%s",
			bodies[p->number % (sizeof(bodies) / sizeof(bodies[0]))]));
}

/* ---------------------------------------------------------------- where two features meet */

/* A malformed body for an application that gets bodies while they arrive, in the segment of its
 * head or in the next one.  With an error handler it is one request inside another. */
static size_t
bad_stream(struct peer *p, char *out, unsigned *requests)
{
	size_t n = 0;

	if (p->step == 0) {
		*requests = 1;
		n = put(out, "POST", opt.stream, "Transfer-Encoding: chunked\r\n");
	}
	if (p->step > 1 || (p->step == 0 && p->number % 2 != 0))
		return (n);
	return (n + (size_t)snprintf(out + n, PIECE_MAX - n, "ZZ\r\n"));
}

/* A file that is not in memory, and a body for an application right after it. */
static size_t
behind_cold(struct peer *p, char *out, unsigned *requests)
{
	size_t n = ask_cold(p, out, requests);

	*requests = 3;
	n += put(out + n, "POST", opt.stream, "Content-Length: 5\r\n");
	n += (size_t)snprintf(out + n, PIECE_MAX / 2, "hello");
	return (n + put(out + n, "GET", opt.file, ""));
}

/* An application names a file that is missing, and a request waits behind the error page. */
static size_t
stale_name(struct peer *p, char *out, unsigned *requests)
{
	size_t n = put(out, "GET", opt.stale, "");

	*requests = 2;
	return (n + put(out + n, "GET", opt.file, ""));
}

/* Leaves while its reply waits for another part of the server. */
static size_t
leave_behind(struct peer *p, char *out, unsigned *requests)
{
	return (p->step > 0          ? 0
		: p->number % 3 == 0 ? behind_cold(p, out, requests)
		: p->number % 3 == 1 ? stale_name(p, out, requests)
				     : bad_stream(p, out, requests));
}

static size_t
noise(struct peer *p, char *out, unsigned *requests)
{
	static const char *const words[] = { "GET ", "POST / HTTP/1.1\r\n", "Host: x\r\n", "\r\n",
		"Content-Length: 5\r\n", " ", "\n", ":" };
	size_t n = 0, want = 1 + dice(2000);

	while (n < want)
		if (dice(3) == 0)
			n += (size_t)snprintf(out + n, PIECE_MAX - n, "%s", words[dice(8)]);
		else
			out[n++] = (char)dice(256);
	return (p->step > 3 ? 0 : n);
}

static size_t
ask_file(struct peer *p, char *out, unsigned *requests)
{
	if (p->step > 0)
		return (0);
	*requests = 1;
	return (put(out, "GET", opt.file, "Connection: close\r\n"));
}

const struct attack attacks[] = {
	{ "slow-read", "asks for --big and reads 512 bytes at a time", 200, 2000, .sip = 512,
	    .next = ask_big },
	{ "slow-app", "asks for --app-big and reads 512 bytes at a time", 50, 1000, .sip = 512,
	    .next = ask_app },
	{ "no-read", "pipelines requests and never reads", 100, 1000, .deaf = true,
	    .next = pipeline },
	{ "slow-head", "sends a head byte by byte", 500, 2000, .pause_ms = 100, .next = drip_head },
	{ "slow-body", "sends a body to --app, 10 bytes at a time", 50, 1000, .pause_ms = 100,
	    .next = drip_body },
	{ "slow-chunks", "sends chunks of one byte to --app", 50, 1000, .pause_ms = 20,
	    .next = drip_chunked },
	{ "stop-body", "stops in the middle of a body for --app", 50, 500, .next = stop_body },
	{ "silent", "connects and says nothing", 1000, 5000, .next = silent },
	{ "half-head", "sends 2 kB of a head and stops", 2000, 5000, .next = half_head },
	{ "connect-reset", "connects and breaks the connection", 100, 3000, .reset_ms = 1,
	    .next = silent },
	{ "cold-reset", "asks for a file of --cold and breaks the connection while it is looked up",
	    100, 1000, .reset_ms = 5, .next = ask_cold_once },
	{ "cold", "asks for files of --cold, one after the other on each connection", 200, 2000,
	    .again = true, .next = ask_cold },
	{ "absent", "asks for names that do not exist", 50, 1000, .again = true,
	    .next = ask_absent },
	{ "ranges", "asks for many ranges of --big", 50, 1000, .again = true, .next = ask_ranges },
	{ "agents", "asks with many combinations of words in User-Agent", 20, 1000, .again = true,
	    .next = ask_agents },
	{ "big-head", "sends heads near the limit and beyond it", 50, 500, .again = true,
	    .next = big_head },
	{ "bad-chunks", "sends chunked bodies that are none", 50, 500, .reset_ms = 50,
	    .next = bad_chunks },
	{ "bad-stream", "sends malformed chunks to --stream, which has an error handler", 50, 500,
	    .pause_ms = 5, .reset_ms = 500, .next = bad_stream },
	{ "behind-cold", "asks for a file of --cold and sends a body to --stream after it", 50,
	    1000, .again = true, .next = behind_cold },
	{ "stale-name", "asks for --stale, for which an application names a missing file", 50, 1000,
	    .again = true, .next = stale_name },
	{ "leave-behind", "the three before, and breaks the connection meanwhile", 50, 500,
	    .reset_ms = 3, .next = leave_behind },
	{ "noise", "sends random bytes between words of HTTP", 50, 1000, .reset_ms = 50,
	    .next = noise },
	{ "one-each", "a connection for each request of --file", 20, 500, .next = ask_file },
	{ NULL },
};

const struct attack *
attack_named(const char *name)
{
	const struct attack *const tables[] = { attacks, h2_attacks };
	const struct attack *a;
	unsigned i;

	for (i = 0; i < 2; i++)
		for (a = tables[i]; a->name != NULL; a++)
			if (strcmp(a->name, name) == 0)
				return (a);
	return (NULL);
}
