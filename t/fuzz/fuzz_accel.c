/* t/fuzz/fuzz_accel.c -- the whole way of a request but for the disk: any bytes from a web server, records, real libfcgi, the
 * path, an answer for a file that may be there or not, libfcgi again.  What comes out is sound FastCGI, and its head has no line
 * that we did not mean to write.
 *
 * The first byte of the input chooses the dialect and the mode, the second what is found. */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "base/must.h"
#include "base/text.h"
#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/dialect.h"
#include "fcgi-stat-accel/record.h"
#include "fcgi-stat-accel/request.h"
#include "t/fuzz/fuzz.h"

#define BEGIN "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"
#define AUTHORIZER "\1\1\0\7\0\10\0\0\0\2\0\0\0\0\0\0"
#define END "\1\4\0\1\0\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\0\0" BEGIN "\1\4\0\1\0\25\0\0\17\4SCRIPT_FILENAME/a/b" END BEGIN "\1\4\0\1\0\30\0\0\17\7SCRIPT_FILENAME/a \n%\r\xff" END),
	SEED("\1\1" BEGIN "\1\4\0\1\0\14\0\0\11\1WARM_PATH/" END "\1\5\0\1\0\3\1\0abcd\1\2\0\1\0\0\0\0"),
	SEED("\202\3" AUTHORIZER "\1\4\0\7\0\16\0\0\11\3WARM_PATH/\303\244" "\1\4\0\7\0\0\0\0"),
	SEED("\3\377" BEGIN "\1\4\0\1\0\105\0\0\15\4DOCUMENT_ROOT/srv\13\2SCRIPT_NAME/x\11\2PATH_INFO/y\12\12HTTP_RANGEbytes=123-" END),
	SEED("\106\20" BEGIN "\1\4\0\1\0\54\0\0\16\4REQUEST_METHODHEAD\17\7SCRIPT_FILENAME/srv/?#" END),
	SEED("\1\40" BEGIN "\1\4\0\1\0\36\0\0\11\2WARM_PATH/d\13\4REQUEST_URI//d?" END),
	{NULL, 0},
};

static const struct accel_map maps[] = {{"/srv", "/files"}, {"/", ""}, {NULL, NULL}};

struct setup {
	struct accel_conf accel;
	struct record_conf record;
	struct text *names;
	const char **variables;
	struct request_reader *reader;
	GString *path, *reply, *out;
	struct stats stats;
	int err;
	const char *index;
};

static unsigned
u16(const uint8_t *p)
{
	return (p[0] << 8 | p[1]);
}

/* ---------------------------------------------------------------- what comes out */

static bool
is_ours(const struct accel_conf *conf, const char *line, size_t n)
{
	static const char *const known[] = {"Status", "Content-Type", "Content-Length", "Retry-After", "ETag", "Last-Modified",
	    "Expires", "Cache-Control", "Location"};
	size_t i;

	for (i = 0; i < NELEM(known); i++)
		if (n == strlen(known[i]) && memcmp(line, known[i], n) == 0)
			return (true);
	return (n == strlen(conf->header) && memcmp(line, conf->header, n) == 0);
}

/* Lines that end in CR LF and have neither of them inside, an empty line, and a body only where Content-Length says so. */
static void
check_head(const struct setup *s)
{
	const char *p = s->reply->str, *end = p + s->reply->len, *colon, *eol;
	bool body = false;

	must(strncmp(p, "Status: ", 8) == 0);
	while (end - p >= 2 && memcmp(p, "\r\n", 2) != 0) {
		eol = memmem(p, (size_t)(end - p), "\r\n", 2);
		must(eol != NULL);
		must(memchr(p, '\0', (size_t)(eol - p)) == NULL && memchr(p, '\n', (size_t)(eol - p)) == NULL);
		must(memchr(p, '\r', (size_t)(eol - p)) == NULL);
		colon = memchr(p, ':', (size_t)(eol - p));
		must(colon != NULL && colon[1] == ' ' && is_ours(&s->accel, p, (size_t)(colon - p)));
		body |= strncmp(p, "Content-Length", (size_t)(colon - p)) == 0;
		p = eol + 2;
	}
	must(end - p >= 2 && (body || end - p == 2));
}

/* Records of this id: the reply in STDOUT, its end, END_REQUEST "complete". */
static void
check_out(const struct setup *s, size_t from, unsigned id)
{
	const uint8_t *p = (const uint8_t *)s->out->str + from, *end = (const uint8_t *)s->out->str + s->out->len;
	static const uint8_t complete[8];
	size_t seen = 0, len;

	for (;;) {
		must(end - p >= 8 && p[0] == 1 && u16(p + 2) == id);
		len = u16(p + 4);
		must((size_t)(end - p) >= 8 + len + p[6]);
		if (p[1] == 3)
			break;
		must(p[1] == 6 && len <= s->reply->len - seen && memcmp(p + 8, s->reply->str + seen, len) == 0);
		seen += len;
		p += 8 + len + p[6];
	}
	must(len == 8 && memcmp(p + 8, complete, 8) == 0 && p + 8 + len + p[6] == end && seen == s->reply->len);
}

/* ---------------------------------------------------------------- what is asked */

static void
answer(struct setup *s, const GString *request)
{
	struct warm_found found = {.err = s->err, .index = s->index};
	size_t before = s->out->len;
	char **params = request_read(s->reader, request), **p;
	struct range_set want;
	int err;

	must(params != NULL);
	for (p = params; *p != NULL; p++)
		must(strchr(*p, '=') != NULL);
	err = accel_path(&s->accel, params, s->path, &want);
	must(err <= 0 && (err < 0 || (s->path->str[0] == '/' && strlen(s->path->str) == s->path->len)));
	if (err != 0)
		found = (struct warm_found){.err = err};
	g_string_truncate(s->reply, 0);
	accel_reply(&s->accel, params, s->path->str, &found, &s->stats, s->reply);
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
	size_t used;

	record_init(&r, &s->record);
	while (n > 0 && result != RECORD_CLOSE && result != RECORD_BAD) {
		result = record_feed(&r, p, n, &used, s->out);
		p += used;
		n -= used;
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
	s->variables = accel_variables(&s->accel);
	for (i = 0; s->variables[i] != NULL; i++)
		;
	s->names = g_new(struct text, i);
	s->record = (struct record_conf){.names = s->names, .n_names = i, .max_conns = 1, .max_reqs = 1};
	for (i = 0; i < s->record.n_names; i++)
		s->names[i] = (struct text){s->variables[i], strlen(s->variables[i])};
	must(request_reader_new(&s->reader) == 0);
	s->path = g_string_new(NULL);
	s->reply = g_string_new(NULL);
	s->out = g_string_new(NULL);
}

static void
choose(struct setup *s, unsigned how, unsigned what)
{
	static const int errs[] = {0, -ENOENT, -EACCES, -EIO, -ETIMEDOUT, -EAGAIN, -EXDEV, -ENOMEM};
	const struct dialect *d = &dialects[how % 8];

	s->accel = (struct accel_conf){
		.mode = how & 0x80 ? MODE_AUTH : MODE_SENDFILE,
		.header = d->header,
		.raw = d->raw,
		.utf8 = d->utf8,
		.maps = how & 0x40 ? maps : NULL,
		.late_503 = how & 0x20,
		.etag = how & 0x10,
		.last_modified = how & 0x08,
		.expires = what & 0x80 ? 60 : -1,
	};
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
