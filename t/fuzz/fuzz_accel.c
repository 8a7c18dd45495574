/* t/fuzz/fuzz_accel.c -- the whole way of a request except the disk: any bytes from a web server,
 * records, real libfcgi, the path, an answer for a file that may be there or not, libfcgi again.
 * What comes out is sound FastCGI, and its head has no line that we did not mean to write.
 *
 * The first byte of the input chooses the dialect and the mode; the second chooses what is found,
 * and whether descriptors or the room in a file run out.  If they do, one request fails, and the
 * next one is answered again. */
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "base/must.h"
#include "base/text.h"
#include "fcgi-stat-accel/about.h"
#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/dialect.h"
#include "wire/codec/fcgi_record.h"
#include "fcgi-stat-accel/request.h"
#include "t/fuzz/fuzz.h"

#define BEGIN      "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"
#define AUTHORIZER "\1\1\0\7\0\10\0\0\0\2\0\0\0\0\0\0"
#define PATH       "\1\4\0\1\0\25\0\0\17\4SCRIPT_FILENAME/a/b" END
#define END        "\1\4\0\1\0\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\0" BEGIN "\1\4\0\1\0\25\0\0\17\4SCRIPT_FILENAME/a/b" END BEGIN
	     "\1\4\0\1\0\30\0\0\17\7SCRIPT_FILENAME/a \n%\r\xff" END),
	SEED("\1\1" BEGIN "\1\4\0\1\0\14\0\0\11\1WARM_PATH/" END
	     "\1\5\0\1\0\3\1\0abcd\1\2\0\1\0\0\0\0"),
	SEED("\202\3" AUTHORIZER "\1\4\0\7\0\16\0\0\11\3WARM_PATH/\303\244"
	     "\1\4\0\7\0\0\0\0"),
	SEED("\3\377" BEGIN "\1\4\0\1\0\105\0\0\15\4DOCUMENT_ROOT/srv\13\2SCRIPT_NAME/"
	     "x\11\2PATH_INFO/y\12\12HTTP_RANGEbytes=123-" END),
	SEED("\106\20" BEGIN
	     "\1\4\0\1\0\54\0\0\16\4REQUEST_METHODHEAD\17\7SCRIPT_FILENAME/srv/?#" END),
	SEED("\1\20" BEGIN PATH),
	SEED("\30\10" BEGIN PATH),
	SEED("\1\11" BEGIN PATH),
	SEED("\1\12" BEGIN PATH),
	SEED("\1\13" BEGIN PATH),
	SEED("\1\14" BEGIN PATH),
	SEED("\1\16" BEGIN "\1\4\0\1\0\105\0\0\15\4DOCUMENT_ROOT/srv\13\2SCRIPT_NAME/"
	     "x\11\2PATH_INFO/y\12\12HTTP_RANGEbytes=123-" END),
	SEED("\1\16" BEGIN "\1\4\0\1\0\23\0\0\1\20X"
	     "proxy:fcgi://h/a" END),
	SEED("\30\17" BEGIN PATH),
	SEED("\202\144" BEGIN "\1\4\0\1\0\32\0\0\11\1WARM_PATH/\11\3WARM_LATE503" END),
	SEED("\1\40" BEGIN "\1\4\0\1\0\36\0\0\11\2WARM_PATH/d\13\4REQUEST_URI//d?" END),
	{ NULL, 0 },
};

enum fault { NO_FAULT, NO_DESCRIPTOR, NO_ROOM, LARGE_ANSWER, CUT_REQUEST, LARGE_REQUEST };

static const struct nginx_cache caches[] = { { "pages", "/var/pages", { 1, 2 } },
	{ NULL, "/var/app", { 2 } }, { NULL, NULL, { 0 } } };

static const struct accel_map maps[] = { { "/srv", "/files" }, { "/", "" }, { NULL, NULL } };

struct setup {
	struct accel_conf accel;
	struct record_conf record;
	struct text *names;
	const char **variables;
	struct request_reader *reader;
	GString *path, *reply, *out;
	struct accel_counters counters;
	int err;
	const char *index;
	int64_t mtime_s;
	enum fault fault;
	bool twice; /* the request waits for its file, and is read again then */
};

static const char *const path_from[] = { "X", "DOCUMENT", "SCRIPT_FILENAME", NULL };

static unsigned
u16(const uint8_t *p)
{
	return (p[0] << 8 | p[1]);
}

/* ---------------------------------------------------------------- what comes out */

static bool
is_ours(const struct accel_conf *conf, const char *line, size_t n)
{
	static const char *const known[] = { "Status", "Content-Type", "Content-Length",
		"Retry-After", "ETag", "Last-Modified", "Expires", "Cache-Control", "Location",
		"Variable-WARM_NO_STORE" };
	size_t i;

	for (i = 0; i < NELEM(known); i++)
		if (n == strlen(known[i]) && memcmp(line, known[i], n) == 0)
			return (true);
	return (n == strlen(conf->header) && memcmp(line, conf->header, n) == 0);
}

/* Lines that end in CR LF and have neither of them inside, an empty line, and a body only where
 * Content-Length says so. */
