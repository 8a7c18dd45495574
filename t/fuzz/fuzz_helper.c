/* t/fuzz/fuzz_helper.c -- any bytes between the server and its helper process, which reads what
 * others wrote.
 *
 * The first byte says what the rest is:
 *   q   a request                     n   a name that a configuration allows
 *   r   the result of an opening      m   a message with descriptors: their number, bytes of room,
 *   w   what a file holds: recorded       the message
 *       and read again, and what is said when its reader dies
 *   else: the record of a configuration, which is then replayed as file "c"; hosts named h:80 are
 *   learnt from it */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/must.h"
#include "proxy-core/address.h"
#include "server/config/config.h"
#include "server/helper/wire.h"
#include "server/config/record.h"
#include "t/fuzz/fuzz.h"

#define ALL_CUTS 300 /* shorter records are cut at every byte */
#define SENT_MAX 7   /* descriptors */

#define FILE_C "\1\0\0\0\2\0\0\0c\0"
#define ANSWER(n)             \
	"\7\0\0\0"            \
	"\0\0\0\0"            \
	"\0\0\0\0" n "\0\0\0" \
	"\0\0\0\0"
#define WHOLE              \
	"\5\0\0\0\2\0\0\0" \
	"9\0"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("q\1"),
	SEED("q\2/var/log/access.log"),
	SEED("q\3[::1]:80"),
	SEED("r\0\0\0\0"),
	SEED("r\376\377\377\377"),
	SEED("r\1\0\0\0"),
	SEED("m\0\40hello"),
	SEED("m\1\4toolong"),
	SEED("m\3\10more"),
	SEED("m\7\10cut"),
	SEED("wserver.port = 80\n"),
	SEED("c" FILE_C ANSWER("\35") "server.document-root = \"/srv\"" WHOLE),
	SEED("c" FILE_C "\6\0\0\0\10\0\0\0it died\0"),
	SEED("c" FILE_C "\7\0\0\0\376\377\377\377\0\0\0\0\0\0\0\0\3\0\0\0/c\0" WHOLE),
	{ NULL, 0 },
};

/* ---------------------------------------------------------------- messages */

static void
check_request(struct text in)
{
	char again[HELPER_NAME_MAX + 1];
	struct helper_request r;

	if (helper_request_parse(in.p, in.n, &r) != 0)
		return;
	must(r.kind >= HELPER_LOAD && r.kind < HELPER_KINDS);
	must(helper_request_make(r.kind, r.name, again) == in.n && memcmp(again, in.p, in.n) == 0);
}

/* Shorter inputs are filled up, or nearly none would have the right length. */
static void
check_name(struct text in)
{
	char bytes[sizeof(struct helper_name)] = { 0 };
	struct helper_name n;

	if (in.n != sizeof(n))
		must(helper_name_parse(in.p, in.n, &n) == -EPROTO);
	memcpy(bytes, in.p, in.n < sizeof(n) ? in.n : sizeof(n));
	if (helper_name_parse(bytes, sizeof(n), &n) != 0)
		return;
	must(n.kind >= HELPER_LOAD && n.kind <= HELPER_CGI_USER && n.kind != HELPER_KINDS &&
	     n.kind != HELPER_REMOVE_PIDFILE);
	must(strlen(n.name) < sizeof(n.name) && strlen(n.congestion) < sizeof(n.congestion));
	must(n.kind == HELPER_LOAD ? n.timeout_ms > 0 && n.timeout_ms <= HELPER_LOAD_MAX_MS
				   : n.name[0] != '\0');
}

static void
check_result(struct text in)
{
	char why[HELPER_WHY_MAX];
	int res = helper_result_parse(in.p, in.n, why);

	must(res <= 0 && res >= -ERRNO_MAX);
	must(in.n >= sizeof(int32_t) || res == -EPROTO);
	must(strlen(why) < HELPER_WHY_MAX);
}

static void
check_upgraded(struct text in)
{
	struct helper_upgraded u;

	if (helper_upgraded_parse(in.p, in.n, &u) != 0)
		return;
	must(u.status >= 0 && u.status < 256 && u.pid > 0);
	must(u.cause.p + u.cause.n == in.p + in.n && u.cause.n <= HELPER_CAUSE_MAX);
}

