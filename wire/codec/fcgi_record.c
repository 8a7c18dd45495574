#include "wire/codec/fcgi_record.h"

#include <string.h>

enum { INTO_NOTHING, INTO_BEGIN, INTO_VALUES, INTO_PARAMS };

struct pair {
	struct text name, value;
};

void
record_init(struct record *r, const struct record_conf *conf)
{
	memset(r, 0, sizeof(*r));
	r->conf = conf;
}

void
record_drop_string(GString **s)
{
	if (*s != NULL)
		g_string_free(*s, TRUE);
	*s = NULL;
}

static void
drop_request(struct record *r)
{
	record_drop_string(&r->params);
	r->active = false;
}

void
record_free(struct record *r)
{
	drop_request(r);
	record_drop_string(&r->values);
}

bool
record_idle(const struct record *r)
{
	/* The rest of a request has a deadline; a body that nobody reads has none. */
	return (!r->active && !r->held &&
		(r->head_len == 0 || (r->head_len == FCGI_HEAD && r->into == INTO_NOTHING)));
}

static void
put_head(GString *out, enum fcgi_type type, unsigned id, size_t len)
{
	uint8_t h[FCGI_HEAD];

	fcgi_head(h, type, id, len);
	g_string_append_len(out, (const char *)h, sizeof(h));
}

static void
put_end(GString *out, unsigned id, uint8_t protocol_status)
{
	const uint8_t body[8] = { 0, 0, 0, 0, protocol_status };

	put_head(out, END_REQUEST, id, sizeof(body));
	g_string_append_len(out, (const char *)body, sizeof(body));
}

/* ---------------------------------------------------------------- name-value pairs */

static bool
read_pair(struct text *in, struct pair *pair)
{
	return (fcgi_take_pair(in, &pair->name, &pair->value));
}

static struct text
text_of_string(const GString *s)
{
	return ((struct text){ s->str, s->len });
}

static bool
pairs_whole(struct text in)
{
	struct pair pair;

	while (in.n > 0)
		if (!read_pair(&in, &pair))
			return (false);
	return (true);
}

static bool
is_in_use(const struct record_conf *conf, struct text name)
{
	for (size_t i = 0; i < conf->n_names; i++)
		if (text_eq(conf->names[i], name))
			return (true);
	return (false);
}

static void
put_len(GString *out, size_t len)
{
	char b[4];

	g_string_append_len(out, b, (gssize)fcgi_length(b, len));
}

static void
put_pair(GString *out, const struct pair *pair)
{
	put_len(out, pair->name.n);
	put_len(out, pair->value.n);
	g_string_append_len(out, pair->name.p, (gssize)pair->name.n);
	g_string_append_len(out, pair->value.p, (gssize)pair->value.n);
}

/* As a C string, a value with a NUL would end early and name another file.  Then no variable is
 * passed on, which is answered with 403. */
static void
put_pairs_in_use(const struct record_conf *conf, const GString *params, GString *out)
{
	struct text in = text_of_string(params);
	const size_t before = out->len;
	struct pair pair;

	while (in.n > 0 && read_pair(&in, &pair)) {
		if (!is_in_use(conf, pair.name))
			continue;
		if (pair.value.n > 0 && memchr(pair.value.p, '\0', pair.value.n) != NULL) {
			g_string_truncate(out, before);
			break;
		}
		put_pair(out, &pair);
	}
}

static void
put_params(const struct record *r, GString *out)
{
	const size_t head = out->len;
	size_t len;

	put_head(out, PARAMS, r->id, 0);
	if (!r->too_long)
		put_pairs_in_use(r->conf, r->params, out);
	len = out->len - head - FCGI_HEAD;
	if (len == 0) /* an empty record ends the stream; one is enough */
		return;
	fcgi_set_content(out->str + head, len);
	put_head(out, PARAMS, r->id, 0);
}

GString *
record_take(struct record *r)
{
	const uint8_t begin[8] = { 0, r->role, KEEP_CONN };
	GString *out = g_string_sized_new(512);

	put_head(out, BEGIN_REQUEST, r->id, sizeof(begin));
	g_string_append_len(out, (const char *)begin, sizeof(begin));
	put_params(r, out);
	drop_request(r);
	r->running = true;
	return (out);
}

