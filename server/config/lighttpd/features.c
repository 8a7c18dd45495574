/* server/config/lighttpd/features.c -- the keys of server.feature-flags
 * and server.http-parseopts. */
#include "server/config/impl.h"
#include "wire/urlpath.h"

#define GRACEFUL_KEY   "server.graceful-shutdown-timeout"
#define GRACEFUL_MAX_S 86400u

/* As lighttpd: numbers are accepted, too. */
static bool
switch_read(struct text t, bool *on)
{
	*on = text_eq(t, TEXT("enable")) || text_eq(t, TEXT("true")) || text_eq(t, TEXT("1"));
	return (*on || text_eq(t, TEXT("disable")) || text_eq(t, TEXT("false")) ||
		text_eq(t, TEXT("0")));
}

/* ---------------------------------------------------------------- server.feature-flags */

static const struct {
	const char *key;
	const char *enabled, *disabled; /* the note for this value; NULL: it makes no difference */
} flags[] = {
	{ "auth.delay-invalid-creds", NULL, "Failed logins are always delayed." },
	{ "chunkqueue.splice", NULL, NULL },
	{ "http10.range", NULL, NULL },
	{ "server.absolute-dir-redirect", NULL, NULL },
	{ "server.clock-jump-restart", NULL, NULL },
	{ "server.errorlog-high-precision", NULL, NULL },
	{ "server.graceful-restart-bg", NULL, NULL },
	{ "server.h1-discard-backend-1xx", NULL, NULL },
	{ "server.h2-discard-backend-1xx", NULL, NULL },
	{ "server.metrics-high-precision", NULL, NULL },
	{ "server.pcre_jit", NULL, NULL },
};

/* False: it is another key, or has no value that can be read. */
static bool
take_flag(struct config *cfg, const struct conf_pair *p)
{
	struct conf *g = &cfg->global;
	bool *on = text_eq(p->key, TEXT("server.h2proto")) ? &g->h2proto
		   : text_eq(p->key, TEXT("server.h2c"))   ? &g->h2c
							   : NULL;

	return (on != NULL && switch_read(p->value, on));
}

static void
note_flag(struct config *cfg, struct cfg_pos pos, const struct conf_pair *p)
{
	const char *note = NULL;
	bool on;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(flags); i++)
		if (text_eq(p->key, text_of(flags[i].key)))
			break;
	if (i == G_N_ELEMENTS(flags))
		note = "Its name is unknown.";
	else if (!switch_read(p->value, &on))
		note = "Expected \"enable\" or \"disable\".";
	else
		note = on ? flags[i].enabled : flags[i].disabled;
	if (note != NULL)
		cfg_warn(cfg, pos, "server.feature-flags: \"%s\" has no effect here. %s", p->key.p,
		    note);
}

bool
cfg_features_check(struct config *cfg, struct cfg_pos pos, const struct conf_map *m)
{
	uint64_t *v = &cfg->global.graceful_s;
	size_t i;

	for (i = 0; i < m->n; i++) {
		if (take_flag(cfg, &m->v[i]))
			continue;
		if (!text_eq(m->v[i].key, TEXT(GRACEFUL_KEY)))
			note_flag(cfg, pos, &m->v[i]);
		else if (text_u64(m->v[i].value, v) != 0 || *v > GRACEFUL_MAX_S)
			return (cfg_error(cfg, pos,
			    "server.feature-flags: \"" GRACEFUL_KEY
			    "\": expected 0 to %u seconds, got \"%s\"",
			    GRACEFUL_MAX_S, m->v[i].value.p));
		else
			cfg->global.graceful_set = true;
	}
	return (true);
}

/* ---------------------------------------------------------------- server.http-parseopts */

enum may { MAY_BOTH, MAY_ENABLE, MAY_DISABLE };