/* Any bytes, and one good address. */
static void
check_addresses(struct text in)
{
	static struct helper_addresses a;
	char why[HELPER_WHY_MAX];
	size_t n = in.n < sizeof(a) ? in.n : sizeof(a);
	int got;

	memset(&a, 0, sizeof(a));
	memcpy(&a, in.p, n);
	got = helper_addresses_parse(&a, n, why);
	must(got >= -ERRNO_MAX && got <= ADDRESS_MAX && strlen(why) < HELPER_WHY_MAX);
	must(got <= 0 || address_are_inet(a.v, (size_t)got));
	must(address_parse("192.0.2.1:80", &a.v[0]) == 0);
	a.err = 0;
	must(helper_addresses_parse(&a, offsetof(struct helper_addresses, v) + sizeof(a.v[0]),
		 why) == 1);
}

/* ---------------------------------------------------------------- messages with descriptors */

static void
send_with(int sock, struct text in, unsigned nfds)
{
	union {
		char room[CMSG_SPACE(SENT_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)in.p, in.n };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_SPACE(nfds * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	unsigned i;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	for (i = 0; i < nfds; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &sock, sizeof(int));
	must(sendmsg(sock, &msg, 0) == (ssize_t)in.n);
}

/* The lowest number that no descriptor has. */
static int
lowest_free(int any)
{
	int fd = dup(any);

	must(fd >= 0);
	close(fd);
	return (fd);
}

static void
check_message(struct text in)
{
	unsigned nfds, room;
	int pair[2], fd, before;
	char *got;
	ssize_t n;

	if (in.n < 3)
		return;
	nfds = (unsigned char)in.p[0] % (SENT_MAX + 1);
	room = (unsigned char)in.p[1] + 1u;
	in = (struct text){ in.p + 2, in.n - 2 };
	got = malloc(room); /* no more bytes: the sanitizer sees what is written past them */
	must(got != NULL && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	before = lowest_free(pair[0]);
	if (nfds < 2)
		must(helper_send(pair[1], in.p, in.n, nfds == 1 ? pair[1] : -1) == 0);
	else
		send_with(pair[1], in, nfds);
	n = helper_recv(pair[0], got, room, &fd);
	must((fd >= 0) == (nfds == 1));
	must(n == (nfds > 1 ? -EINVAL : in.n > room ? -EMSGSIZE : (ssize_t)in.n));
	must(n <= 0 || memcmp(got, in.p, (size_t)n) == 0);
	if (fd >= 0)
		close(fd);
	must(lowest_free(pair[0]) == before);
	must(helper_recv(pair[0], got, room, &fd) == -EAGAIN && fd == -1);
	close(pair[1]);
	must(helper_recv(pair[0], got, room, &fd) == 0 && fd == -1);
	close(pair[0]);
	free(got);
}

/* ---------------------------------------------------------------- records */

struct outcome {
	struct sources *s;
	struct buf waits;
	int err;
};

/* The first piece has `first` bytes, the others `step`. */
static void
feed(struct text in, size_t first, size_t step, struct outcome *o)
{
	size_t n = first;
	char *piece;

	*o = (struct outcome){ .s = sources_replay() };
	while (in.n > 0 && o->err == 0 && !sources_whole(o->s) && sources_failure(o->s) == NULL) {
		n = n < in.n ? n : in.n;
		piece = malloc(n);
		must(piece != NULL);
		memcpy(piece, in.p, n);
		o->err = sources_feed(o->s, piece, n);
		free(piece);
		in = (struct text){ in.p + n, in.n - n };
		n = step;
	}
	if (o->err == 0 && in.n > 0 && sources_whole(o->s)) /* nothing follows the end */
		o->err = -EPROTO;
	must(o->err == 0 || o->err == -EPROTO);
	if (o->err == 0)
		sources_waits_for(o->s, &o->waits);
}

static void
outcome_free(struct outcome *o)
{
	buf_free(&o->waits);
	sources_free(o->s);
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	const char *why = sources_failure(a->s);

	must(a->err == b->err);
	if (a->err != 0)
		return;
	must(sources_whole(a->s) == sources_whole(b->s) &&
	     sources_memory(a->s) == sources_memory(b->s));
	must((why == NULL) == (sources_failure(b->s) == NULL) &&
	     (why == NULL || strcmp(why, sources_failure(b->s)) == 0));
	must(text_eq(buf_as_text(&a->waits), buf_as_text(&b->waits)));
}

/* Each address fits its structure and has a name with an end. */
static void
learn_host(struct sources *s)
{
	struct source is = sources_get(s, SOURCE_HOST, "h:80", NULL);
	const struct address *v = (const struct address *)(const void *)is.bytes.p;
	size_t i, n = is.bytes.n / sizeof(*v);

	must(is.err <= 0 && is.err >= -ERRNO_MAX);
	if (is.err == 0 && address_are_inet(v, n))
		for (i = 0; i < n; i++)
			must(v[i].len <= sizeof(v[i].in6) && strlen(v[i].name) < sizeof(v[i].name));
	source_free(&is);
}

/* Takes the record.  There is a configuration, or a message about what is wrong with it. */
static void
replay(struct sources *s)
{
	struct buf err, warn;
	struct config *c;

	buf_init(&err, 65536);
	buf_init(&warn, 65536);
	c = config_load("c", s, &err, &warn);
	must((c == NULL) == (err.n > 0));
	config_free(c);
	buf_free(&err);
	buf_free(&warn);
}

static void
check_record(struct text in)
{
	struct outcome whole, cut;
	size_t at, step = in.n <= ALL_CUTS ? 1 : in.n / 16;

	feed(in, in.n, in.n, &whole);
	for (at = 1; at < in.n; at += step) {
		feed(in, at, in.n, &cut);
		same(&cut, &whole);
		outcome_free(&cut);
	}
	feed(in, 1, 1, &cut);
	same(&cut, &whole);
	outcome_free(&cut);
	if (whole.err == 0 && sources_whole(whole.s)) {
		learn_host(whole.s);
		replay(whole.s);
		whole.s = NULL;
	}
	outcome_free(&whole);
}

/* ---------------------------------------------------------------- what a recorder writes */

static int
file_of(struct text in)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, in.p, in.n) == (ssize_t)in.n);
	return (fd);
}

