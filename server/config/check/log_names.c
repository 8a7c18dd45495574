/* server/config/check/log_names.c -- see log_names.h */
#include "server/config/check/log_names.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "io/log/logfile.h"

static unsigned
facility_of(const char *name)
{
	static const struct {
		const char *name;
		unsigned code;
	} rows[] = { { "kern", 0 }, { "user", 1 }, { "mail", 2 }, { "daemon", 3 }, { "auth", 4 },
		{ "syslog", 5 }, { "lpr", 6 }, { "news", 7 }, { "uucp", 8 }, { "cron", 9 },
		{ "authpriv", 10 }, { "ftp", 11 } };
	size_t i;

	if (strncmp(name, "local", 5) == 0)
		return ((16 + (unsigned)atoi(name + 5)) << 3);
	for (i = 0; i < NELEM(rows) && strcmp(rows[i].name, name) != 0; i++)
		;
	must(i < NELEM(rows)); /* directives.def has the same words */
	return (rows[i].code << 3);
}

/* A few names for each configuration. */
static const char *
syslog_name(const struct conf *c, const char *severity)
{
	char name[1024];

	snprintf(name, sizeof(name), "%c%u,%s,%s", LOGFILE_SYSLOG, facility_of(c->syslog_facility),
	    severity, c->syslog_socket);
	return (g_intern_string(name));
}

const char *
log_name_access(const struct conf *c)
{
	char severity[24];

	if (!c->accesslog_syslog)
		return (c->accesslog);
	snprintf(severity, sizeof(severity), "%u", (unsigned)c->accesslog_level);
	return (syslog_name(c, severity));
}

const char *
log_name_error(const struct conf *c)
{
	return (c->errorlog_syslog ? syslog_name(c, "e") : c->errorlog);
}
