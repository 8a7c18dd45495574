/* wire/log_format.c -- see log_format.h */
#include "wire/log_format.h"

#include <stdio.h>

#include "base/must.h"

#define NS 1000000000ull

static const struct {
	char letter;
	enum log_piece_kind kind;
	bool named; /* needs {name} */
} letters[] = {
	{ 'h', LOG_REMOTE },
	{ 'a', LOG_REMOTE },
	{ 'l', LOG_NOTHING },
	{ 'P', LOG_EMPTY },
	{ 'u', LOG_USER },
	{ 't', LOG_TIME },
	{ 'r', LOG_LINE },
	{ 's', LOG_STATUS },
	{ 'b', LOG_BYTES },
	{ 'B', LOG_BYTES },
	{ 'i', LOG_HEADER, true },
	{ 'o', LOG_REPLY, true },
	{ 'C', LOG_COOKIE, true },
	{ 'e', LOG_VARIABLE, true },
	{ 'n', LOG_VARIABLE, true },
	{ 'f', LOG_FILE },
	{ 'H', LOG_PROTOCOL },
	{ 'k', LOG_KEPT },
	{ 'm', LOG_METHOD },
	{ 'p', LOG_PORT },
	{ 'q', LOG_QUERY },
	{ 'T', LOG_TAKEN },
	{ 'D', LOG_TAKEN },
	{ 'U', LOG_PATH },
	{ 'v', LOG_SERVER },
	{ 'V', LOG_HOST },
	{ 'X', LOG_STATE },
	{ 'I', LOG_IN },
	{ 'O', LOG_OUT },
	{ 'A', LOG_LOCAL },
	{ 'L', LOG_ID },
	{ 'x', LOG_STAGE, true },
};

#define NLETTERS (sizeof(letters) / sizeof(letters[0]))

static const char known[] = "%% %a %A %b %B %{NAME}C %D %{NAME}e %f %h %H %{NAME}i %I %k %l %L %m "
			    "%{NAME}n %{NAME}o %O %p %P %q %r %s %t %T %u %U %v %V %{NAME}x %X";

#define STRING(name, value) ",\"" name "\":\"" value "\""
#define NUMBER(name, value) ",\"" name "\":" value

/* Names and units are those of the error log and of debug.log-timing. */
static const char json_format[] =
    "{\"ts\":%{sec}t.%{usec_frac}t" STRING("id", "%{c}L") STRING("request", "%L")
	STRING("client", "%h") STRING("user", "%u") STRING("host", "%V") STRING("method", "%m")
	    STRING("url", "%{url}x") STRING("protocol", "%H") NUMBER("status", "%s")
		NUMBER("bytes", "%B") STRING("state", "%X") STRING("referer", "%{Referer}i")
		    STRING("agent", "%{User-Agent}i") STRING("trace", "%{trace}x")
			STRING("backend", "%{backend}x") STRING("cache", "%{cache}x")
			    STRING("tls", "%{SSL_PROTOCOL}x") STRING("cipher", "%{SSL_CIPHER}x")
#define S(field, name) NUMBER(name "-us", "%{" name "-us}x")
				STAGES(S)
#undef S
				    "}";

static bool
refuse(char *err, size_t errsize, struct text what, const char *why)
{
	snprintf(err, errsize, "\"%.*s\": %s", (int)(what.n < 80 ? what.n : 80), what.p, why);
	return (false);
}

static bool
unit_of(struct text word, uint64_t *per)
{
	static const struct {
		struct text word;
		uint64_t per;
	} units[] = { { TEXT("s"), 1 }, { TEXT("sec"), 1 }, { TEXT("ms"), 1000 },
		{ TEXT("msec"), 1000 }, { TEXT("us"), 1000000 }, { TEXT("usec"), 1000000 },
		{ TEXT("ns"), NS }, { TEXT("nsec"), NS } };
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text_eq(word, units[i].word)) {
			*per = units[i].per;
			return (true);
		}
	return (false);
}

