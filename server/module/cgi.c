/* server/module/cgi.c -- cgi.assign and cgi.limits, checked at the start. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "server/config/config.h"
#include "server/handler/cgi.h"
#include "server/module/module.h"
#include "server/module/rules.h"

#define SECONDS_MAX 86400u

/* ---- cgi.assign */

static const void *
assign_key(const struct conf *c)
{
	return (c->cgi_assign.n != 0 ? c->cgi_assign.v : NULL);
}

/* NULL, or what is wrong with a rule. */
static const char *
fault_of(const struct conf_pair *p)
{
	if (p->key.n != 0 && p->key.p[p->key.n - 1] == '/')
		return ("no file ends with a slash; write $HTTP[\"url\"] =~ \"^/directory/\" { "
			"cgi.assign = ( \"\" => \"\" ) }");
	if (p->value.n != 0 && p->value.p[0] != '/')
		return ("expected the path of the interpreter, from / on, or \"\"");
	return (NULL);
}

static void *
assign_make(const struct conf *c, char *err, size_t errsize)
{
	static char checked;
	const char *why;
	size_t i;

	for (i = 0; i < c->cgi_assign.n; i++) {
		const struct conf_pair *p = &c->cgi_assign.v[i];

		why = fault_of(p);
		if (why == NULL)
			continue;
		snprintf(err, errsize, "\"%.*s\" => \"%.*s\": %s", (int)p->key.n, p->key.p,
		    (int)p->value.n, p->value.p, why);
		return (NULL);
	}
	return (&checked);
}

static void
assign_free(void *checked)
{
	(void)checked;
}

const struct rules_kind rules_cgi_assign = {
	.directive = "cgi.assign",
	.key = assign_key,
	.make = assign_make,
	.free = assign_free,
};

/* ---- cgi.limits */

static int
signal_of(struct text name)
{
	static const struct {
		const char *name;
		int number;
	} all[] = { { "SIGTERM", SIGTERM }, { "SIGHUP", SIGHUP }, { "SIGINT", SIGINT },
		{ "SIGQUIT", SIGQUIT }, { "SIGUSR1", SIGUSR1 }, { "SIGUSR2", SIGUSR2 },
		{ "SIGKILL", SIGKILL } };
	size_t i;

	for (i = 0; i < NELEM(all); i++)
		if (text_eq(name, text_of(all[i].name)) || text_eq(name, text_of(all[i].name + 3)))
			return (all[i].number);
	return (0);
}

/* NULL, or what was expected. */
static const char *
limit_set(struct cgi_limits *l, const struct conf_pair *p)
{
	bool read = text_eq(p->key, TEXT("read-timeout")),
	     write = text_eq(p->key, TEXT("write-timeout"));
	uint64_t n;

	if (text_eq(p->key, TEXT("tcp-fin-propagate"))) {
		l->signal = signal_of(p->value);
		l->fin = true;
		return (l->signal != 0 ? NULL : "expected a signal such as \"SIGTERM\"");
	}
	if (!read && !write)
		return ("expected \"read-timeout\", \"write-timeout\" or \"tcp-fin-propagate\"");
	if (text_u64(p->value, &n) != 0 || n > SECONDS_MAX)
		return ("expected seconds, from 0 to 86400");
	*(read ? &l->read_s : &l->write_s) = n;
	return (NULL);
}

static const void *
limits_key(const struct conf *c)
{
	return (c->cgi_limits.n != 0 ? c->cgi_limits.v : NULL);
}

static void *
limits_make(const struct conf *c, char *err, size_t errsize)
{
	struct cgi_limits *l = calloc(1, sizeof(*l));
	const char *why;
	size_t i;

	if (l == NULL)
		return (rules_no_memory(err, errsize));
	l->signal = SIGTERM;
	for (i = 0; i < c->cgi_limits.n; i++) {
		const struct conf_pair *p = &c->cgi_limits.v[i];

		why = limit_set(l, p);
		if (why == NULL)
			continue;
		snprintf(err, errsize, "\"%.*s\" => \"%.*s\": %s", (int)p->key.n, p->key.p,
		    (int)p->value.n, p->value.p, why);
		free(l);
		return (NULL);
	}
	return (l);
}

const struct rules_kind rules_cgi_limits = {
	.directive = "cgi.limits",
	.key = limits_key,
	.make = limits_make,
	.free = free,
};
