#include "wire/fcgi_record.h"

#include <string.h>

enum {
	BEGIN_REQUEST = 1, ABORT_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR, DATA,
	GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE
};
enum { REQUEST_COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE };
enum { RESPONDER = 1, AUTHORIZER, FILTER };
enum { KEEP_CONN = 1 };

enum { INTO_NOTHING, INTO_BEGIN, INTO_VALUES, INTO_PARAMS };

struct pair {
	const uint8_t *name, *value;
	size_t	       name_len, value_len;
};

void
record_init(struct record *r, const struct record_conf *conf)
{
	memset(r, 0, sizeof(*r));
	r->conf = conf;
}

static void
drop_string(GString **s)
{
	if (*s != NULL)
		g_string_free(*s, TRUE);
	*s = NULL;
}

static void
drop_request(struct record *r)
{
	drop_string(&r->params);
	r->active = false;
}

void
record_free(struct record *r)
{
	drop_request(r);
	drop_string(&r->values);
}

bool
record_idle(const struct record *r)
{
	/* A body that nobody will read may take as long as it likes. */
	return (!r->active && !r->held && (r->head_len == 0 ||
	    (r->head_len == RECORD_HEAD && r->into == INTO_NOTHING)));
}

static unsigned
head_id(const struct record *r)
{
	return (r->head[2] << 8 | r->head[3]);
}