/* The bytes that a recorder wrote, in pieces. */
static void
feed_file(struct sources *s, int fd)
{
	char piece[100];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, piece, sizeof(piece), at)) > 0) {
		must(sources_feed(s, piece, (size_t)n) == 0);
		at += n;
	}
}

static void
same_answer(struct source *a, struct source *b)
{
	must(a->err == b->err && a->status == b->status && text_eq(a->bytes, b->bytes));
	must((a->extra == NULL) == (b->extra == NULL) &&
	     (a->extra == NULL || strcmp(a->extra, b->extra) == 0));
	source_free(a);
	source_free(b);
}

static void
check_recorder(struct text in)
{
	int file = file_of(in), record = memfd_create("fuzz", MFD_CLOEXEC);
	struct sources *to = sources_record(record), *from = sources_replay();
	struct source asked, replayed;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	asked = sources_get(to, SOURCE_FILE, path, NULL);
	must(asked.err == 0 && text_eq(asked.bytes, in));
	sources_end(to, in.n);
	feed_file(from, record);
	must(sources_whole(from) && sources_memory(from) == in.n &&
	     sources_refused(from) == (in.n == 0));
	replayed = sources_get(from, SOURCE_FILE, path, NULL);
	same_answer(&asked, &replayed);
	sources_free(to);
	sources_free(from);
	close(file);
	close(record);
}

/* Why its reader died, cut at its first NUL. */
static void
check_failure(struct text in)
{
	struct sources *s = sources_replay();
	char why[HELPER_NAME_MAX + 1] = "", item[HELPER_NAME_MAX + 64];
	size_t i, n;

	memcpy(why, in.p, in.n < HELPER_NAME_MAX ? in.n : HELPER_NAME_MAX);
	n = sources_put_failure(item, sizeof(item), why);
	for (i = 0; i < n; i++)
		must(sources_failure(s) == NULL && sources_feed(s, item + i, 1) == 0);
	must(sources_failure(s) != NULL && strcmp(sources_failure(s), why) == 0 &&
	     !sources_whole(s));
	must(sources_feed(s, "x", 1) == -EPROTO);
	sources_free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p + 1, n - 1 };

	if (n == 0)
		return (0);
	switch (p[0]) {
	case 'q': check_request(in); break;
	case 'n': check_name(in); break;
	case 'r': check_result(in); break;
	case 'u': check_upgraded(in); break;
	case 'a': check_addresses(in); break;
	case 'w':
		check_recorder(in);
		check_failure(in);
		break;
	case 'm': check_message(in); break;
	default: check_record(in); break;
	}
	return (0);
}
