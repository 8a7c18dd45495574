/* t/unit/io/http2_no_memory.c -- each allocation of a connection of HTTP/2 fails in turn, those of
 * the library, too.
 *
 * Whatever fails, each request is answered, or its stream or the connection ends; nothing leaks.
 * The session gets malloc() and the like of t/unit/allocations.h as its memory (--wrap in the
 * Makefile).
 */
#include "t/unit/allocations.h"

#include "t/unit/io/http2_test.h"

void *__real_aligned_alloc(size_t, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_nghttp2_session_server_new2(nghttp2_session **, const nghttp2_session_callbacks *,
    void *, const nghttp2_option *);

void *
__wrap_aligned_alloc(size_t page, size_t n)
{
	return (fails() ? NULL : __real_aligned_alloc(page, n));
}

static void *
ng_malloc(size_t n, void *arg)
{
	return (__wrap_malloc(n));
}

static void *
ng_calloc(size_t n, size_t size, void *arg)
{
	return (__wrap_calloc(n, size));
}

/* Only for its queues of streams.  nghttp2 1.52 frees a frame twice if its queue cannot grow. */
static void *
ng_realloc(void *p, size_t n, void *arg)
{
	return (__real_realloc(p, n));
}

static void
ng_free(void *p, void *arg)
{
	free(p);
}

int
__wrap_nghttp2_session_server_new2(nghttp2_session **s, const nghttp2_session_callbacks *cb,
    void *arg, const nghttp2_option *o)
{
	static nghttp2_mem mem = { NULL, ng_malloc, ng_free, ng_calloc, ng_realloc };

	return (nghttp2_session_server_new3(s, cb, arg, o, &mem));
}

/* ---- */

/* As the server: the client hears why it may not go on. */
static void
go_on(void)
{
	exchange();
	if (now.received == 0 || h2->ending)
		return;
	SERVER_WORKS(true);
	http2_end(h2);
	SERVER_WORKS(false);
	exchange();
}

static bool
is_open(const struct owner *o)
{
	return (!o->closed && now.ended == 0);
}

static void
read_all(struct owner *o)
{
	while (is_open(o) && o->rd.state == OP_IDLE && o->rd_res != -ECONNRESET) {
		hear(o);
		go_on();
	}
}

static void
stop(struct owner *o)
{
	SERVER_WORKS(true);
	stop_owner(o);
	SERVER_WORKS(false);
	go_on();
}

static void
reply(struct owner *o, const char *head, size_t n)
{
	if (!is_open(o))
		return;
	say(o, head);
	go_on();
	if (is_open(o) && o->wr.state == OP_IDLE && o->wr_res > 0 && n > 0)
		say_bytes(o, many, n);
	go_on();
	if (o->wr.state != OP_IDLE || o->wr_res <= 0 || o->rd.state != OP_IDLE) {
		stop(o);
		return;
	}
	SERVER_WORKS(true);
	(void)http2_trailers(&o->sock, TEXT("X-Sum: 1\r\nX-B: 2\r\n"));
	close_owner(o, false);
	SERVER_WORKS(false);
	go_on();
}

static int32_t
three_requests(void)
{
	nghttp2_nv nv = { (uint8_t *)"x", (uint8_t *)"y", 1, 1, 0 };
	int32_t first = ask(GET "cookie a\ncookie b\npriority u=1\n");
	int32_t post = ask_with(POST, 100000, false);
	unsigned i;

	nghttp2_submit_priority_update(client, NGHTTP2_FLAG_NONE, post + 2, (const uint8_t *)"u=1",
	    3);
	ask(GET "x y\n");
	go_on();
	for (i = 0; i < nowners; i++)
		if (g_str_has_prefix(owner[i].head, "POST"))
			read_all(&owner[i]);
	nghttp2_submit_trailer(client, post, &nv, 1);
	go_on();
	return (first);
}

/* Each has all of its reply, or its stream or the connection has ended. */
static void
all_ended(int32_t first)
{
	int32_t id;

	for (id = first; id < first + 6; id += 2) {
		if (now.ended != 0 || now.received != 0)
			continue;
		if (reply_of(id)->ended)
			g_assert_cmpuint(reply_of(id)->body->len, ==, id == first ? 2 : 200000);
		else
			g_assert_true(reply_of(id)->closed);
	}
}

static void
scenario(void)
{
	int32_t first = three_requests();
	unsigned i;

	now.room = 5000; /* then the socket is full */
	for (i = 0; i < nowners; i++) {
		if (strstr(owner[i].head, "cookie") != NULL)
			reply(&owner[i], "HTTP/1.1 103 x\r\nA: b\r\n\r\n" OK "\r\nok", 0);
		else
			reply(&owner[i], OK "Content-Length: 200000\r\n\r\n", 200000);
		now.room = SIZE_MAX;
		go_on();
	}
	SERVER_WORKS(true);
	http2_drain(h2);
	SERVER_WORKS(false);
	go_on();
	all_ended(first);
}

/* False: it has fewer allocations. */
static bool
one_fails(unsigned nth, bool lasts)
{
	bool failed;

	up();
	memory.n = 0;
	memory.lasts = lasts;
	memory.first = nth;
	scenario();
	failed = memory.n >= nth;
	memory.first = 0;
	memory.lasts = false;
	down();
	return (failed);
}

static void
each_fails(bool lasts)
{
	unsigned n;

	for (n = 1; one_fails(n, lasts); n++)
		g_test_message("allocation %u", n);
	g_assert_cmpuint(n, >, 50);
}

TEST("/http2-no-memory/once")
{
	each_fails(false);
}

TEST("/http2-no-memory/from then on")
{
	each_fails(true);
}

TEST("/http2-no-memory/no connection")
{
	const struct http2_conf conf = { .max_streams = 100, .max_head = 8192 };
	unsigned n = 0;

	io = sim_new();
	io_sock_init(&sock, 7);
	do {
		memory.n = 0;
		memory.first = ++n;
		SERVER_WORKS(true);
		h2 = http2_new(io, &sock, &conf, &owner_calls, &now);
		SERVER_WORKS(false);
	} while (h2 == NULL);
	memory.first = 0;
	g_assert_cmpuint(n, >, 5);
	http2_free(h2);
	io_free(io);
}
