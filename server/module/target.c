/* server/module/target.c -- see target.h */
#include "server/module/target.h"

#include "base/address.h"
#include "base/arena.h"
#include "base/log.h"
#include "server/request/client.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "wire/urlpath.h"

bool
target_counts(const struct request *r)
{
	return (!r->by_index && r->http.path.p[0] == '/');
}

/* The client's path needs no change: nothing was decoded and nothing was removed. */
static bool
is_as_sent(const struct request *r)
{
	return (!request_is_changed(r) && text_eq(r->http.path, request_path(r)) &&
		urlpath_is_plain(r->http.target, URL_SLASH | URL_DELIMS | URL_QUESTION));
}

static size_t
put_path(const struct request *r, char *p)
{
	if (request_is_changed(r))
		return (urlpath_escape(request_path(r), URL_OF_DECODED, p));
	return (urlpath_drop_steps(p, urlpath_escape(r->http.path, URL_OF_TARGET, p)));
}

/* False: no memory. */
static bool
fill(struct request *r, struct pattern_input *in)
{
	struct text query = r->http.query, rest;
	size_t n = r->http.path.n > r->path_len ? r->http.path.n : r->path_len;
	char *p;

	if (r->target.p != NULL || is_as_sent(r)) {
		in->subject = r->target.p != NULL ? r->target : r->http.target;
		rest = in->subject;
		text_next(&rest, '?', &in->path);
		in->query = query;
		return (true);
	}
	p = arena_get(&r->arena, 3 * (n + query.n) + 1);
	if (p == NULL)
		return (false);
	n = put_path(r, p);
	in->path = (struct text){ p, n };
	if (query.n != 0) {
		p[n++] = '?';
		in->query = (struct text){ p + n, urlpath_escape(query, URL_OF_TARGET, p + n) };
		n += in->query.n;
	}
	in->subject = (struct text){ p, n };
	return (true);
}

static unsigned
port_of(const struct request *r)
{
	struct address_parts a;
	const char *fault;

	return (address_read(conn_listener(r), &a, &fault) == 0 ? a.port_number : 0);
}

static int
too_long(struct request *r, const char *setting)
{
	log_limited(1, LOG_WARN, conn_id(r), "rule.too-long", conn_client(r),
	    LF_STR("setting", setting), LF_TEXT("url", r->http.target),
	    LF_U64("limit", PATTERN_MAX), LF_STR("then", "the client gets 414"));
	return (414);
}

int
target_apply(struct request *r, const struct patterns *ps, unsigned block, const char *setting,
    struct buf *out, size_t *rule)
{
	struct text cond[MATCH_CAPTURES];
	struct pattern_input in = { .scheme = conn_scheme(r),
		.authority = r->http.host,
		.port = port_of(r) };

	if (!fill(r, &in))
		return (500);
	if (patterns_use_condition(ps) && route_captures(r, block, cond, &in.cond_decoded))
		in.cond = cond;
	switch (patterns_apply(ps, &in, out, rule)) {
	case PATTERN_NONE:
	case PATTERN_MADE: return (0);
	case PATTERN_TOO_LONG: return (too_long(r, setting));
	case PATTERN_UNDECIDED: break;
	}
	route_undecided(r, setting, r->http.target);
	return (500);
}
