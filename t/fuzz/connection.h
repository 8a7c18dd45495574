/* t/fuzz/connection.h -- whole connections from bytes: two clients, a worker on the simulated loop,
 * applications that say anything at any time, a disk that fails, and time.
 *
 *   "\xfe" c GET ...    the first client says that; d: the second one; e, f: it ends; E, F: resets
 *   "\xfe" h Status: .. an application replies with that head and body, in its protocol
 *   "\xfe" s bytes      ... with more of the body; b: with these bytes, whatever the protocol is
 *   "\xfe" z            ... its reply ends; x: its socket ends; X: is reset
 *   "\xfe" w n          n tenths of a second pass
 *
 * Three bytes in front choose the configuration and what happens by itself: connects, sends, the
 * disk.  All other events are in event().  Every connection ends when neither side does anything
 * any more.
 */
#ifndef T_FUZZ_CONNECTION_H
#define T_FUZZ_CONNECTION_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/must.h"
#include "io/engine.h"
#include "io/loop/sim.h"
#include "server/config/impl.h"
#include "server/config/resources.h"
#include "server/conn/conn.h"
#include "server/module/rules.h"
#include "server/status/counters.h"
#include "server/worker/worker.h"

/* SERVER_WORKS(true) stands before each call of the server, SERVER_WORKS(false) after it: with
 * t/unit/allocations.h only the server runs out of memory, and never the test itself. */
#ifndef SERVER_WORKS
#define SERVER_WORKS(on) ((void)0)
#endif

/* Events of a client that does not speak HTTP/1; true: it was one. */
#ifndef OTHER_EVENT
#define OTHER_EVENT(kind, t) false
#endif

#define MARK         '\xfe'
#define ROOT         "/usr" /* the server opens it; its files are those of disk_op() */
#define CLIENTS      2
#define FIRST_CLIENT 600
#define FIRST_FILE   5000
#define EVENTS       200 /* of one input */
#define STEPS        400 /* events that happen by themselves after one event */
#define ENDS_S       120 /* longer than all time-outs of the configuration in a row */
#define TABLE        512

/* What happens by itself: bits of the third byte. */
enum { BY_HAND_CONNECT = 1, BY_HAND_SEND = 2, BY_HAND_DISK = 4, BATCHED = 8, READER = 16 };

static struct io *io;
static struct worker *w;
static struct counters_list counters_list;
static const struct proto_names {
	const char *name;
	enum { FASTCGI, HTTP, SCGI, AJP13, UWSGI } id;
} protocols[] = { { "fastcgi", FASTCGI }, { "http", HTTP }, { "scgi", SCGI }, { "ajp13", AJP13 },
	{ "uwsgi", UWSGI } };

static struct {
	int protocol;
	unsigned by_hand, files;
	bool newest; /* of the applications, the newest one sends; else the oldest */
	int clients;
	unsigned taken[CLIENTS + 1];
	struct buf to_say[CLIENTS + 1];
} v;

static void
server_runs(void)
{
	SERVER_WORKS(true);
	sim_run(io);
	SERVER_WORKS(false);
}

static void
one_round(void)
{
	SERVER_WORKS(true);
	worker_round(w);
	SERVER_WORKS(false);
}

/* ---------------------------------------------------------------- configurations */

struct setup {
	unsigned key; /* 0: free */
	struct config *config;
	struct resources *resources;
};

static struct setup table[TABLE];

static const char *const handlers[] = {
	"",
	"server.error-handler = \"/app/err\"\n",
	"server.error-handler = \"/a\"\n",
	"server.error-handler-404 = \"/app/err\"\n",
	"server.error-handler-404 = \"/a\"\n",
	"server.error-handler = \"/none\"\nserver.error-intercept = \"enable\"\n",
	"server.error-handler = \"/app/err\"\nserver.error-intercept = \"enable\"\n",
	"server.error-handler-404 = \"/dir/\"\nserver.errorfile-prefix = \"" ROOT "/\"\n",
};

