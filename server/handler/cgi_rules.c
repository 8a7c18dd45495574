/* server/handler/cgi_rules.c -- which files are programs; see cgi.h */
#include "server/config/config.h"
#include "server/handler/cgi.h"
#include "server/request/request.h"

/* The first ending that fits counts, as in lighttpd. */
const struct conf_pair *
cgi_rule_of(const struct request *r)
{
	const struct conf_map *assign = &r->conf->cgi_assign;
	struct text script = { r->place.path.p, r->script_len };
	size_t i;

	for (i = 0; i < assign->n; i++)
		if (text_ends(script, assign->v[i].key))
			return (&assign->v[i]);
	return (NULL);
}

bool
cgi_is_script(const struct request *r)
{
	return (r->script_len != 0 && cgi_rule_of(r) != NULL);
}

bool
cgi_excluded(const struct conf *c, struct text path)
{
	const struct conf_map *assign = &c->cgi_assign;
	size_t i;

	for (i = 0; i < assign->n; i++) {
		struct text end = assign->v[i].key;

		if (end.n != 0 && path.n >= end.n &&
		    text_ieq((struct text){ path.p + path.n - end.n, end.n }, end))
			return (true);
	}
	return (false);
}

bool
cgi_is_all(const struct conf *c)
{
	size_t i = 0;

	while (i < c->cgi_assign.n && c->cgi_assign.v[i].key.n != 0)
		i++;
	return (i < c->cgi_assign.n);
}

bool
cgi_is_beside(const struct request *r, struct text path)
{
	struct text dir = r->place.path;

	if (!cgi_is_all(r->conf) || !text_starts(path, r->place.dir))
		return (false);
	while (dir.n != 0 && dir.p[dir.n - 1] != '/')
		dir.n--;
	text_take(&path, r->place.dir.n);
	return (text_starts(path, dir));
}