void
record_answered(struct record *r)
{
	r->running = false;
}

/* ---------------------------------------------------------------- one whole record */

static enum record_result
end_begin(struct record *r, GString *reply)
{
	unsigned id = fcgi_id(r->head), role = r->begin[0] << 8 | r->begin[1];
	bool keep = r->begin[2] & KEEP_CONN;

	if (r->active && id == r->id)
		return (RECORD_BAD);
	if (r->active) {
		put_end(reply, id, CANT_MPX_CONN);
		return (RECORD_MORE);
	}
	if (role < RESPONDER || role > FILTER) {
		put_end(reply, id, UNKNOWN_ROLE);
		return (keep ? RECORD_MORE : RECORD_CLOSE);
	}
	r->id = (uint16_t)id;
	r->role = (uint8_t)role;
	r->keep = keep;
	r->active = true;
	r->too_long = false;
	r->params = g_string_sized_new(1024);
	return (RECORD_MORE);
}

static enum record_result
end_abort(struct record *r, GString *reply)
{
	if ((!r->active && !r->running) || fcgi_id(r->head) != r->id)
		return (RECORD_MORE);
	put_end(reply, r->id, REQUEST_COMPLETE);
	drop_request(r);
	r->running = false;
	return (RECORD_ABORT);
}

/* The request is complete with its variables: its body is not needed, and authorizers have none. */
static enum record_result
end_params(struct record *r, size_t content)
{
	if (r->into != INTO_PARAMS || content > 0)
		return (RECORD_MORE);
	if (!r->too_long && !pairs_whole(text_of_string(r->params)))
		return (RECORD_BAD);
	return (RECORD_REQUEST);
}

static void
put_value(GString *out, const char *name, const char *value)
{
	const struct pair pair = { text_of(name), text_of(value) };

	put_pair(out, &pair);
}

static void
put_number(GString *out, const char *name, unsigned n)
{
	char number[16];

	g_snprintf(number, sizeof(number), "%u", n);
	put_value(out, name, number);
}

/* libfcgi would always answer 1/1/0; this answer has the real limits. */
static enum record_result
answer_values(const struct record *r, GString *reply)
{
	struct text in = text_of_string(r->values);
	size_t head = reply->len, len;
	bool conns = false, reqs = false, mpxs = false;
	struct pair pair;

	if (!pairs_whole(in))
		return (RECORD_BAD);
	while (in.n > 0 && read_pair(&in, &pair)) {
		conns |= text_eq(pair.name, TEXT("FCGI_MAX_CONNS"));
		reqs |= text_eq(pair.name, TEXT("FCGI_MAX_REQS"));
		mpxs |= text_eq(pair.name, TEXT("FCGI_MPXS_CONNS"));
	}
	put_head(reply, GET_VALUES_RESULT, 0, 0);
	if (conns)
		put_number(reply, "FCGI_MAX_CONNS", r->conf->max_conns);
	if (reqs)
		put_number(reply, "FCGI_MAX_REQS", r->conf->max_reqs);
	if (mpxs)
		put_value(reply, "FCGI_MPXS_CONNS", "0");
	len = reply->len - head - FCGI_HEAD;
	reply->str[head + 5] = (char)len; /* at most 69 bytes */
	return (RECORD_MORE);
}

static enum record_result
end_get_values(struct record *r, GString *reply)
{
	enum record_result result = answer_values(r, reply);

	record_drop_string(&r->values);
	return (result);
}

static enum record_result
end_unknown(struct record *r, GString *reply)
{
	const uint8_t body[8] = { r->head[1] };

	put_head(reply, UNKNOWN_TYPE, 0, sizeof(body));
	g_string_append_len(reply, (const char *)body, sizeof(body));
	return (RECORD_MORE);
}

