/* server/request/id.c -- see id.h */
#include "server/request/id.h"

#include "base/arena.h"
#include "base/unique.h"
#include "server/config/config.h"
#include "server/request/client.h"
#include "server/request/request.h"
#include "wire/http1/http1.h"

struct ids {
	struct text id; /* .p NULL: not asked for yet */
	char made[UNIQUE_HEX];
	struct text trace, traceparent; /* .p NULL: not asked yet; the field that was made */
};
static REQUEST_SLOT(struct ids, mine);

unsigned
request_ids(const struct conf *c)
{
	unsigned ids = c->traceparent ? IDS_TRACE : 0;
	size_t i;

	for (i = 0; i < c->request_id.n; i++)
		ids |= text_eq(c->request_id.v[i], TEXT("client")) ? IDS_CLIENT : IDS_APPLICATION;
	return (ids);
}

/* The client's only field of that name; .p NULL: none, or several. */
static struct text
only_field(const struct http_request *h, struct text name)
{
	struct text found = TEXT_NONE;
	size_t i;

	for (i = 0; i + h->nours < h->nheaders; i++) {
		if (!text_ieq(h->headers[i].name, name))
			continue;
		if (found.p != NULL)
			return (TEXT_NONE);
		found = h->headers[i].value;
	}
	return (found);
}

/* True if the text needs no quotes or escapes in a log, in a header, or as one word of a shell. */
static bool
is_id(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (!byte_is_alnum(t.p[i]) &&
		    (t.p[i] == '\0' || strchr("-_.:+/=@", t.p[i]) == NULL))
			return (false);
	return (t.n != 0 && t.n <= REQUEST_ID_MAX);
}

struct text
request_id(struct request *r)
{
	struct ids *m = request_slot(r, mine);
	struct text said;

	if (m->id.p != NULL)
		return (m->id);
	said = conn_trusted(r) ? only_field(&r->http, TEXT("X-Request-ID")) : TEXT_NONE;
	if (is_id(said))
		m->id = arena_text(&r->arena, said);
	if (m->id.p == NULL) {
		unique_hex(m->made);
		m->id = (struct text){ m->made, sizeof(m->made) };
	}
	return (m->id);
}

/* ---- W3C Trace Context, 3.2: 00-TRACE-PARENT-FLAGS in lower case */

#define VERSION_HEX 2u
#define TRACE_HEX   32u
#define PARENT_HEX  16u
#define FLAGS_HEX   2u
#define TRACE_FIELD (VERSION_HEX + 1 + TRACE_HEX + 1 + PARENT_HEX + 1 + FLAGS_HEX)

static bool
is_hex(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (!byte_is_digit(t.p[i]) && !(t.p[i] >= 'a' && t.p[i] <= 'f'))
			return (false);
	return (true);
}

/* Not only zeros. */
static bool
is_number(struct text t, size_t n)
{
	size_t i = 0;

	while (i < t.n && t.p[i] == '0')
		i++;
	return (t.n == n && i < n && is_hex(t));
}

/* The trace id; .p NULL: the field is not valid.  A later version may have more after its
 * flags. */
static struct text
trace_of(struct text field)
{
	struct text version, trace, parent, flags;

	if (!text_next(&field, '-', &version) || version.n != VERSION_HEX || !is_hex(version) ||
	    text_eq(version, TEXT("ff")) || !text_next(&field, '-', &trace) ||
	    !is_number(trace, TRACE_HEX) || !text_next(&field, '-', &parent) ||
	    !is_number(parent, PARENT_HEX) || !text_next(&field, '-', &flags) ||
	    flags.n != FLAGS_HEX || !is_hex(flags))
		return (TEXT_NONE);
	return (field.p == NULL || !text_eq(version, TEXT("00")) ? trace : TEXT_NONE);
}

/* A new trace.  False: no memory. */
static bool
make_trace(struct request *r)
{
	struct ids *m = request_slot(r, mine);
	static const char form[TRACE_FIELD + 1] = "00-TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT-"
						  "PPPPPPPPPPPPPPPP-01";
	char *field = arena_get(&r->arena, TRACE_FIELD), more[UNIQUE_HEX];

	if (field == NULL)
		return (false);
	memcpy(field, form, TRACE_FIELD);
	if (is_number(request_id(r), TRACE_HEX))
		memcpy(field + 3, m->id.p, TRACE_HEX);
	else
		unique_hex(field + 3);
	unique_hex(more);
	memcpy(field + 3 + TRACE_HEX + 1, more, PARENT_HEX);
	m->trace = (struct text){ field + 3, TRACE_HEX };
	m->traceparent = (struct text){ field, TRACE_FIELD };
	return (true);
}

struct text
request_trace(struct request *r)
{
	struct ids *m = request_slot(r, mine);
	struct text said;

	if (m->trace.p != NULL)
		return (m->traceparent);
	m->traceparent = TEXT_NONE;
	said = conn_trusted(r) ? trace_of(only_field(&r->http, TEXT("traceparent"))) : TEXT_NONE;
	if (said.p != NULL)
		m->trace = arena_text(&r->arena, said);
	else
		(void)make_trace(r);
	return (m->traceparent);
}

struct text
request_trace_id(const struct request *r)
{
	return (request_slot(r, mine)->trace);
}