static void
check_head(const struct setup *s)
{
	const char *p = s->reply->str, *end = p + s->reply->len, *colon, *eol;
	bool body = false;

	must(strncmp(p, "Status: ", 8) == 0);
	while (end - p >= 2 && memcmp(p, "\r\n", 2) != 0) {
		eol = memmem(p, (size_t)(end - p), "\r\n", 2);
		must(eol != NULL);
		must(memchr(p, '\0', (size_t)(eol - p)) == NULL &&
		     memchr(p, '\n', (size_t)(eol - p)) == NULL);
		must(memchr(p, '\r', (size_t)(eol - p)) == NULL);
		colon = memchr(p, ':', (size_t)(eol - p));
		must(
		    colon != NULL && colon[1] == ' ' && is_ours(&s->accel, p, (size_t)(colon - p)));
		body |= strncmp(p, "Content-Length", (size_t)(colon - p)) == 0;
		p = eol + 2;
	}
	must(end - p >= 2 && (body || end - p == 2));
}

/* Records of this id: the reply in STDOUT, its end, END_REQUEST "complete". */
static void
check_out(const struct setup *s, size_t from, unsigned id)
{
	const uint8_t *p = (const uint8_t *)s->out->str + from,
		      *end = (const uint8_t *)s->out->str + s->out->len;
	static const uint8_t complete[8];
	size_t seen = 0, len;

	for (;;) {
		must(end - p >= 8 && p[0] == 1 && u16(p + 2) == id);
		len = u16(p + 4);
		must((size_t)(end - p) >= 8 + len + p[6]);
		if (p[1] == 3)
			break;
		must(p[1] == 6 && len <= s->reply->len - seen &&
		     memcmp(p + 8, s->reply->str + seen, len) == 0);
		seen += len;
		p += 8 + len + p[6];
	}
	must(len == 8 && memcmp(p + 8, complete, 8) == 0 && p + 8 + len + p[6] == end &&
	     seen == s->reply->len);
}

/* ---------------------------------------------------------------- what goes wrong */

static void
limit(int resource, rlim_t n)
{
	struct rlimit l;

	must(getrlimit(resource, &l) == 0);
	l.rlim_cur = n < l.rlim_max ? n : l.rlim_max;
	must(setrlimit(resource, &l) == 0);
}

static rlim_t
limit_of(int resource)
{
	struct rlimit l;

	must(getrlimit(resource, &l) == 0);
	return (l.rlim_cur);
}

/* No reader is made without descriptors or room; then one is. */
static void
no_reader(struct setup *s, int resource, int err)
{
	rlim_t before = limit_of(resource);
	struct request_reader *none = NULL;

	limit(resource, 0);
	must(request_reader_new(&none) == err && none == NULL);
	limit(resource, before);
	request_reader_free(&s->reader);
	must(request_reader_new(&s->reader) == 0);
}

/* The answer cannot be written, nor can a new file be made for the next one; out stays as it
 * was. */
static void
no_room(struct setup *s, const GString *request)
{
	rlim_t before = limit_of(RLIMIT_FSIZE), files = limit_of(RLIMIT_NOFILE);
	gsize len = s->out->len;

	must(request_read(s->reader, request) != NULL);
	g_string_assign(s->reply, "Status: 204 No Content\r\n\r\n");
	limit(RLIMIT_FSIZE, 0);
	must(!request_answer(s->reader, s->reply, s->out) && s->out->len == len);
	limit(RLIMIT_FSIZE, before);
	must(request_read(s->reader, request) != NULL);
	limit(RLIMIT_NOFILE, 0);
	must(!request_answer(s->reader, s->reply, s->out) && s->out->len == len);
	limit(RLIMIT_NOFILE, files);
}

static void
large_answer(struct setup *s, const GString *request)
{
	gsize len = s->out->len;

	must(request_read(s->reader, request) != NULL);
	g_string_set_size(s->reply, 1024 * 1024);
	memset(s->reply->str, 'x', s->reply->len);
	must(!request_answer(s->reader, s->reply, s->out) && s->out->len == len);
}

/* Cut anywhere: libfcgi refuses it, or reads the bytes that are there. */
static void
cut_request(struct setup *s, const GString *request)
{
	g_autoptr(GString) part = g_string_new(NULL);
	gsize n;

	for (n = 0; n < request->len; n += 1 + request->len / 64) {
		g_string_truncate(part, 0);
		g_string_append_len(part, request->str, (gssize)n);
		if (request_read(s->reader, part) != NULL)
			request_drop(s->reader);
	}
}

static void
large_request(struct setup *s)
{
	g_autoptr(GString) large = g_string_new(NULL);

	g_string_set_size(large, 128 * 1024 + 1);
	memset(large->str, 0, large->len);
	must(request_read(s->reader, large) == NULL);
}

