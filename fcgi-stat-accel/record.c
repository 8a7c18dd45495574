#include "fcgi-stat-accel/record.h"

#include <string.h>

enum {
	BEGIN_REQUEST = 1, ABORT_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR, DATA,
	GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE
};
enum { REQUEST_COMPLETE, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE };
enum { RESPONDER = 1, AUTHORIZER, FILTER };
enum { KEEP_CONN = 1 };

/* What accel.c reads.  The rest (cookies, user agents) is checked and left behind. */
static const char *const names[] = {
	"REQUEST_METHOD", "QUERY_STRING", "HTTP_RANGE", "SCRIPT_FILENAME", "WARM_PATH", "DOCUMENT_ROOT", "SCRIPT_NAME",
	"PATH_INFO",
};

struct pair {
	const uint8_t *name, *value;
	size_t	       name_len, value_len;
};

void
record_init(struct record *r, unsigned max_requests)
{
	memset(r, 0, sizeof(*r));
	r->max_requests = max_requests;
}

static void
drop_request(struct record *r)
{
	if (r->params != NULL)
		g_string_free(r->params, TRUE);
	r->params = NULL;
	r->active = false;
}

void
record_free(struct record *r)
{
	drop_request(r);
}

bool
record_idle(const struct record *r)
{
	/* A body that nobody will read may take as long as it likes. */
	return (!r->active && (r->head_len == 0 || (r->head_len == RECORD_HEAD &&
	    r->into == INTO_NOTHING)));
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
	return (pair->name_len == strlen(name) && memcmp(pair->name, name, pair->name_len) == 0);
}