static const char *const extras[] = {
	"proxy-core.upgrade = ( \"websocket\" )\n",
	"proxy-core.allow-x-sendfile = \"enable\"\nproxy-core.allow-x-reproxy = \"enable\"\n"
	"proxy-core.x-sendfile-tempdir = ( \"/tmp\" )\n",
	"proxy-core.allow-x-rewrite = \"enable\"\nproxy-core.max-pool-size = 1\n",
	"proxy-core.hedge-after = 50\nproxy-core.hedge-percent = 100\n",
	"proxy-core.authorizer = ( \"10.0.0.9:80\" )\n",
	"server.max-request-size = 1\n",
	"deflate.mimetypes = ( \"text/\", \"app\" )\ndeflate.allowed-encodings = ( \"gzip\" )\n"
	"expire.url = ( \"\" => \"access 1 hours\" )\n",
	"url.rewrite-once = ( \"^/r(.*)\" => \"/app$1\" )\nproxy-core.max-reply-spool = 1\n",
};

static void
nowhere(void *arg, struct text line)
{
}

static int
no_log(void *arg, const char *path, struct logfile **log)
{
	*log = NULL;
	return (0);
}

static void
put_config(struct buf *b, unsigned key)
{
	unsigned i, extra = key >> 8 & 255, handler = key >> 5 & 7, stream = (key >> 3 & 3) % 3;

	buf_str(b, "server.document-root = \"" ROOT "\"\nserver.tag = \"\"\n"
		   "server.max-read-idle = 5\nserver.max-write-idle = 5\n"
		   "server.max-keep-alive-idle = 5\n");
	buf_str(b, handlers[handler]);
	buf_printf(b,
	    "server.stream-request-body = %u\n$HTTP[\"url\"] =~ \"^/app\" {\n"
	    "proxy-core.protocol = \"%s\"\n"
	    "proxy-core.backends = ( \"10.0.0.1:80\", \"10.0.0.2:80\" )\n"
	    "proxy-core.max-keep-alive-requests = 3\nproxy-core.disable-time = 0\n"
	    "proxy-core.connect-timeout = 3\nproxy-core.wait-timeout = 3\n"
	    "proxy-core.read-timeout = 5\nproxy-core.reply-timeout = 5\n",
	    stream, protocols[v.protocol].name);
	for (i = 0; i < NELEM(extras); i++)
		if ((extra >> i & 1) != 0)
			buf_str(b, extras[i]);
	buf_str(b, "}\n");
}

static void
setup_free(struct setup *s)
{
	if (s->key == 0)
		return;
	resources_free(s->resources);
	config_free(s->config);
	s->key = 0;
}

/* Reading a configuration takes longer than the rest, so some are kept. */
static struct setup *
setup(unsigned key)
{
	struct setup *s = &table[key * 2654435761u >> 16 & (TABLE - 1)];
	struct buf text, err;
	char why[256];

	if (s->key == key)
		return (s);
	setup_free(s);
	buf_init(&text, 0);
	buf_init(&err, 4096);
	put_config(&text, key);
	s->config = config_load_text("fuzz.conf", buf_as_text(&text), false, &err, &err);
	if (s->config == NULL)
		fprintf(stderr, "%.*s\n%.*s\n", (int)err.n, err.p, (int)text.n, text.p);
	must(s->config != NULL);
	s->resources = resources_new(s->config, rules_kinds, no_log, NULL, why, sizeof(why));
	must(s->resources != NULL);
	s->key = key;
	buf_free(&text);
	buf_free(&err);
	return (s);
}

static void
client_comes(void)
{
	static const union io_addr peer = { .in = { .sin_family = AF_INET } };

	unsigned before = w->nconns;

	buf_init(&v.to_say[v.clients], 0);
	SERVER_WORKS(true);
	conn_new(w, FIRST_CLIENT + v.clients++, &peer, "127.0.0.1:80");
	SERVER_WORKS(false);
	v.taken[v.clients - 1] = w->nconns - before; /* else its socket is reset at once */
}

static void
up(unsigned config, unsigned by_hand)
{
	struct worker_conf wc = {
		.max_conns = 100,
		.max_fds = 50,
		.max_head_bytes = 1 << 20,
		.counters_list = &counters_list,
	};
	struct setup *s;
	int i;

	v.protocol = (int)((config & 7) % NELEM(protocols));
	v.by_hand = by_hand;
	v.files = 0;
	v.newest = false;
	s = setup(config | 1u << 16);
	wc.config = s->config;
	wc.resources = s->resources;
	log_set_sink(nowhere, NULL);
	counters_list_init(&counters_list);
	io = (by_hand & READER) != 0 ? sim_new_reading() : sim_new();
	sim_auto_close(io, true);
	must(worker_new(&wc, io, &w) == 0);
	v.clients = 0;
	for (i = 0; i < CLIENTS; i++)
		client_comes();
}

