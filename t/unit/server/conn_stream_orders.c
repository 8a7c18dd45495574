/* t/unit/server/conn_stream_orders.c -- streamed bodies and tunnels, and everything that can happen
 * to them in any order.
 *
 * Clients send bodies of a known pattern to applications that answer when they like, even before
 * the body is there.  Whatever happens, an application gets the beginning of the pattern, and a
 * client gets whole replies in order, the last of which may be cut.
 */
#include "t/unit/server/simworker.h"

#define NCLIENTS 3
#define STEPS    300
#define LONGEST  150000u

#define CONFIG                                                                                   \
	"server.max-read-idle = 5\nserver.max-write-idle = 5\n$HTTP[\"url\"] =~ \"^/up\" {\n"    \
	"proxy-core.protocol = \"http\"\nproxy-core.backends = ( \"10.0.0.1:80\" )\n"            \
	"proxy-core.max-pool-size = 2\nproxy-core.upgrade = ( \"websocket\" )\n"                 \
	"proxy-core.allow-x-sendfile = \"enable\"\nserver.stream-request-body = 1\n"             \
	"proxy-core.read-timeout = 5\nserver.max-request-size = 100\nproxy-core.disable-time = " \
	"0\n}\n"

struct end {
	struct io_sock *s;
	GString *to_say;
	size_t said;
	int fd; /* of an application's socket */
};

static struct {
	struct end e;
	unsigned nth; /* of all clients */
} v[NCLIENTS];

static struct end apps[16];
static char pattern[LONGEST];
static GRand *rnd;
static unsigned replies, tunnels, bodies, early;

static unsigned
any(unsigned n)
{
	return ((unsigned)g_rand_int_range(rnd, 0, (gint32)n));
}

/* Most bodies fit into a buffer, some do not. */
static size_t
some_length(void)
{
	return (any(any(3) != 0 ? 300 : LONGEST));
}

/* ---------------------------------------------------------------- clients */

static void
add_chunked(GString *to, size_t n)
{
	size_t at = 0, piece;

	for (; at < n; at += piece) {
		piece = 1 + any((unsigned)(n - at));
		g_string_append_printf(to, "%zx\r\n", piece);
		g_string_append_len(to, pattern + at, (gssize)piece);
		g_string_append(to, "\r\n");
	}
	g_string_append(to, any(20) == 0 ? "what\r\n" : "0\r\n\r\n");
}

