/* accel-load/urls.c -- see urls.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include "accel-load/urls.h"
#include "base/buf.h"
#include "base/random.h"

#define URLS_MAX  UINT32_MAX
#define LINE_ROOM (URL_MAX + 64) /* a status and blanks; a line that fills it is too long */

static struct url *
add(struct urls *list)
{
	size_t room = list->room != 0 ? 2 * list->room : 64;
	struct url *u;

	if (list->n == URLS_MAX)
		return (NULL);
	if (list->n == list->room) {
		u = realloc(list->url, room * sizeof(*u));
		if (u == NULL)
			return (NULL);
		list->url = u;
		list->room = room;
	}
	u = &list->url[list->n];
	*u = (struct url){ .target = NULL };
	return (u);
}

static int
add_path(struct urls *list, const struct target *target, struct text path)
{
	struct url *u = add(list);

	if (u == NULL || (u->path = strndup(path.p, path.n)) == NULL) {
		load_message("no memory for %zu URLs", list->n + 1);
		return (EX_OSERR);
	}
	u->path_len = (uint32_t)path.n;
	u->target = target;
	list->n++;
	return (0);
}

/* ---------------------------------------------------------------- one URL */

/* Where a URL is written, for messages: a word of the command line, or a line of a file. */
struct place {
	const char *file; /* NULL: the command line */
	unsigned long line;
};

static int
wrong(const struct place *at, struct text url, const char *fault)
{
	struct buf b;

	buf_init(&b, 0);
	buf_log_quoted(&b, url.n < 100 ? url : (struct text){ url.p, 100 });
	if (at->file == NULL)
		load_message("%s, got \"%.*s\"", fault, (int)b.n, b.p);
	else
		load_message("%s:%lu: %s, got \"%.*s\"", at->file, at->line, fault, (int)b.n, b.p);
	buf_free(&b);
	return (at->file == NULL ? EX_USAGE : EX_DATAERR);
}

/* *base: the target of URLs that are only a path; NULL: none yet. */
static int
add_url(struct urls *list, const struct load_conf *conf, struct text url, const struct place *at,
    const struct target **base)
{
	const struct target *target = *base;
	struct url_parts parts;
	const char *fault =
	    url.n <= URL_MAX ? url_split(url, &parts) : "expected a URL of at most 8192 bytes";
	int code;

	if (fault != NULL)
		return (wrong(at, url, fault));
	if (parts.authority.n == 0 && target == NULL && conf->unix_path != NULL)
		parts.authority = TEXT("localhost");
	if (parts.authority.n == 0 && target == NULL)
		return (wrong(at, url,
		    "expected a host: a whole URL, or http://HOST:PORT/ as argument"));
	if (parts.authority.n != 0) {
		code = target_get(&list->targets, conf, &parts, &target);
		if (code != 0)
			return (code);
	}
	if (*base == NULL)
		*base = target;
	return (add_path(list, target, parts.path));
}

/* ---------------------------------------------------------------- a list */

/* "URL STATUS": cuts the status off; 0: the line has none. */
static uint16_t
cut_status(struct text *line)
{
	uint64_t status;

	if (line->n < 5 || line->p[line->n - 4] != ' ' ||
	    text_u64((struct text){ line->p + line->n - 3, 3 }, &status) != 0)
		return (0);
	*line = text_trim((struct text){ line->p, line->n - 4 });
	return ((uint16_t)status);
}

/* The next line without its end; of a line that is too long, the first bytes.  False: no more
 * lines. */
static bool
read_line(FILE *f, char line[LINE_ROOM], struct text *t)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(f)) != EOF && c != '\n')
		if (n < LINE_ROOM)
			line[n++] = (char)c;
	*t = text_trim(text_trim_cr((struct text){ line, n }));
	return (c != EOF || n > 0);
}