static void
down(void)
{
	int i;

	worker_tell(w, WORKER_STOP);
	worker_round(w);
	server_runs();
	must(w->nconns == 0);
	for (i = 0; i < v.clients; i++) {
		must(sim_closed(io, FIRST_CLIENT + i) == v.taken[i]);
		buf_free(&v.to_say[i]);
	}
	worker_free(w);
	counters_list_free(&counters_list);
}

/* ---------------------------------------------------------------- what happens by itself */

static int
client_of(const struct io_op *op)
{
	int nr = op->sock != NULL ? op->sock->fd - FIRST_CLIENT : -1;

	return (nr >= 0 && nr < v.clients ? nr : -1);
}

/* The client's, or with -1 that of an application. */
static struct io_op *
recv_of(int client)
{
	struct io_op *op, *found = NULL;
	unsigned i;

	for (i = 0; (op = sim_nth(io, i)) != NULL; i++)
		if (sim_kind(op) == IO_RECV && client_of(op) == client) {
			found = op;
			if (client >= 0 || !v.newest)
				break;
		}
	return (found);
}

/* Names decide what is there. */
static void
opens(struct io_op *op)
{
	const char *name = op->open.path;
	unsigned n = (unsigned)(name[0] - 'a');

	if (n > 3 && strncmp(name, "tmp/", 4) != 0) {
		sim_finish(io, op, -ENOENT);
		return;
	}
	v.files += !op->only_stat;
	sim_open(io, op, FIRST_FILE + (int)v.files, (uint64_t[]){ 4, 40000, 0, 200000 }[n & 3],
	    1000, n == 3 && strchr(name, '/') == NULL ? S_IFDIR : 0);
}

static void
reads(struct io_op *op)
{
	static char bytes[IO_WINDOW];

	sim_read(io, op,
	    (struct text){ bytes, op->file.len < IO_WINDOW ? op->file.len : IO_WINDOW });
}

static void
works(struct io_op *op)
{
	do {
		op->work.work->again = false;
		op->work.work->run(op->work.work);
	} while (op->work.work->again);
	sim_finish(io, op, 0);
}

static bool
disk_does(struct io_op *op)
{
	switch (sim_kind(op)) {
	case IO_OPEN:
	case SIM_STAT: opens(op); return (true);
	case SIM_TEMP: sim_finish(io, op, FIRST_FILE + (int)++v.files); return (true);
	case IO_WRITE: sim_finish(io, op, (int64_t)op->write.len); return (true);
	case IO_READ: reads(op); return (true);
	case SIM_WARM: sim_finish(io, op, (int64_t)op->file.len); return (true);
	case IO_WORK: works(op); return (true);
	default: return (false);
	}
}

static bool
sends(struct io_op *op, size_t max)
{
	if (op->kind == IO_SEND)
		sim_send(io, op, max);
	else if (op->kind == IO_SEND_FILE)
		sim_finish(io, op, (int64_t)(op->file.len < max ? op->file.len : max));
	else
		return (false);
	return (true);
}

static bool
hears(struct io_op *op)
{
	int nr = client_of(op);
	struct buf *b = nr >= 0 ? &v.to_say[nr] : NULL;

	if (b == NULL || sim_kind(op) != IO_RECV || b->n == 0)
		return (false);
	sim_recv(io, op, buf_as_text(b));
	buf_drop(b, b->n);
	return (true);
}

static bool
by_itself(struct io_op *op)
{
	if (hears(op))
		return (true);
	if ((v.by_hand & BY_HAND_SEND) == 0 && sends(op, SIZE_MAX))
		return (true);
	if ((v.by_hand & BY_HAND_DISK) == 0 && disk_does(op))
		return (true);
	if ((v.by_hand & BY_HAND_CONNECT) == 0 && op->kind == IO_CONNECT) {
		sim_finish(io, op, 0);
		return (true);
	}
	return (false);
}

static void
settle(void)
{
	struct io_op *op;
	unsigned i, steps = 0;

	if ((v.by_hand & BATCHED) == 0)
		server_runs();
	for (i = 0; steps < STEPS && (op = sim_nth(io, i)) != NULL;) {
		if (!by_itself(op)) {
			i++;
			continue;
		}
		if ((v.by_hand & BATCHED) == 0)
			server_runs();
		i = 0;
		steps++;
	}
}