static void
go_wrong(struct setup *s, const GString *request)
{
	switch (s->fault) {
	case NO_FAULT: break;
	case NO_DESCRIPTOR: no_reader(s, RLIMIT_NOFILE, -EMFILE); break;
	case NO_ROOM:
		no_reader(s, RLIMIT_FSIZE, -EFBIG);
		no_room(s, request);
		break;
	case LARGE_ANSWER: large_answer(s, request); break;
	case CUT_REQUEST: cut_request(s, request); break;
	case LARGE_REQUEST: large_request(s); break;
	}
}

/* ---------------------------------------------------------------- what is asked */

static char **
read_params(struct setup *s, const GString *request)
{
	char **params = request_read(s->reader, request), *first, *second;

	must(params != NULL);
	if (!s->twice)
		return (params);
	first = g_strjoinv("\n", params);
	request_drop(s->reader);
	params = request_read(s->reader, request);
	must(params != NULL);
	second = g_strjoinv("\n", params);
	must(strcmp(first, second) == 0);
	g_free(first);
	g_free(second);
	return (params);
}

static void
answer(struct setup *s, const GString *request)
{
	static const struct warm_conf warm;
	struct warm_found found = { .err = s->err, .index = s->index, .settled = s->twice };
	struct range_set want;
	char **params, **p;
	size_t before;
	int err;

	go_wrong(s, request);
	before = s->out->len;
	params = read_params(s, request);
	found.stx.stx_mtime.tv_sec = s->mtime_s;
	for (p = params; *p != NULL; p++)
		must(strchr(*p, '=') != NULL);
	err = accel_path(&s->accel, params, s->path, &want);
	must(err <= 0 &&
	     (err < 0 || (s->path->str[0] == '/' && strlen(s->path->str) == s->path->len)));
	if (err != 0)
		found = (struct warm_found){ .err = err };
	g_string_truncate(s->reply, 0);
	if (!about_answer(&s->accel, &warm, params, s->reply))
		accel_reply(&s->accel, params, s->path->str, &found, &s->counters, s->reply);
	check_head(s);
	must(request_answer(s->reader, s->reply, s->out));
	must(s->out->len > before);
	check_out(s, before, u16((const uint8_t *)request->str + 2));
}

static void
converse(struct setup *s, const uint8_t *p, size_t n)
{
	enum record_result result = RECORD_MORE;
	struct record r;
	GString *request;
	struct text in = { (const char *)p, n };

	record_init(&r, &s->record);
	while (in.n > 0 && result != RECORD_CLOSE && result != RECORD_BAD) {
		result = record_feed(&r, &in, s->out);
		if (result != RECORD_REQUEST)
			continue;
		request = record_take(&r);
		answer(s, request);
		g_string_free(request, TRUE);
		record_answered(&r);
	}
	record_free(&r);
}

/* ---------------------------------------------------------------- once, and for each input */

static void
setup_once(struct setup *s)
{
	size_t i;

	s->accel.expires = -1;
	s->accel.path_from = path_from;
	s->variables = accel_variables(&s->accel);
	for (i = 0; s->variables[i] != NULL; i++)
		;
	s->names = g_new(struct text, i);
	s->record =
	    (struct record_conf){ .names = s->names, .n_names = i, .max_conns = 1, .max_reqs = 1 };
	for (i = 0; i < s->record.n_names; i++)
		s->names[i] = (struct text){ s->variables[i], strlen(s->variables[i]) };
	must(request_reader_new(&s->reader) == 0);
	/* without room in a file write(2) must fail, not end the program */
	must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	s->path = g_string_new(NULL);
	s->reply = g_string_new(NULL);
	s->out = g_string_new(NULL);
}

static void
choose(struct setup *s, unsigned how, unsigned what)
{
	static const int errs[] = { 0, -ENOENT, -EACCES, -EIO, -ETIMEDOUT, -EAGAIN, -EXDEV,
		-ENOMEM };
	const struct dialect *d = &dialects[how % 8];

	s->accel = (struct accel_conf){
		.mode = how & 0x80 ? MODE_AUTH : MODE_SENDFILE,
		.header = d->header,
		.raw = d->raw,
		.utf8 = d->utf8,
		.maps = how & 0x40 ? maps : NULL,
		.late_503 = how & 0x20,
		.caches = what & 0x08 ? caches : NULL,
		.etag = how & 0x10,
		.last_modified = how & 0x08,
		.expires = what & 0x80 ? 60 : -1,
	};
	if ((what & 0x48) == 0x08 && (what & 7) == 6)
		s->accel.path_from = path_from;
	s->fault = (what & 0x48) == 0x08 && (what & 7) <= LARGE_REQUEST ? (enum fault)(what & 7)
									: NO_FAULT;
	s->mtime_s = (what & 0x48) == 0x08 && (what & 7) == 7 ? INT64_MAX : 784111777;
	s->twice = what & 0x10;
	s->err = what & 0x40 ? errs[what % NELEM(errs)] : 0;
	s->index = what & 0x20 ? "index.html" : NULL;
	g_string_truncate(s->out, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct setup s;

	if (n < 2)
		return (0);
	if (s.reader == NULL)
		setup_once(&s);
	must(dialects[7].name != NULL);
	choose(&s, p[0], p[1]);
	converse(&s, p + 2, n - 2);
	return (0);
}