static bool
pair_in_use(const struct pair *pair)
{
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (pair_is(pair, names[i]))
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
static GString *
pairs_in_use(const GString *params)
{
	const uint8_t *p = (const uint8_t *)params->str, *end = p + params->len;
	GString *out = g_string_sized_new(512);
	struct pair pair;

	while (p < end && read_pair(&p, end, &pair)) {
		if (!pair_in_use(&pair))
			continue;
		if (memchr(pair.value, '\0', pair.value_len) != NULL) {
			g_string_truncate(out, 0);
			break;
		}
		put_pair(out, &pair);
	}
	return (out);
}

GString *
record_take(struct record *r)
{
	const uint8_t begin[8] = { 0, r->role, KEEP_CONN };
	GString *pairs = pairs_in_use(r->params);
	GString *out = g_string_sized_new(4 * RECORD_HEAD + pairs->len);

	put_head(out, BEGIN_REQUEST, r->id, sizeof(begin));
	g_string_append_len(out, (const char *)begin, sizeof(begin));
	if (pairs->len > 0) {			/* an empty record would end the stream */
		put_head(out, PARAMS, r->id, pairs->len);
		g_string_append_len(out, pairs->str, pairs->len);
	}
	put_head(out, PARAMS, r->id, 0);
	g_string_free(pairs, TRUE);
	drop_request(r);
	return (out);
}

/* ---------------------------------------------------------------- one whole record */

static enum record_result
end_begin(struct record *r, GString *reply)
{
	unsigned id = head_id(r), role = r->small[0] << 8 | r->small[1];
	bool keep = r->small[2] & KEEP_CONN;

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
	r->id = id;
	r->role = role;
	r->keep = keep;
	r->active = true;
	r->params = g_string_sized_new(1024);
	return (RECORD_MORE);
}

static enum record_result
end_abort(struct record *r, GString *reply)
{
	if (!r->active || head_id(r) != r->id)
		return (RECORD_MORE);
	put_end(reply, r->id, REQUEST_COMPLETE);
	drop_request(r);
	return (r->keep ? RECORD_MORE : RECORD_CLOSE);
}

/* The request is complete when its names are: a body is of no use here, and authorizers send
 * none. */
static enum record_result
end_params(struct record *r, size_t content)
{
	if (r->into != INTO_PARAMS || content > 0)
		return (RECORD_MORE);
	if (!pairs_whole((const uint8_t *)r->params->str, r->params->len))
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

/* libfcgi says 1/1/0 whatever the number of threads; ours is the truth. */
static enum record_result
end_get_values(struct record *r, GString *reply)
{
	const uint8_t *p = r->small, *end = p + r->small_len;
	size_t head = reply->len, len;
	bool conns = false, reqs = false, mpxs = false;
	struct pair pair;
	char number[16];

	if (!pairs_whole(p, r->small_len))
		return (RECORD_BAD);
	while (p < end && read_pair(&p, end, &pair)) {
		conns |= pair_is(&pair, "FCGI_MAX_CONNS");
		reqs |= pair_is(&pair, "FCGI_MAX_REQS");
		mpxs |= pair_is(&pair, "FCGI_MPXS_CONNS");
	}
	g_snprintf(number, sizeof(number), "%u", r->max_requests);
	put_head(reply, GET_VALUES_RESULT, 0, 0);
	if (conns)
		put_value(reply, "FCGI_MAX_CONNS", number);
	if (reqs)
		put_value(reply, "FCGI_MAX_REQS", number);
	if (mpxs)
		put_value(reply, "FCGI_MPXS_CONNS", "0");
	len = reply->len - head - RECORD_HEAD;
	reply->str[head + 5] = (char)len;	/* at most 61 bytes */
	return (RECORD_MORE);
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

	r->left = r->head[4] << 8 | r->head[5];
	r->padding = r->head[6];
	r->into = INTO_NOTHING;
	r->small_len = 0;
	if (r->head[0] != 1)
		return (false);
	if (id == 0 && type == GET_VALUES) {
		r->into = INTO_SMALL;
		return (r->left <= RECORD_SMALL_MAX);
	}
	if (id == 0)
		return (type > UNKNOWN_TYPE);
	switch (type) {
	case BEGIN_REQUEST:
		r->into = INTO_SMALL;
		return (r->left == 8);
	case PARAMS:
		if (!r->active || id != r->id)
			return (true);
		r->into = INTO_PARAMS;
		return (r->left <= RECORD_PARAMS_MAX - r->params->len);
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
	n = MIN(n, RECORD_HEAD - r->head_len);
	memcpy(r->head + r->head_len, p, n);
	r->head_len += n;
	return (n);
}

static size_t
take_content(struct record *r, const uint8_t *p, size_t n)
{
	n = MIN(n, r->left);
	if (r->into == INTO_PARAMS)
		g_string_append_len(r->params, (const char *)p, n);
	if (r->into == INTO_SMALL) {
		memcpy(r->small + r->small_len, p, n);
		r->small_len += n;
	}
	r->left -= n;
	return (n);
}

static size_t
take_padding(struct record *r, size_t n)
{
	n = MIN(n, r->padding);
	r->padding -= n;
	return (n);
}

/* Takes some bytes of one record, at least one; *whole when the record ends with them. */
static bool
take(struct record *r, const uint8_t *p, size_t n, size_t *used, bool *whole)
{
	if (r->head_len < RECORD_HEAD) {
		*used += take_head(r, p, n);
		if (r->head_len < RECORD_HEAD)
			return (true);
		if (!read_head(r))
			return (false);
	} else if (r->left > 0)
		*used += take_content(r, p, n);
	else
		*used += take_padding(r, n);
	*whole = r->left == 0 && r->padding == 0;
	return (true);
}

enum record_result
record_feed(struct record *r, const uint8_t *p, size_t n, size_t *used, GString *reply)
{
	enum record_result result = RECORD_MORE;
	bool whole;

	*used = 0;
	while (*used < n && result == RECORD_MORE) {
		whole = false;
		if (!take(r, p + *used, n - *used, used, &whole))
			return (RECORD_BAD);
		if (whole)
			result = end_record(r, reply);
	}
	return (result);
}
