/* nginx/records.c -- see records.h. */
#include "nginx/records.h"

enum { FCGI_BEGIN = 1, FCGI_ABORT, FCGI_END, FCGI_PARAMS, FCGI_STDIN, FCGI_STDOUT, FCGI_STDERR };
enum { FCGI_GET_VALUES = 9, FCGI_GET_VALUES_RESULT = 10, FCGI_HEAD = 8 };

/* ---------------------------------------------------------------- written */

static u_char *
put_record(u_char *p, unsigned type, unsigned id, size_t content)
{
	*p++ = 1;
	*p++ = (u_char)type;
	*p++ = 0;
	*p++ = (u_char)id;
	*p++ = (u_char)(content >> 8);
	*p++ = (u_char)content;
	*p++ = 0;
	*p++ = 0;
	return (p);
}

static u_char *
put_length(u_char *p, size_t n)
{
	if (n < 128) {
		*p++ = (u_char)n;
		return (p);
	}
	*p++ = (u_char)(n >> 24 | 0x80);
	*p++ = (u_char)(n >> 16);
	*p++ = (u_char)(n >> 8);
	*p++ = (u_char)n;
	return (p);
}

static u_char *
put_param(u_char *p, const char *name, const ngx_str_t *value)
{
	size_t n = ngx_strlen(name);

	p = put_length(p, n);
	p = put_length(p, value->len);
	p = ngx_cpymem(p, name, n);
	return (ngx_cpymem(p, value->data, value->len));
}

static ngx_str_t
range_header(const struct accel_range *range, u_char *to)
{
	u_char *p;

	if (range->from < 0)
		p = ngx_sprintf(to, "bytes=%O", range->from);
	else if (range->to == NGX_MAX_OFF_T_VALUE)
		p = ngx_sprintf(to, "bytes=%O-", range->from);
	else
		p = ngx_sprintf(to, "bytes=%O-%O", range->from, range->to - 1);
	return ((ngx_str_t){ (size_t)(p - to), to });
}

size_t
accel_question_size(const struct accel_question *q)
{
	return (q->name.path.len + q->client.len + 512);
}

u_char *
accel_put_question(u_char *p, const struct accel_question *q)
{
	static const ngx_str_t get = ngx_string("GET"), head = ngx_string("HEAD"),
			       late = ngx_string("503"), yes = ngx_string("1");
	u_char range[64], *params;
	const struct accel_range *r = &q->name.range;
	bool nothing = r->to == 0;
	ngx_str_t value;

	p = put_record(p, FCGI_BEGIN, 1, 8);
	p = ngx_cpymem(p, "\0\2\1\0\0\0\0\0", 8); /* an authorizer; the connection is kept */
	params = p + FCGI_HEAD;
	p = put_param(params, "REQUEST_METHOD", nothing ? &head : &get);
	p = put_param(p, "WARM_PATH", &q->name.path);
	p = put_param(p, "REMOTE_ADDR", &q->client);
	if (q->name.open)
		p = put_param(p, "WARM_OPEN", &yes);
	if (q->refuse)
		p = put_param(p, "WARM_LATE", &late);
	if ((r->partial || r->to != NGX_MAX_OFF_T_VALUE) && !nothing) {
		value = range_header(r, range);
		p = put_param(p, "HTTP_RANGE", &value);
	}
	put_record(params - FCGI_HEAD, FCGI_PARAMS, 1, (size_t)(p - params));
	p = put_record(p, FCGI_PARAMS, 1, 0);
	return (put_record(p, FCGI_STDIN, 1, 0));
}

u_char *
accel_put_get_values(u_char *p)
{
	static const ngx_str_t none = ngx_null_string;
	static const char name[] = "FCGI_MPXS_CONNS";

	p = put_record(p, FCGI_GET_VALUES, 0, sizeof(name) - 1 + 2);
	return (put_param(p, name, &none));
}

u_char *
accel_put_abort(u_char *p)
{
	return (put_record(p, FCGI_ABORT, 1, 0));
}

/* ---------------------------------------------------------------- read */

void
accel_reader_begin(struct accel_reader *r)
{
	r->asked = true;
	r->head_len = 0;
}

bool
accel_answer_is_late(const struct accel_reader *r)
{
	return (r->head_len >= 11 && ngx_strncmp(r->head, "Status: 503", 11) == 0);
}

/* A line "Warm-Errno: 2" */
ngx_err_t
accel_answer_errno(const struct accel_reader *r)
{
	static const char name[] = "Warm-Errno: ";
	const u_char *end = r->head + r->head_len, *line = r->head, *eol;
	ngx_int_t n;

	for (; line < end; line = eol + 1) {
		eol = memchr(line, '\n', (size_t)(end - line));
		if (eol == NULL)
			break;
		if ((size_t)(eol - line) < sizeof(name) ||
		    ngx_strncasecmp((u_char *)line, (u_char *)name, sizeof(name) - 1) != 0)
			continue;
		line += sizeof(name) - 1;
		n = ngx_atoi((u_char *)line, (size_t)(eol - line) - (eol[-1] == '\r'));
		return (n > 0 && n < 4096 ? (ngx_err_t)n : 0);
	}
	return (0);
}

static void
take_content(struct accel_reader *r, const u_char *p, size_t n)
{
	if (r->record[1] != FCGI_STDOUT)
		return;
	n = ngx_min(n, sizeof(r->head) - r->head_len);
	ngx_memcpy(r->head + r->head_len, p, n);
	r->head_len += n;
}

static bool
is_expected(const struct accel_reader *r)
{
	unsigned type = r->record[1], id = (unsigned)r->record[2] << 8 | r->record[3];

	if (r->record[0] != 1)
		return (false);
	if (type == FCGI_GET_VALUES_RESULT)
		return (id == 0);
	return (r->asked && id == 1 &&
		(type == FCGI_STDOUT || type == FCGI_STDERR || type == FCGI_END));
}

/* False: it is not whole yet. */
static bool
read_head(struct accel_reader *r, const u_char **p, const u_char *end)
{
	while (r->record_len < FCGI_HEAD && *p < end)
		r->record[r->record_len++] = *(*p)++;
	return (r->record_len == FCGI_HEAD);
}

static void
read_content(struct accel_reader *r, const u_char **p, const u_char *end)
{
	size_t part = ngx_min((size_t)(end - *p), r->left);
	size_t content = ngx_min(part, r->content);

	take_content(r, *p, content);
	r->content -= content;
	r->left -= part;
	*p += part;
}

static enum accel_record
record_end(struct accel_reader *r)
{
	r->record_len = 0;
	if (r->record[1] == FCGI_GET_VALUES_RESULT)
		return (ACCEL_RECORD_VALUES);
	if (r->record[1] != FCGI_END)
		return (ACCEL_RECORD_PART);
	r->asked = false;
	return (ACCEL_RECORD_END);
}

enum accel_record
accel_read_record(struct accel_reader *r, const u_char **p, const u_char *end)
{
	if (r->record_len < FCGI_HEAD) {
		if (!read_head(r, p, end))
			return (ACCEL_RECORD_PART);
		if (!is_expected(r))
			return (ACCEL_RECORD_BAD);
		r->content = (size_t)r->record[4] << 8 | r->record[5];
		r->left = r->content + r->record[6];
	}
	read_content(r, p, end);
	return (r->left > 0 ? ACCEL_RECORD_PART : record_end(r));
}