static const struct parseopt {
	const char *key;
	enum may may;
	unsigned bit;    /* of wire/urlpath.h; 0: no effect */
	const char *why; /* after "cannot be ...: " */
} parseopts[] = {
	{ "header-strict", MAY_ENABLE, 0, "malformed header fields are always refused; remove it" },
	{ "host-normalize", MAY_ENABLE, 0, "conditions compare one spelling of a host; remove it" },
	{ "host-strict", MAY_ENABLE, 0, "a malformed host is always refused; remove it" },
	{ "method-get-body", MAY_BOTH, 0, "" },
	{ "url-ctrls-reject", MAY_BOTH, URLPATH_NO_CONTROLS, "" },
	{ "url-invalid-utf8-reject", MAY_BOTH, URLPATH_UTF8, "" },
	{ "url-normalize", MAY_ENABLE, 0, "conditions compare one spelling of a path; remove it" },
	{ "url-normalize-required", MAY_ENABLE, 0,
	    "conditions compare one spelling of a path; remove it" },
	{ "url-normalize-unreserved", MAY_ENABLE, 0,
	    "conditions compare one spelling of a path; remove it" },
	{ "url-path-2f-decode", MAY_BOTH, URLPATH_SLASHES, "" },
	{ "url-path-2f-reject", MAY_ENABLE, 0,
	    "an encoded slash would hide a segment from conditions; write \"url-path-2f-decode\" "
	    "=> \"enable\" to accept it" },
	{ "url-path-backslash-trans", MAY_DISABLE, 0,
	    "a backslash in a path is always refused; remove it" },
	{ "url-path-dotseg-reject", MAY_BOTH, URLPATH_NO_STEPS, "" },
	{ "url-path-dotseg-remove", MAY_ENABLE, 0,
	    "a path may never leave its root; remove it, or write \"url-path-dotseg-reject\" => "
	    "\"enable\"" },
	{ "url-query-20-plus", MAY_DISABLE, 0,
	    "applications get the query as the client sent it; remove it" },
};

static const struct parseopt *
parseopt_find(struct text key)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(parseopts); i++)
		if (text_eq(key, text_of(parseopts[i].key)))
			return (&parseopts[i]);
	return (NULL);
}

static bool
unknown_opt(struct config *cfg, struct cfg_pos pos, const char *key)
{
	const char *names[G_N_ELEMENTS(parseopts) + 1] = { NULL }, *near;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(parseopts); i++)
		names[i] = parseopts[i].key;
	near = text_nearest(key, names);
	return (cfg_error(cfg, pos, "server.http-parseopts: unknown key \"%s\"; %s%s%s", key,
	    near != NULL ? "did you mean " : "remove it", near != NULL ? near : "",
	    near != NULL ? "?" : ""));
}

/* True for the pairs of which lighttpd accepts one only. */
static bool
is_contradiction(const struct parseopt *o, bool on, unsigned bits)
{
	return (
	    on && bits != 0 &&
	    ((strcmp(o->key, "url-path-2f-reject") == 0 && (bits & URLPATH_SLASHES) != 0) ||
		(strcmp(o->key, "url-path-dotseg-remove") == 0 && (bits & URLPATH_NO_STEPS) != 0)));
}

static bool
opt_read(struct config *cfg, struct cfg_pos pos, const struct conf_pair *p, unsigned *bits)
{
	const struct parseopt *o = parseopt_find(p->key);
	bool on;

	if (o == NULL)
		return (unknown_opt(cfg, pos, p->key.p));
	if (!switch_read(p->value, &on))
		return (cfg_error(cfg, pos,
		    "server.http-parseopts: \"%s\": expected \"enable\" or \"disable\", got \"%s\"",
		    p->key.p, p->value.p));
	if (o->may == (on ? MAY_DISABLE : MAY_ENABLE))
		return (cfg_error(cfg, pos, "server.http-parseopts: \"%s\" cannot be %s: %s",
		    p->key.p, on ? "enabled" : "disabled", o->why));
	*bits |= on ? o->bit : 0;
	return (true);
}

bool
cfg_parseopts_check(struct config *cfg, struct cfg_pos pos, const struct conf_map *m)
{
	unsigned bits = 0;
	size_t i;
	bool on;

	for (i = 0; i < m->n; i++)
		if (!opt_read(cfg, pos, &m->v[i], &bits))
			return (false);
	for (i = 0; i < m->n; i++)
		if (switch_read(m->v[i].value, &on) &&
		    is_contradiction(parseopt_find(m->v[i].key), on, bits))
			return (cfg_error(cfg, pos,
			    "server.http-parseopts: \"%s\" contradicts another key; remove one of "
			    "them",
			    m->v[i].key.p));
	cfg->global.url_checks = bits;
	return (true);
}
