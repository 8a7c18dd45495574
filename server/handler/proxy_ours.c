/* server/handler/proxy_ours.c -- fields that both setenv and a client give an application.
 *
 *   X-Two: theirs      the client's, if it may pass  \   X-Two: theirs, ours
 *   X-Two: ours        setenv.add-request-header     /
 *
 * One line is left.  A client's line that may not pass (a claim, or its Connection lists it) leaves
 * the configuration's value alone.
 */
#include "base/arena.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"
#include "wire/codec/client_fields.h"

/* All lines of the field up to the last one, which is ours and gets the value.  False: no
 * memory. */
static bool
join(struct request *r, struct proxy_request *q, const struct fields *f, size_t last, bool *dropped)
{
	struct proxy_field *v = (struct proxy_field *)(uintptr_t)q->headers;
	const char *sep = text_ieq(v[last].name, TEXT("Cookie")) ? "; " : ", ";
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	for (i = fields_find(f, v[last].name); i != last; i = fields_next(f, i)) {
		dropped[i] = true;
		if (!client_field_passes(q, f, i))
			continue;
		buf_text(&b, v[i].value);
		buf_str(&b, sep);
	}
	buf_text(&b, v[last].value);
	if (b.n > v[last].value.n)
		v[last].value = b.failed ? TEXT_NONE : arena_text(&r->arena, buf_as_text(&b));
	buf_free(&b);
	return (v[last].value.p != NULL);
}

bool
proxy_join_ours(struct relay *rl)
{
	struct proxy_request *q = &rl->req;
	struct proxy_field *v = (struct proxy_field *)(uintptr_t)q->headers;
	bool dropped[FIELDS_MAX] = { false };
	struct fields f;
	size_t i, n = 0;

	if (rl->r->http.nours == 0 || q->nheaders > FIELDS_MAX)
		return (true); /* the codec refuses more */
	fields_index(&f, v, q->nheaders);
	for (i = 0; i < f.n; i++)
		if (v[i].ours && f.repeats[i] && fields_next(&f, i) == f.n &&
		    !join(rl->r, q, &f, i, dropped))
			return (false);
	for (i = 0; i < f.n; i++)
		if (!dropped[i])
			v[n++] = v[i];
	q->nheaders = n;
	return (true);
}