int
urls_read(struct urls *list, const struct load_conf *conf, FILE *f, const struct target *base)
{
	struct place at = { conf->list, 0 };
	char line[LINE_ROOM];
	struct text t;
	uint16_t status;
	int code = 0;

	while (code == 0 && read_line(f, line, &t)) {
		at.line++;
		if (t.n == 0 || t.p[0] == '#')
			continue;
		status = cut_status(&t);
		code = add_url(list, conf, t, &at, &base);
		if (code == 0)
			list->url[list->n - 1].status = status;
	}
	if (code == 0 && ferror(f)) {
		load_message("%s: %s", conf->list, strerror(errno));
		code = EX_IOERR;
	}
	return (code);
}

static int
read_list(struct urls *list, const struct load_conf *conf, const struct target *base)
{
	FILE *f = strcmp(conf->list, "-") == 0 ? stdin : fopen(conf->list, "re");
	int code;

	if (f == NULL) {
		load_message("%s: %s", conf->list, strerror(errno));
		return (EX_NOINPUT);
	}
	code = urls_read(list, conf, f, base);
	if (f != stdin)
		fclose(f);
	if (code == 0 && list->n == 0) {
		load_message("%s: expected a URL or a path in each line, got none", conf->list);
		code = EX_DATAERR;
	}
	return (code);
}

/* With --urls, the URL of the command line only says where paths go. */
static int
read_words(struct urls *list, const struct load_conf *conf, const struct target **base)
{
	const struct place at = { NULL, 0 };
	const char *const *word = conf->words;
	int code = 0;

	for (; code == 0 && word != NULL && *word != NULL; word++)
		code = add_url(list, conf, text_of(*word), &at, base);
	while (conf->list != NULL && list->n > 0)
		free(list->url[--list->n].path);
	return (code);
}

static int
read_applications(struct urls *list, const struct load_conf *conf, const struct target **base)
{
	if (conf->words == NULL || conf->words[0] == NULL || conf->words[1] != NULL) {
		load_message("--fastcgi: expected one address, unix:SOCKET or HOST:PORT");
		return (EX_USAGE);
	}
	return (target_get_address(&list->targets, conf, conf->words[0], base));
}

int
urls_open(struct urls *list, const struct load_conf *conf)
{
	const struct target *base = NULL;
	int code;

	*list = (struct urls){ .n = 0 };
	code = (conf->fastcgi ? read_applications : read_words)(list, conf, &base);
	if (code == 0 && conf->list != NULL)
		return (read_list(list, conf, base));
	if (code == 0 && conf->fastcgi)
		code = add_path(list, base, TEXT("/"));
	return (code);
}

int
urls_open_beside(struct urls *beside, const struct load_conf *conf, struct urls *list)
{
	struct load_conf its = *conf;
	int code;

	*beside = (struct urls){ .targets = list->targets };
	its.list = conf->beside;
	code = conf->beside == NULL ? 0 : read_list(beside, &its, list->targets);
	list->targets = beside->targets;
	beside->targets = NULL;
	return (code);
}

void
urls_close(struct urls *list)
{
	while (list->n > 0)
		free(list->url[--list->n].path);
	free(list->url);
	target_list_free(&list->targets);
	*list = (struct urls){ .n = 0 };
}

/* ---------------------------------------------------------------- whose turn it is */

void
turn_begin(struct turn *t, const struct load_conf *conf, unsigned thread)
{
	*t = (struct turn){ conf->seed + thread * 0x632be59bd9b4e019ull, thread, conf->threads };
}

uint64_t
turn_random(struct turn *t)
{
	return (random_next(&t->random));
}

uint32_t
turn_next(struct turn *t, const struct load_conf *conf, size_t urls)
{
	size_t next;

	if (urls == 1)
		return (0);
	if (conf->random)
		return ((uint32_t)(turn_random(t) % urls));
	next = t->next % urls;
	t->next = next + t->step;
	return ((uint32_t)next);
}
