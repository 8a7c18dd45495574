/* wire/codec/control.c -- see control.h */
#include "base/must.h"
#include "wire/codec/control.h"
#include "wire/http1/headers.h"
#include "wire/http1/http_date.h"

const struct control_row controls[CONTROLS] = {
#define C(id, name, value, asks, allowed, doc)                                            \
	[CONTROL_##id] = { { (name), sizeof(name) - 1 }, CONTROL_##value, CONTROL_##asks, \
		CONTROL_BY_##allowed, doc },
#define F(prefix)
#include "wire/codec/controls.def"
#undef C
#undef F
};

const char *
control_value_name(enum control_value kind)
{
	static const char *const names[] = { [CONTROL_PATH] = "PATH",
		[CONTROL_PIECES] = "PATH RANGE[, PATH RANGE...]",
		[CONTROL_URI] = "URI",
		[CONTROL_URL] = "http://HOST:PORT/PATH",
		[CONTROL_SWITCH] = "yes|no",
		[CONTROL_NUMBER] = "NUMBER",
		[CONTROL_TIME] = "SECONDS|@TIME",
		[CONTROL_NAME] = "NAME",
		[CONTROL_HOST] = "HOST",
		[CONTROL_BACKEND] = "BACKEND" };

	return (names[kind]);
}

const char *
control_setting(enum control_allowed allowed)
{
	static const char *const names[] = { [CONTROL_BY_SENDFILE] = "proxy-core.allow-x-sendfile",
		[CONTROL_BY_TEMPDIR] = "proxy-core.x-sendfile-tempdir",
		[CONTROL_BY_REPROXY] = "proxy-core.allow-x-reproxy",
		[CONTROL_BY_REWRITE] = "proxy-core.allow-x-rewrite",
		[CONTROL_BY_ALWAYS] = NULL };

	return (names[allowed]);
}

static const struct text families[] = {
#define C(...)
#define F(prefix) { (prefix), sizeof(prefix) - 1 },
#include "wire/codec/controls.def"
#undef C
#undef F
};

bool
header_is_control(struct text name)
{
	size_t i;

	if (name.n == 0 || (name.p[0] | 0x20) != 'x')
		return (false);
	for (i = 0; i < NELEM(families); i++)
		if (text_istarts(name, families[i]))
			return (true);
	return (false);
}

enum control
control_find(struct text name)
{
	enum control c;

	for (c = 0; c < CONTROLS; c++)
		if (text_ieq(controls[c].name, name))
			break;
	return (c);
}

static bool
is_number(struct text t)
{
	uint64_t n;

	return (text_u64(t, &n) == 0);
}

/* A date of HTTP has four digits for the year. */
static bool
is_time(struct text t)
{
	uint64_t n;

	if (t.n == 0 || t.p[0] != '@')
		return (is_number(t));
	text_take(&t, 1);
	return (text_u64(t, &n) == 0 && n <= HTTP_DATE_MAX);
}

static bool
is_visible(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (t.p[i] <= ' ' || t.p[i] >= 0x7f || t.p[i] == '#')
			return (false);
	return (true);
}

bool
control_url(struct text url, struct text *authority, struct text *target)
{
	static const struct text scheme = TEXT("http://");
	const char *slash;

	if (!text_istarts(url, scheme) || !is_visible(url))
		return (false);
	text_take(&url, scheme.n);
	slash = memchr(url.p, '/', url.n);
	*authority = (struct text){ url.p, slash != NULL ? (size_t)(slash - url.p) : url.n };
	text_take(&url, authority->n);
	*target = slash != NULL ? url : TEXT("/");
	return (authority->n != 0 && memchr(authority->p, '@', authority->n) == NULL &&
		memchr(authority->p, '?', authority->n) == NULL);
}

const char *
control_fault(enum control_value kind, struct text v)
{
	struct text authority, target;

	switch (kind) {
	case CONTROL_NUMBER: return (is_number(v) ? NULL : "expected a number");
	case CONTROL_TIME: return (is_time(v) ? NULL : "expected seconds, or @ and a time");
	case CONTROL_SWITCH:
		return (text_ieq(v, TEXT("yes")) || text_ieq(v, TEXT("no")) ? NULL
									    : "expected yes or no");
	case CONTROL_NAME:
		return (header_is_token(v) && v.n <= CONTROL_NAME_MAX
			    ? NULL
			    : "expected a name of at most 64 letters and digits");
	case CONTROL_PATH:
	case CONTROL_URI:
		return (v.n != 0 && v.p[0] == '/' ? NULL : "expected a path from the root");
	case CONTROL_URL:
		return (control_url(v, &authority, &target) ? NULL : "expected http://HOST/PATH");
	case CONTROL_HOST:
	case CONTROL_BACKEND:
	case CONTROL_PIECES: break;
	}
	return (v.n != 0 ? NULL : "is empty");
}
