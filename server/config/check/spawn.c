/* server/config/check/spawn.c -- see spawn.h */
#include "server/config/check/spawn.h"

#include <signal.h>
#include <stdio.h>

static const struct conf_pair *
find(const struct conf_map *map, const char *key)
{
	size_t i;

	for (i = 0; i < map->n; i++)
		if (text_eq(map->v[i].key, text_of(key)))
			return (&map->v[i]);
	return (NULL);
}

/* The number of this key; `otherwise` if the key is absent; 0: not a number from 1 to max. */
static uint64_t
number(const struct conf_map *map, const char *key, uint64_t otherwise, uint64_t max)
{
	const struct conf_pair *p = find(map, key);
	uint64_t n;

	if (p == NULL)
		return (otherwise);
	return (text_u64(p->value, &n) == 0 && n <= max ? n : 0);
}

static void
put_environment(const struct conf_map *map, struct buf *b)
{
	struct text names, name;
	size_t i;

	for (i = 0; i < map->n; i++) {
		name = map->v[i].key;
		if (text_starts(name, TEXT("env."))) {
			text_take(&name, 4);
			buf_printf(b, "\tE%.*s=", (int)name.n, name.p);
			buf_text(b, map->v[i].value);
		} else if (text_eq(name, TEXT("copy-env"))) {
			buf_str(b, "\tC");
			for (names = map->v[i].value; text_next(&names, ' ', &name);)
				if (name.n != 0)
					buf_printf(b, "\tC%.*s", (int)name.n, name.p);
		}
	}
}

static bool
is_known(struct text key)
{
	return (text_eq(key, TEXT("command")) || text_eq(key, TEXT("backlog")) ||
		text_eq(key, TEXT("signal")) || text_eq(key, TEXT("copy-env")) ||
		(text_starts(key, TEXT("env.")) && key.n > 4 && memchr(key.p, '=', key.n) == NULL));
}

static const char *
fault_of(const struct conf_pair *p)
{
	const struct conf_pair *command = find(p->map, "command");
	size_t i;

	for (i = 0; i < p->map->n; i++)
		if (!is_known(p->map->v[i].key))
			return ("expected the keys command, backlog, signal, copy-env or env.NAME");
	if (command == NULL || command->value.n == 0 || command->value.p[0] != '/')
		return ("expected \"command\" => the absolute path of a program, with its "
			"arguments");
	if (number(p->map, "backlog", SPAWN_BACKLOG, SPAWN_BACKLOG_MAX) == 0)
		return ("expected a number from 1 to 65535 for \"backlog\"");
	if (number(p->map, "signal", SIGTERM, NSIG - 1) == 0)
		return ("expected the number of a signal for \"signal\"");
	return (NULL);
}

const char *
spawn_line(const struct conf_pair *p, char line[SPAWN_LINE_MAX])
{
	const char *fault = fault_of(p);
	struct buf b;

	line[0] = '\0';
	if (fault != NULL)
		return (fault);
	buf_init(&b, 0);
	buf_text(&b, p->key);
	buf_printf(&b, "\t%u\t%u\t",
	    (unsigned)number(p->map, "backlog", SPAWN_BACKLOG, SPAWN_BACKLOG_MAX),
	    (unsigned)number(p->map, "signal", SIGTERM, NSIG - 1));
	buf_text(&b, find(p->map, "command")->value);
	put_environment(p->map, &b);
	if (b.failed || b.n >= SPAWN_LINE_MAX)
		fault = "address, command and environment are longer than 1000 bytes together; "
			"start a script that sets the environment";
	else {
		memcpy(line, b.p, b.n);
		line[b.n] = '\0';
	}
	buf_free(&b);
	return (fault);
}

bool
spawn_parse(struct text line, struct spawn *s)
{
	struct text backlog, signal;
	uint64_t n, sig;

	if (!text_next(&line, '\t', &s->address) || !text_next(&line, '\t', &backlog) ||
	    !text_next(&line, '\t', &signal) || !text_next(&line, '\t', &s->command) ||
	    text_u64(backlog, &n) != 0 || n > SPAWN_BACKLOG_MAX || text_u64(signal, &sig) != 0 ||
	    sig == 0 || sig >= NSIG || s->command.n == 0 || s->command.p[0] != '/')
		return (false);
	s->backlog = (int)n;
	s->signal = (int)sig;
	s->rest = line;
	return (true);
}

bool
spawn_next(struct text *rest, char *kind, struct text *value)
{
	if (rest->n == 0 || !text_next(rest, '\t', value) || value->n == 0)
		return (false);
	*kind = value->p[0];
	text_take(value, 1);
	return (true);
}