static void
put_head(GString *out, unsigned type, unsigned id, size_t len)
{
	const uint8_t h[RECORD_HEAD] = { 1, type, id >> 8, id, len >> 8, len, 0, 0 };

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

/* One length: a byte below 128, or four with the top bit set.  False when the bytes run out. */
static bool
read_len(const uint8_t **p, const uint8_t *end, size_t *len)
{
	const uint8_t *b = *p;

	if (b < end && b[0] < 0x80) {
		*len = b[0];
		*p += 1;
		return (true);
	}
	if (end - b < 4)
		return (false);
	*len = (size_t)(b[0] & 0x7f) << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	*p += 4;
	return (true);
}

/* Both lengths are below 2^31, so their sum cannot overflow; it is compared with what is there. */
static bool
read_pair(const uint8_t **p, const uint8_t *end, struct pair *pair)
{
	if (!read_len(p, end, &pair->name_len) || !read_len(p, end, &pair->value_len))
		return (false);
	if ((uint64_t)pair->name_len + pair->value_len > (uint64_t)(end - *p))
		return (false);
	pair->name = *p;
	pair->value = *p + pair->name_len;
	*p = pair->value + pair->value_len;
	return (true);
}

static bool
pairs_whole(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	struct pair pair;

	while (p < end)
		if (!read_pair(&p, end, &pair))
			return (false);
	return (true);
}

static bool
pair_is(const struct pair *pair, const char *name)
{
	return (text_eq((struct text){ (const char *)pair->name, pair->name_len }, text_of(name)));
}

static bool
pair_in_use(const struct record_conf *conf, const struct pair *pair)
{
	const struct text name = { (const char *)pair->name, pair->name_len };

	for (size_t i = 0; i < conf->n_names; i++)
		if (text_eq(conf->names[i], name))
			return (true);
	return (false);
}

static void
put_len(GString *out, size_t len)
{
	const uint8_t b[4] = { 0x80 | len >> 24, len >> 16, len >> 8, len };

	if (len < 0x80)
		g_string_append_c(out, (char)len);
	else
		g_string_append_len(out, (const char *)b, sizeof(b));
}

static void
put_pair(GString *out, const struct pair *pair)
{
	put_len(out, pair->name_len);
	put_len(out, pair->value_len);
	g_string_append_len(out, (const char *)pair->name, pair->name_len);
	g_string_append_len(out, (const char *)pair->value, pair->value_len);
}

/* A NUL would end the name early when it becomes a C string: another file than the one that was
 * asked for.  Then no name at all is passed on, which is answered with 403. */
static void
put_pairs_in_use(const struct record_conf *conf, const GString *params, GString *out)
{
	const uint8_t *p = (const uint8_t *)params->str, *end = p + params->len;
	const size_t before = out->len;
	struct pair pair;

	while (p < end && read_pair(&p, end, &pair)) {
		if (!pair_in_use(conf, &pair))
			continue;
		if (memchr(pair.value, '\0', pair.value_len) != NULL) {
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
	len = out->len - head - RECORD_HEAD;
	if (len == 0)				/* an empty record ends the stream: one is enough */
		return;
	out->str[head + 4] = (char)(len >> 8);
	out->str[head + 5] = (char)len;
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
	unsigned id = head_id(r), role = r->begin[0] << 8 | r->begin[1];
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
	if ((!r->active && !r->running) || head_id(r) != r->id)
		return (RECORD_MORE);
	put_end(reply, r->id, REQUEST_COMPLETE);
	drop_request(r);
	r->running = false;
	return (RECORD_ABORT);
}

/* The request is complete when its names are: a body is of no use here, and authorizers send
 * none. */
static enum record_result
end_params(struct record *r, size_t content)
{
	if (r->into != INTO_PARAMS || content > 0)
		return (RECORD_MORE);
	if (!r->too_long && !pairs_whole((const uint8_t *)r->params->str, r->params->len))
		return (RECORD_BAD);
	return (RECORD_REQUEST);
}

static void
put_value(GString *out, const char *name, const char *value)
{
	const struct pair pair = {
		(const uint8_t *)name, (const uint8_t *)value, strlen(name), strlen(value),
	};

	put_pair(out, &pair);
}

static void
put_number(GString *out, const char *name, unsigned n)
{
	char number[16];

	g_snprintf(number, sizeof(number), "%u", n);
	put_value(out, name, number);
}

/* libfcgi says 1/1/0 whatever the application can do; ours is the truth. */
static enum record_result
answer_values(const struct record *r, GString *reply)
{
	const uint8_t *p = (const uint8_t *)r->values->str, *end = p + r->values->len;
	size_t head = reply->len, len;
	bool conns = false, reqs = false, mpxs = false;
	struct pair pair;

	if (!pairs_whole(p, r->values->len))
		return (RECORD_BAD);
	while (p < end && read_pair(&p, end, &pair)) {
		conns |= pair_is(&pair, "FCGI_MAX_CONNS");
		reqs |= pair_is(&pair, "FCGI_MAX_REQS");
		mpxs |= pair_is(&pair, "FCGI_MPXS_CONNS");
	}
	put_head(reply, GET_VALUES_RESULT, 0, 0);
	if (conns)
		put_number(reply, "FCGI_MAX_CONNS", r->conf->max_conns);
	if (reqs)
		put_number(reply, "FCGI_MAX_REQS", r->conf->max_reqs);
	if (mpxs)
		put_value(reply, "FCGI_MPXS_CONNS", "0");
	len = reply->len - head - RECORD_HEAD;
	reply->str[head + 5] = (char)len;	/* at most 69 bytes */
	return (RECORD_MORE);
}

static enum record_result
end_get_values(struct record *r, GString *reply)
{
	enum record_result result = answer_values(r, reply);

	drop_string(&r->values);
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
	if (head_id(r) == 0 && r->head[1] == GET_VALUES)
		return (end_get_values(r, reply));
	if (head_id(r) == 0)
		return (end_unknown(r, reply));
	switch (r->head[1]) {
	case BEGIN_REQUEST: return (end_begin(r, reply));
	case ABORT_REQUEST: return (end_abort(r, reply));
	case PARAMS:	    return (end_params(r, content));
	}
	return (RECORD_MORE);
}

/* ---------------------------------------------------------------- bytes to records */

/* The head says where the content goes.  False: no record of this kind may be here. */
static bool
read_head(struct record *r)
{
	unsigned type = r->head[1], id = head_id(r);

	r->left = (uint16_t)(r->head[4] << 8 | r->head[5]);
	r->padding = r->head[6];
	r->into = INTO_NOTHING;
	if (r->head[0] != 1)
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
	case DATA:
		return (true);
	}
	return (false);
}

static size_t
take_head(struct record *r, const uint8_t *p, size_t n)
{
	n = MIN(n, RECORD_HEAD - (size_t)r->head_len);
	memcpy(r->head + r->head_len, p, n);
	r->head_len += (uint8_t)n;
	return (n);
}

static size_t
take_content(struct record *r, const uint8_t *p, size_t n)
{
	n = MIN(n, r->left);
	if (r->into == INTO_PARAMS && !r->too_long)
		g_string_append_len(r->params, (const char *)p, n);
	if (r->into == INTO_VALUES)
		g_string_append_len(r->values, (const char *)p, n);
	if (r->into == INTO_BEGIN) {
		memcpy(r->begin + r->begin_len, p, n);
		r->begin_len += (uint8_t)n;
	}
	r->left -= (uint16_t)n;
	return (n);
}

static size_t
take_padding(struct record *r, size_t n)
{
	n = MIN(n, r->padding);
	r->padding -= (uint8_t)n;
	return (n);
}

/* One request at a time: the next one waits until this one is answered. */
static bool
is_next_request(const struct record *r)
{
	return (r->running && r->head[0] == 1 && r->head[1] == BEGIN_REQUEST);
}

/* Takes some bytes of one record. */
static enum record_result
take(struct record *r, const uint8_t *p, size_t n, size_t *used)
{
	if (r->head_len == RECORD_HEAD && !r->held) {
		*used += r->left > 0 ? take_content(r, p, n) : take_padding(r, n);
		return (RECORD_MORE);
	}
	*used += take_head(r, p, n);
	if (r->head_len < RECORD_HEAD)
		return (RECORD_MORE);
	r->held = is_next_request(r);
	if (r->held)
		return (RECORD_HOLD);
	return (read_head(r) ? RECORD_MORE : RECORD_BAD);
}

static bool
is_whole(const struct record *r)
{
	return (r->head_len == RECORD_HEAD && r->left == 0 && r->padding == 0);
}

enum record_result
record_feed(struct record *r, const uint8_t *p, size_t n, size_t *used, GString *reply)
{
	enum record_result result = RECORD_MORE;

	*used = 0;
	while (*used < n && result == RECORD_MORE) {
		result = take(r, p + *used, n - *used, used);
		if (result == RECORD_MORE && is_whole(r))
			result = end_record(r, reply);
	}
	return (result);
}

bool
record_body_ends(const struct record *r, const uint8_t *p, size_t n)
{
	return (n >= RECORD_HEAD && p[0] == 1 && p[1] == STDIN && (p[2] << 8 | p[3]) == r->id &&
	    p[4] == 0 && p[5] == 0 && n == (size_t)RECORD_HEAD + p[6]);
}