/* The argument of %t: a unit, or a format for strftime(3). */
static bool
parse_time(struct log_piece *p)
{
	static const struct text begin = TEXT("begin:"), end = TEXT("end:"), frac = TEXT("_frac");
	struct text word;

	if (text_starts(p->arg, begin)) {
		p->begin = true;
		text_take(&p->arg, begin.n);
	} else if (text_starts(p->arg, end))
		text_take(&p->arg, end.n);
	if (p->arg.n == 0) {
		p->arg = TEXT("[%d/%b/%Y:%H:%M:%S %z]");
		return (true);
	}
	word = p->arg;
	p->frac = text_ends(word, frac);
	word.n -= p->frac ? frac.n : 0;
	if (unit_of(word, &p->per) && word.n > 2 && !(p->frac && p->per == 1)) {
		p->kind = LOG_CLOCK;
		return (true);
	}
	p->frac = false;
	return (memchr(p->arg.p, '%', p->arg.n) != NULL);
}

static bool
parse_port(struct log_piece *p)
{
	if (text_eq(p->arg, TEXT("remote")))
		p->kind = LOG_PEERPORT;
	else
		return (p->arg.n == 0 || text_eq(p->arg, TEXT("local")) ||
			text_eq(p->arg, TEXT("canonical")));
	return (true);
}

static bool
parse_taken(struct log_piece *p, char letter)
{
	p->per = letter == 'D' ? 1000000 : 1;
	return (letter == 'D' || p->arg.n == 0 || (unit_of(p->arg, &p->per) && p->arg.n <= 2));
}

static bool
parse_fact(struct log_piece *p)
{
	static const struct {
		struct text name;
		enum log_piece_kind kind;
	} facts[] = { { TEXT("backend"), LOG_BACKEND }, { TEXT("cache"), LOG_CACHE },
		{ TEXT("trace"), LOG_TRACE }, { TEXT("url"), LOG_TARGET } };
	static const struct text us = TEXT("-us"),
				 tls[] = { TEXT("SSL_PROTOCOL"), TEXT("SSL_CIPHER"),
					 TEXT("SSL_CIPHER_USEKEYSIZE"),
					 TEXT("SSL_CIPHER_ALGKEYSIZE"), TEXT("SSL_SESSION_RESUMED"),
					 TEXT("SSL_TLS_SNI") },
				 client = TEXT("SSL_CLIENT_");
	struct text name = p->arg;
	size_t i;

	if (text_is_one_of(name, tls, NELEM(tls)) || text_starts(name, client)) {
		p->kind = LOG_TLS;
		return (true);
	}
	for (i = 0; i < NELEM(facts); i++)
		if (text_eq(name, facts[i].name)) {
			p->kind = facts[i].kind;
			return (true);
		}
	if (!text_ends(name, us))
		return (false);
	name.n -= us.n;
	for (i = 0; i < NSTAGES && !text_eq(name, text_of(stage_infos[i].name)); i++)
		;
	p->stage = (enum stage)i;
	return (i < NSTAGES);
}

static bool
parse_id(struct log_piece *p)
{
	if (text_eq(p->arg, TEXT("c")))
		p->kind = LOG_NUMBER;
	return (p->kind == LOG_NUMBER || p->arg.n == 0);
}

#define S(field, name) " " name "-us"
static const char facts_known[] =
    "expected backend, cache, trace, url, SSL_PROTOCOL or another fact of TLS, or one "
    "of" STAGES(S);
#undef S

/* NULL, or what is wrong with the argument. */
static const char *
argument(struct log_piece *p, char letter, bool named)
{
	if (named && p->arg.n == 0)
		return ("expected a name in braces, as %{NAME}i");
	if (p->kind == LOG_TIME && !parse_time(p))
		return ("expected sec, msec, usec, nsec, msec_frac, usec_frac, nsec_frac, or a "
			"format for strftime(3)");
	if (p->kind == LOG_PORT && !parse_port(p))
		return ("expected canonical, local or remote");
	if (p->kind == LOG_TAKEN && !parse_taken(p, letter))
		return ("expected s, ms, us or ns");
	if (p->kind == LOG_STAGE && !parse_fact(p))
		return (facts_known);
	if (p->kind == LOG_ID && !parse_id(p))
		return ("expected %L, or %{c}L for the number of the connection");
	return (NULL);
}