/* ---------------------------------------------------------------- applications */

static void
fcgi_record(struct buf *b, unsigned type, struct text t)
{
	const char head[8] = { 1, (char)type, 0, 1, (char)(t.n >> 8), (char)t.n, 0, 0 };

	buf_add(b, head, sizeof(head));
	buf_text(b, t);
}

static void
ajp_packet(struct buf *b, const struct buf *in)
{
	buf_add(b, (const char[]){ 'A', 'B', (char)(in->n >> 8), (char)in->n }, 4);
	buf_add(b, in->p, in->n);
}

static void
ajp_text(struct buf *b, struct text t)
{
	buf_add(b, (const char[]){ (char)(t.n >> 8), (char)t.n }, 2);
	buf_text(b, t);
	buf_char(b, '\0');
}

static struct text
cut_line(struct text *t)
{
	const char *end = t->n != 0 ? memchr(t->p, '\n', t->n) : NULL;
	struct text line = *t;

	if (end != NULL)
		line.n = (size_t)(end - t->p);
	text_take(t, end != NULL ? line.n + 1 : line.n);
	while (line.n != 0 && line.p[line.n - 1] == '\r')
		line.n--;
	return (line);
}

static unsigned
status_of(struct text head)
{
	uint64_t n = 200;

	if (head.n >= 11 && memcmp(head.p, "Status: ", 8) == 0)
		text_u64((struct text){ head.p + 8, 3 }, &n);
	return ((unsigned)n);
}

static void
ajp_body(struct buf *b, struct text t)
{
	struct buf packet;

	buf_init(&packet, 0);
	buf_char(&packet, 3);
	ajp_text(&packet, t);
	ajp_packet(b, &packet);
	buf_free(&packet);
}

/* "Status: 200\r\nNAME: VALUE\r\n\r\nBODY" */
static void
ajp_reply(struct buf *b, struct text t)
{
	unsigned status = status_of(t), n = 0;
	struct buf fields, packet;
	struct text line;
	const char *colon;

	buf_init(&fields, 0);
	buf_init(&packet, 0);
	while ((line = cut_line(&t)).n != 0) {
		colon = memchr(line.p, ':', line.n);
		if (colon == NULL || n == 0xff)
			continue;
		n++;
		ajp_text(&fields, (struct text){ line.p, (size_t)(colon - line.p) });
		text_take(&line, (size_t)(colon + 1 - line.p));
		ajp_text(&fields, text_trim(line));
	}
	buf_add(&packet, (const char[]){ 4, (char)(status >> 8), (char)status }, 3);
	ajp_text(&packet, TEXT("x"));
	buf_add(&packet, (const char[]){ 0, (char)n }, 2);
	buf_add(&packet, fields.p, fields.n);
	ajp_packet(b, &packet);
	if (t.n != 0)
		ajp_body(b, t);
	buf_free(&packet);
	buf_free(&fields);
}

static void
put_reply(struct buf *b, struct text t)
{
	switch (protocols[v.protocol].id) {
	case FASTCGI: fcgi_record(b, 6, t); break;
	case AJP13: ajp_reply(b, t); break;
	case HTTP:
	case UWSGI:
		buf_printf(b, "HTTP/1.1 %u x\r\n", status_of(t));
		buf_text(b, t);
		break;
	case SCGI: buf_text(b, t); break;
	}
}

static void
put_more(struct buf *b, struct text t)
{
	switch (protocols[v.protocol].id) {
	case FASTCGI: fcgi_record(b, 6, t); break;
	case AJP13: ajp_body(b, t); break;
	default: buf_text(b, t);
	}
}

static void
put_end(struct buf *b)
{
	switch (protocols[v.protocol].id) {
	case FASTCGI: fcgi_record(b, 3, (struct text){ "\0\0\0\0\0\0\0\0", 8 }); break;
	case AJP13: buf_add(b, "AB\0\2\5\1", 6); break;
	default: break; /* by its length, or the end of the socket */
	}
}

/* kind: the letter of an event */
static void
application(char kind, struct text t)
{
	struct io_op *op = recv_of(-1);
	struct buf b;

	if (op == NULL)
		return;
	buf_init(&b, 0);
	switch (kind) {
	case 'h': put_reply(&b, t); break;
	case 's': put_more(&b, t); break;
	case 'z': put_end(&b); break;
	case 'a': /* a whole reply */
		put_reply(&b, t);
		put_end(&b);
		break;
	case 'q': buf_add(&b, "AB\0\3\6\x1f\xfa", 7); break; /* AJP: more of the body */
	default: buf_text(&b, t); break;
	}
	if (b.n != 0)
		sim_recv(io, op, buf_as_text(&b));
	else
		sim_finish(io, op, 0);
	buf_free(&b);
}

