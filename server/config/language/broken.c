/* server/config/language/broken.c -- see broken.h */
#include "server/config/language/broken.h"

#include "server/config/control_name.h"
#include "server/config/impl.h"

static const struct text control_key = TEXT("server.control-socket"),
			 pid_key = TEXT("server.pid-file");

static void
take_value(struct config *cfg, struct text key, const char **to)
{
	const struct cfg_entry *e = cfg_entry_find(cfg_block_root(cfg), key);

	if (e != NULL && e->value->kind == CFG_STR)
		*to = g_intern_string(e->value->str.p);
}

/* KEY = "value" */
static void
take_line(struct text line, struct text key, const char **to)
{
	struct text value;
	char *copy;

	line = text_trim(line);
	if (!text_starts(line, key))
		return;
	(void)text_take(&line, key.n);
	line = text_trim(line);
	if (text_starts(line, TEXT(":")))
		(void)text_take(&line, 1);
	if (!text_starts(line, TEXT("=")))
		return;
	(void)text_take(&line, 1);
	line = text_trim(line);
	if (!text_starts(line, TEXT("\"")))
		return;
	(void)text_take(&line, 1);
	if (line.n == 0 || memchr(line.p, '"', line.n) == NULL || !text_next(&line, '"', &value))
		return;
	copy = g_strndup(value.p, value.n);
	*to = g_intern_string(copy);
	g_free(copy);
}

static void
take_lines(struct text rest, struct conf *c)
{
	struct text line;

	while (text_next(&rest, '\n', &line)) {
		take_line(line, control_key, &c->control_socket);
		take_line(line, pid_key, &c->pid_file);
	}
}

void
broken_names(const char *file, struct broken_names *names)
{
	struct buf err, warn;
	struct cfg_source src;
	struct conf c = { 0 };
	struct config *cfg;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	cfg = cfg_new(&err, &warn);
	cfg->dir = g_path_get_dirname(file);
	if (cfg_source_file(cfg, (struct cfg_pos){ NULL, 1, 1 }, file, NULL, &src)) {
		(void)cfg_parse(cfg, &src);
		take_value(cfg, control_key, &c.control_socket);
		take_value(cfg, pid_key, &c.pid_file);
		if (c.control_socket == NULL && c.pid_file == NULL)
			take_lines(src.bytes, &c);
	}
	cfg_source_free(&src);
	names->control = control_name(&c);
	names->pid_file = c.pid_file;
	config_free(cfg);
	buf_free(&err);
	buf_free(&warn);
}