/* After '%', which is at start.  Removes the piece from *rest. */
static bool
directive(struct text *rest, const char *start, struct log_piece *p, char *err, size_t errsize)
{
	const char *end, *why;
	struct text all;
	size_t i;

	while (rest->n != 0 && (rest->p[0] == '<' || rest->p[0] == '>'))
		text_take(rest, 1);
	if (rest->n != 0 && rest->p[0] == '{') {
		text_take(rest, 1);
		end = memchr(rest->p, '}', rest->n);
		if (end == NULL)
			return (refuse(err, errsize, text_of(start), "expected a closing brace"));
		p->arg = text_take(rest, (size_t)(end - rest->p));
		text_take(rest, 1);
	}
	while (rest->n != 0 && (rest->p[0] == '<' || rest->p[0] == '>'))
		text_take(rest, 1);
	for (i = 0; i < NLETTERS && (rest->n == 0 || rest->p[0] != letters[i].letter); i++)
		;
	if (rest->n != 0)
		text_take(rest, 1);
	all = (struct text){ start, (size_t)(rest->p - start) };
	if (i == NLETTERS) {
		snprintf(err, errsize, "\"%.*s\": expected one of %s",
		    (int)(all.n < 80 ? all.n : 80), start, known);
		return (false);
	}
	p->kind = letters[i].kind;
	why = argument(p, letters[i].letter, letters[i].named);
	return (why == NULL || refuse(err, errsize, all, why));
}

static void
needs(struct log_format *f, const struct log_piece *p)
{
	f->clock |= p->kind == LOG_CLOCK || p->kind == LOG_TAKEN || p->kind == LOG_TIME;
	f->reply |= p->kind == LOG_REPLY || p->kind == LOG_OUT;
	f->times |= p->kind == LOG_STAGE;
}

bool
log_format_parse(struct text rest, struct log_format *f, char *err, size_t errsize)
{
	struct log_piece *p;
	const char *start;

	f->n = 0;
	f->clock = f->reply = f->times = false;
	f->json = text_eq(rest, TEXT(LOG_FORMAT_JSON));
	if (f->json)
		rest = text_of(json_format);
	while (rest.n != 0) {
		if (f->n == LOG_PIECES_MAX) {
			snprintf(err, errsize, "expected at most %u parts", LOG_PIECES_MAX);
			return (false);
		}
		p = &f->v[f->n++];
		*p = (struct log_piece){ .kind = LOG_LITERAL };
		start = memchr(rest.p, '%', rest.n);
		if (start != rest.p) {
			p->arg =
			    text_take(&rest, start != NULL ? (size_t)(start - rest.p) : rest.n);
			continue;
		}
		text_take(&rest, 1);
		if (rest.n != 0 && rest.p[0] == '%')
			p->arg = text_take(&rest, 1);
		else if (!directive(&rest, start, p, err, errsize))
			return (false);
		needs(f, p);
	}
	return (true);
}

/* ---- values */

void
log_format_escape(struct buf *out, struct text t)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char from[] = "\"\\\a\b\t\n\v\f\r", to[] = "\"\\abtnvfr";
	size_t i, plain = 0;
	const char *at;

	for (i = 0; i < t.n; i++) {
		if (t.p[i] >= 0x20 && t.p[i] < 0x7f && t.p[i] != '"' && t.p[i] != '\\')
			continue;
		buf_add(out, t.p + plain, i - plain);
		plain = i + 1;
		buf_char(out, '\\');
		at = t.p[i] != '\0' ? strchr(from, t.p[i]) : NULL;
		if (at != NULL) {
			buf_char(out, to[at - from]);
			continue;
		}
		buf_char(out, 'x');
		buf_char(out, hex[(unsigned char)t.p[i] >> 4]);
		buf_char(out, hex[t.p[i] & 15]);
	}
	buf_add(out, t.p + plain, t.n - plain);
}

void
log_format_json(struct buf *out, struct text t)
{
	size_t start = out->n;

	buf_json(out, t);
	if (out->failed)
		return;
	out->n -= 2; /* the quotes */
	memmove(out->p + start, out->p + start + 1, out->n - start);
}

void
log_format_clock(struct buf *out, const struct log_piece *p, uint64_t wall_ns)
{
	uint64_t rest = wall_ns % NS / (NS / p->per), digit;

	if (!p->frac) {
		buf_u64(out, wall_ns / NS * p->per + rest);
		return;
	}
	for (digit = p->per / 10; digit != 0; digit /= 10)
		buf_char(out, (char)('0' + rest / digit % 10));
}