/* ---------------------------------------------------------------- events */

static void
time_passes(uint64_t ms)
{
	SERVER_WORKS(true);
	sim_advance_ms(io, ms);
	SERVER_WORKS(false);
}

static void
client_ends(int nr, int res)
{
	struct io_op *op = recv_of(nr);
	unsigned i;

	for (i = 0; op == NULL && (op = sim_nth(io, i)) != NULL; i++)
		op = sim_kind(op) == SIM_HANGUP && client_of(op) == nr ? op : NULL;
	if (op != NULL && (sim_kind(op) == IO_RECV || res == 0))
		sim_finish(io, op, res);
}

/* The nth op in flight succeeds, or fails. */
static void
nth_op(unsigned n, int err, size_t max)
{
	struct io_op *op = sim_nth(io, n);

	if (op == NULL)
		return;
	if (op->kind == IO_TIMER || op->kind == IO_RECV || op->kind == IO_CLOSE)
		return;
	if (err != 0)
		sim_finish(io, op, err);
	else if (op->kind == IO_CONNECT)
		sim_finish(io, op, 0);
	else if (!sends(op, max))
		disk_does(op);
}

static void
stop_one(unsigned n)
{
	struct list *l = w->conns.next;

	while (n-- % CLIENTS != 0 && l->next != &w->conns)
		l = l->next;
	if (l != &w->conns)
		conn_stop(conn_of_link(l));
}

static void
event(struct text t)
{
	char kind = t.n != 0 ? t.p[0] : 'r';
	unsigned n = t.n > 1 ? (unsigned char)t.p[1] : 0;

	text_take(&t, t.n != 0);
	if (OTHER_EVENT(kind, t))
		return;
	switch (kind) {
	case 'c': buf_text(&v.to_say[0], t); break;
	case 'd': buf_text(&v.to_say[1], t); break;
	case 'e': client_ends(0, 0); break;
	case 'f': client_ends(1, 0); break;
	case 'E': client_ends(0, -ECONNRESET); break;
	case 'F': client_ends(1, -ECONNRESET); break;
	case 'h':
	case 's':
	case 'b':
	case 'z':
	case 'a':
	case 'q': application(kind, t); break;
	case 'x': application('x', TEXT_NONE); break;
	case 'X':
		if (recv_of(-1) != NULL)
			sim_finish(io, recv_of(-1), -ECONNRESET);
		break;
	case 'o': v.newest = !v.newest; break;
	case 'w': time_passes(100 * n); break;
	case 'n': nth_op(n & 31, 0, SIZE_MAX); break;
	case 't': nth_op(n & 31, 0, 1 + n); break;
	case 'N': nth_op(n & 31, (n & 32) != 0 ? -EIO : -ECONNREFUSED, 0); break;
	case 'm': v.by_hand ^= n & (BY_HAND_CONNECT | BY_HAND_SEND | BY_HAND_DISK | BATCHED); break;
	case 'k': stop_one(n); break;
	case 'D':
		worker_tell(w, WORKER_DRAIN);
		one_round();
		break;
	default: server_runs();
	}
}

/* Neither side does anything any more; the disk answers. */
static void
all_end(void)
{
	unsigned i;

	v.by_hand = BY_HAND_CONNECT | BY_HAND_SEND;
	for (i = 0; i < ENDS_S && w->nconns != 0; i++) {
		settle();
		time_passes(1000);
	}
	must(w->nconns == 0);
	must(w->base.counts.conn->connection_bugs == 0);
}

static void
run_events(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n }, one;
	const char *end;
	unsigned i;

	settle();
	for (i = 0; i < EVENTS && in.n != 0; i++) {
		end = memchr(in.p, MARK, in.n);
		one = (struct text){ in.p, end != NULL ? (size_t)(end - in.p) : in.n };
		text_take(&in, end != NULL ? one.n + 1 : one.n);
		if (one.n == 0)
			continue;
		event(one);
		if ((v.by_hand & BATCHED) != 0)
			one_round();
		settle();
	}
}

#endif