/* False: nothing can follow. */
static bool
add_request(GString *to)
{
	size_t n = some_length();

	switch (any(5)) {
	case 0: g_string_append(to, GET("/a")); break;
	case 1:
		g_string_append(to, "POST /up HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n");
		g_string_append(to, any(4) == 0 ? "Expect: 100-continue\r\n\r\n" : "\r\n");
		add_chunked(to, n);
		break;
	case 2:
		g_string_append(to, "GET /up/ws HTTP/1.1\r\n" HOST
				    "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
		g_string_append_len(to, pattern, (gssize)n);
		return (false);
	default:
		g_string_append_printf(to,
		    "POST /up HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", n);
		g_string_append_len(to, pattern, (gssize)n);
	}
	return (true);
}

static void
client_comes(unsigned i)
{
	v[i].e.s = client();
	v[i].nth = clients - 1;
	v[i].e.to_say = g_string_new(NULL);
	v[i].e.said = 0;
	if (add_request(v[i].e.to_say) && any(2) != 0)
		add_request(v[i].e.to_say);
}

/* Replies in order; the bodies of applications and the bytes of tunnels are the pattern. */
static void
client_checks(unsigned i)
{
	struct text t = sim_sent(io, v[i].e.s);
	const char *end, *length;
	size_t n;
	int status;

	while (t.n > 12 && (end = memmem(t.p, t.n, "\r\n\r\n", 4)) != NULL) {
		g_assert_cmpmem(t.p, 9, "HTTP/1.1 ", 9);
		status = atoi(t.p + 9);
		end += 4;
		length = memmem(t.p, (size_t)(end - t.p), "Content-Length: ", 16);
		n = length != NULL ? (size_t)atol(length + 16) : 0;
		t.n -= (size_t)(end - t.p);
		n = n < t.n && status != 101 ? n : t.n;
		if (status == 101 || (length != NULL && memmem(end - 12, 12, "X-App", 5) != NULL))
			g_assert_cmpmem(end, n, pattern, n);
		replies += status == 200;
		tunnels += status == 101 && n != 0;
		if (status < 200 && status != 101)
			n = 0;
		t.p = end + n;
		t.n -= n;
	}
}

static void
client_goes(unsigned i)
{
	client_checks(i);
	g_string_free(v[i].e.to_say, TRUE);
	sim_sent_clear(io, v[i].e.s);
	client_comes(i);
}

/* ---------------------------------------------------------------- applications */

static struct end *
app_of(const struct io_sock *s)
{
	unsigned i;

	for (i = 0; i < G_N_ELEMENTS(apps); i++)
		if (apps[i].s == s)
			return (&apps[i]);
	return (NULL);
}

/* What was received is the beginning of the pattern, after a head. */
static void
app_checks(struct end *a)
{
	struct text t = sim_sent(io, a->s);
	const char *end = t.n != 0 ? memmem(t.p, t.n, "\r\n\r\n", 4) : NULL;
	size_t n;

	if (end == NULL || memmem(t.p, (size_t)(end - t.p), "chunked", 7) != NULL)
		return;
	n = t.n - (size_t)(end + 4 - t.p);
	if (n > LONGEST || memcmp(end + 4, pattern, n) != 0)
		g_test_message("head %.*s n %zu begins %.60s", (int)(end - t.p), t.p, n, end + 4);
	g_assert_cmpuint(n, <=, LONGEST);
	g_assert_cmpmem(end + 4, n, pattern, n);
	bodies += n > 65536;
}

static void
app_ends(struct end *a)
{
	app_checks(a);
	g_string_free(a->to_say, TRUE);
	*a = (struct end){ .s = NULL };
}

static void
app_comes(struct io_op *op)
{
	struct end *a = app_of(op->sock); /* an earlier one at this address */

	if (a != NULL)
		app_ends(a);
	a = app_of(NULL);
	g_assert_nonnull(a);
	sim_sent_clear(io, op->sock);
	*a = (struct end){ op->sock, g_string_new(NULL), 0, op->sock->fd };
	sim_finish(io, op, any(20) == 0 ? -ECONNREFUSED : 0);
}

/* A request head is there: decides what to answer. */
static void
app_decides(struct end *a)
{
	struct text t = sim_sent(io, a->s);
	size_t n = some_length();

	if (a->to_say->len != 0 || t.n == 0 || memmem(t.p, t.n, "\r\n\r\n", 4) == NULL)
		return;
	if (any(4) == 0)
		g_string_append(a->to_say, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
	if (memmem(t.p, t.n, "Upgrade", 7) != NULL && any(4) != 0) {
		g_string_append(a->to_say, "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n"
					   "Upgrade: websocket\r\n\r\n");
		g_string_append_len(a->to_say, pattern, (gssize)n);
		return;
	}
	if (any(8) == 0) {
		g_string_append_printf(a->to_say, "HTTP/1.1 200 x\r\nX-Sendfile: %s/%s\r\n\r\n",
		    dir, any(2) != 0 ? "a" : "none");
		return;
	}
	if (any(8) == 0) { /* routed again */
		static const char *const to[] = { "/a", "/none", "/up", "/up/ws", "/dir/" };

		g_string_append_printf(a->to_say, "HTTP/1.1 200 x\r\nX-Accel-Redirect: %s\r\n\r\n",
		    to[any(5)]);
		return;
	}
	early += memmem(t.p, t.n, "Content-Length", 14) != NULL;
	g_string_append_printf(a->to_say,
	    "HTTP/1.1 200 x\r\nContent-Length: %zu\r\nX-App: 1\r\n\r\n", n);
	g_string_append_len(a->to_say, pattern, (gssize)n);
}

/* ---------------------------------------------------------------- what happens */

static void
says(struct io_op *op, struct end *e)
{
	size_t n = e->to_say->len - e->said, want = 1 + any(any(2) != 0 ? 10 : 60000);

	if (n == 0)
		return;
	n = n < want ? n : want;
	sim_recv(io, op, (struct text){ e->to_say->str + e->said, n });
	e->said += n;
}

static struct end *
client_of(const struct io_sock *s)
{
	unsigned i;

	for (i = 0; i < NCLIENTS; i++)
		if (v[i].e.s == s && !is_closed(v[i].nth))
			return (&v[i].e);
	return (NULL);
}

static void
hears(struct io_op *op, struct end *client, struct end *app)
{
	if (any(client != NULL ? 100 : 40) == 0) {
		sim_finish(io, op, any(2) != 0 ? 0 : -ECONNRESET);
		return;
	}
	if (client == NULL && app != NULL)
		app_decides(app);
	if (client != NULL || app != NULL)
		says(op, client != NULL ? client : app);
}

static void
one_event(void)
{
	struct end *client, *app;
	struct io_op *op;
	unsigned n = 0;

	while (sim_nth(io, n) != NULL)
		n++;
	if (n == 0)
		return;
	op = sim_nth(io, any(n));
	client = op->sock != NULL ? client_of(op->sock) : NULL;
	app = op->sock != NULL && client == NULL ? app_of(op->sock) : NULL;
	switch (sim_kind(op)) {
	case IO_CONNECT: app_comes(op); break;
	case IO_RECV: hears(op, client, app); break;
	case SIM_HANGUP:
		if (any(40) == 0)
			sim_finish(io, op, 0);
		break;
	case IO_SEND:
		if (any(100) == 0)
			sim_finish(io, op, -EPIPE);
		else
			sim_send(io, op, any(4) == 0 ? 1 + any(2000) : SIZE_MAX);
		break;
	case IO_SEND_FILE: sim_finish(io, op, any(20) != 0 ? (int)op->file.len : -EPIPE); break;
	case IO_OPEN:
	case SIM_STAT:
	case SIM_TEMP:
	case IO_WRITE:
	case IO_READ: disk_answers(op); break;
	default: break;
	}
}

static void
one_step(void)
{
	unsigned i;

	one_event();
	if (any(3) != 0)
		sim_run(io); /* else several are heard of at once */
	if (any(30) == 0)
		sim_advance_ms(io, any(700));
	if (any(300) == 0)
		conn_stop(conn_of_link(w->conns.next));
	for (i = 0; i < G_N_ELEMENTS(apps); i++)
		if (apps[i].s != NULL && sim_closed(io, apps[i].fd) != 0)
			app_ends(&apps[i]);
	for (i = 0; i < NCLIENTS; i++)
		if (is_closed(v[i].nth))
			client_goes(i);
}

/* Neither side does anything any more: every connection ends by a deadline. */
static void
all_end(void)
{
	unsigned i;

	for (i = 0; i < 40 && w->nconns != 0; i++)
		sim_advance_ms(io, 3000);
	g_assert_cmpuint(w->nconns, ==, 0);
}

static void
one_seed(unsigned seed)
{
	unsigned i;

	rnd = g_rand_new_with_seed(seed);
	up(CONFIG);
	for (i = 0; i < NCLIENTS; i++)
		client_comes(i);
	for (i = 0; i < STEPS; i++)
		one_step();
	all_end();
	for (i = 0; i < NCLIENTS; i++) {
		client_checks(i);
		g_string_free(v[i].e.to_say, TRUE);
	}
	for (i = 0; i < G_N_ELEMENTS(apps); i++)
		if (apps[i].s != NULL)
			app_ends(&apps[i]);
	down();
	g_rand_free(rnd);
}

/* SEED of the environment runs that one alone, SEEDS that many. */
TEST("/conn/streams-in-any-order")
{
	const char *one = g_getenv("SEED"), *many = g_getenv("SEEDS");
	unsigned seed = one != NULL ? (unsigned)atoi(one) : 0;
	unsigned last = one != NULL ? seed + 1 : many != NULL ? (unsigned)atoi(many) : 300, i;

	for (i = 0; i < LONGEST; i++)
		pattern[i] = (char)('a' + i % 23);
	for (; seed < last; seed++) {
		g_test_message("SEED=%u", seed);
		one_seed(seed);
	}
	if (one != NULL)
		return;
	g_test_message("%u replies, %u of them early, %u tunnels, %u long bodies", replies, early,
	    tunnels, bodies);
	g_assert_cmpuint(replies, >, 100);
	g_assert_cmpuint(tunnels, >, 20);
	g_assert_cmpuint(bodies, >, 5);
}