static enum record_result
end_record(struct record *r, GString *reply)
{
	size_t content = r->head[4] << 8 | r->head[5];

	r->head_len = 0;
	if (fcgi_id(r->head) == 0 && r->head[1] == GET_VALUES)
		return (end_get_values(r, reply));
	if (fcgi_id(r->head) == 0)
		return (end_unknown(r, reply));
	switch (r->head[1]) {
	case BEGIN_REQUEST: return (end_begin(r, reply));
	case ABORT_REQUEST: return (end_abort(r, reply));
	case PARAMS: return (end_params(r, content));
	}
	return (RECORD_MORE);
}

/* ---------------------------------------------------------------- bytes to records */

/* The header decides where the content goes.  False: this record is not allowed here. */
static bool
read_head(struct record *r)
{
	unsigned type = r->head[1], id = fcgi_id(r->head);

	r->left = fcgi_content(r->head);
	r->padding = r->head[6];
	r->into = INTO_NOTHING;
	if (r->head[0] != FCGI_VERSION)
		return (false);
	if (id == 0 && type == GET_VALUES) {
		r->into = INTO_VALUES;
		r->values = g_string_sized_new(r->left);
		return (r->left <= RECORD_VALUES_MAX);
	}
	if (id == 0)
		return (type > UNKNOWN_TYPE);
	switch (type) {
	case BEGIN_REQUEST:
		r->into = INTO_BEGIN;
		r->begin_len = 0;
		return (r->left == sizeof(r->begin));
	case PARAMS:
		if (!r->active || id != r->id)
			return (true);
		r->into = INTO_PARAMS;
		r->too_long |= r->left > RECORD_PARAMS_MAX - r->params->len;
		return (true);
	case ABORT_REQUEST:
	case STDIN:
	case DATA: return (true);
	}
	return (false);
}

static void
take_head(struct record *r, struct text *in)
{
	struct text t = text_take(in, FCGI_HEAD - (size_t)r->head_len);

	memcpy(r->head + r->head_len, t.p, t.n);
	r->head_len += (uint8_t)t.n;
}

static void
take_content(struct record *r, struct text *in)
{
	struct text t = text_take(in, r->left);

	if (r->into == INTO_PARAMS && !r->too_long)
		g_string_append_len(r->params, t.p, (gssize)t.n);
	if (r->into == INTO_VALUES)
		g_string_append_len(r->values, t.p, (gssize)t.n);
	if (r->into == INTO_BEGIN) {
		memcpy(r->begin + r->begin_len, t.p, t.n);
		r->begin_len += (uint8_t)t.n;
	}
	r->left -= (uint16_t)t.n;
}

/* One request at a time: the next one waits until this one is answered. */
static bool
is_next_request(const struct record *r)
{
	return (r->running && r->head[0] == 1 && r->head[1] == BEGIN_REQUEST);
}

/* Takes some bytes of one record. */
static enum record_result
take(struct record *r, struct text *in)
{
	if (r->head_len == FCGI_HEAD && !r->held) {
		if (r->left > 0)
			take_content(r, in);
		else
			r->padding -= (uint8_t)text_take(in, r->padding).n;
		return (RECORD_MORE);
	}
	take_head(r, in);
	if (r->head_len < FCGI_HEAD)
		return (RECORD_MORE);
	r->held = is_next_request(r);
	if (r->held)
		return (RECORD_HOLD);
	return (read_head(r) ? RECORD_MORE : RECORD_BAD);
}

static bool
is_whole(const struct record *r)
{
	return (r->head_len == FCGI_HEAD && r->left == 0 && r->padding == 0);
}

enum record_result
record_feed(struct record *r, struct text *in, GString *reply)
{
	enum record_result result = RECORD_MORE;

	while (in->n > 0 && result == RECORD_MORE) {
		result = take(r, in);
		if (result == RECORD_MORE && is_whole(r))
			result = end_record(r, reply);
	}
	return (result);
}

bool
record_body_ends(const struct record *r, struct text t)
{
	const uint8_t *p = (const uint8_t *)t.p;

	return (t.n >= FCGI_HEAD && p[0] == FCGI_VERSION && p[1] == STDIN && fcgi_id(p) == r->id &&
		fcgi_content(p) == 0 && t.n == (size_t)FCGI_HEAD + p[6]);
}
