/* accel-load/secure.c -- see secure.h */
#include "accel-load/secure.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include "accel-load/target.h"
#include "io/tls/client.h"

struct settings {
	size_t n;
	struct tls_command *commands;
	char (*names)[TLS_SETTING_MAX + 1];
};

static int
no_memory(void)
{
	load_message("no memory");
	return (EX_OSERR);
}

static int
settings_read(struct settings *s, const char *const *lines)
{
	const char *equals;
	size_t i;

	*s = (struct settings){ .n = 0 };
	while (lines != NULL && lines[s->n] != NULL)
		s->n++;
	s->commands = calloc(s->n + 1, sizeof(*s->commands));
	s->names = calloc(s->n + 1, sizeof(*s->names));
	if (s->commands == NULL || s->names == NULL)
		return (no_memory());
	for (i = 0; i < s->n; i++) {
		equals = strchr(lines[i], '=');
		memcpy(s->names[i], lines[i], (size_t)(equals - lines[i]));
		s->commands[i] = (struct tls_command){ s->names[i], equals + 1 };
	}
	return (0);
}

static void
settings_free(struct settings *s)
{
	free(s->commands);
	free(s->names);
}

static int
open_target(const struct load_conf *conf, const struct settings *s, const char *host,
    struct io_secure **out)
{
	const struct tls_client_settings set = { .host = host,
		.protocol = conf->http2 ? "h2" : NULL,
		.resumes = conf->tls_resume,
		.commands = s->commands,
		.ncommands = s->n };
	struct tls_fault fault;

	*out = tls_client_new(&set, &fault);
	if (*out != NULL)
		return (0);
	load_message("--tls-conf %s", fault.why);
	return (EX_USAGE);
}

int
secure_open(const struct load_conf *conf, const struct target *list, struct io_secure ***out)
{
	const struct target *t;
	struct settings s;
	int code = settings_read(&s, conf->tls_conf);

	*out = calloc(list->nr + 1, sizeof(**out));
	if (code == 0 && *out == NULL)
		code = no_memory();
	for (t = list; code == 0 && t != NULL; t = t->next)
		if (t->host != NULL)
			code = open_target(conf, &s, t->host, &(*out)[t->nr]);
	settings_free(&s);
	return (code);
}

void
secure_close(const struct target *list, struct io_secure ***all)
{
	for (; *all != NULL && list != NULL; list = list->next)
		tls_client_free((*all)[list->nr]);
	free(*all);
	*all = NULL;
}
