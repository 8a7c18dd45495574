/* server/config/ticket_file.c -- see ticket_file.h */
#include "server/config/ticket_file.h"

#include <glib.h>
#include <string.h>

#include "base/buf.h"
#include "io/tls/stek.h"
#include "server/config/config.h"
#include "server/config/file_set.h"

struct ticket_file {
	bool is_set;
	struct tls_stek *key; /* until it is used; NULL: none */
	char *unusable;       /* why there is none; NULL: there is one */
	struct made_of of;
};

static struct file_set
read_file(const struct conf *c, struct sources *sources)
{
	struct file_set s = { 0 };

	file_set_add(&s, "ssl.stek-file", c->ssl_stek_file, true);
	file_set_read(&s, sources);
	return (s);
}

static struct tls_stek *
make(const struct file_set *files, const char **why)
{
	int err = files->v[0].is.err;

	*why = strerror(-err);
	return (err == 0 ? tls_stek_new(file_set_text(files, 0), why) : NULL);
}

struct ticket_file *
ticket_file_new(const struct config *config)
{
	struct ticket_file *t = g_new0(struct ticket_file, 1);
	struct file_set files = read_file(config_global(config), config_sources(config));
	const char *why;

	t->is_set = files.v[0].name != NULL;
	if (t->is_set) {
		t->key = make(&files, &why);
		t->unusable = t->key == NULL ? g_strdup(why) : NULL;
		made_of_note(&t->of, &files, t->key != NULL);
	}
	file_set_free(&files);
	return (t);
}

void
ticket_file_free(struct ticket_file *t)
{
	if (t == NULL)
		return;
	tls_stek_free(t->key);
	g_free(t->unusable);
	made_of_free(&t->of);
	g_free(t);
}

void
ticket_file_use(struct ticket_file *t)
{
	if (t->is_set)
		tls_stek_use(t->key);
	else
		tls_stek_stop();
	tls_stek_free(t->key);
	t->key = NULL;
}

void
ticket_file_add(const struct conf *c, void (*fn)(const char *file, void *arg), void *arg)
{
	if (conf_is_set(c->ssl_stek_file))
		fn(c->ssl_stek_file, arg);
}

void
ticket_file_renew(struct ticket_file *t, const struct config *config, struct sources *sources,
    certificates_news *news, void *arg)
{
	char err[512];
	const struct conf *c = config_global(config);
	const struct conf_refusal at = { .config = config,
		.c = c,
		.err = err,
		.errsize = sizeof(err) };
	struct file_set files = read_file(c, sources);
	const char *why;

	if (t->is_set && made_of_others(&t->of, &files)) {
		t->key = make(&files, &why);
		made_of_note(&t->of, &files, t->key != NULL);
		if (t->key == NULL)
			(void)config_refuse_value(&at, "ssl.stek-file", c->ssl_stek_file, why);
		news(arg, c->ssl_stek_file, t->key == NULL ? err : NULL, NULL);
		ticket_file_use(t);
	}
	file_set_free(&files);
}

bool
ticket_file_refused(const struct ticket_file *t)
{
	return (t->of.refused != NULL);
}

void
ticket_file_warn(const struct ticket_file *t, const struct config *config, struct buf *out)
{
	const struct conf *c = config_global(config);

	if (t->unusable == NULL)
		return;
	config_where(config, c, "ssl.stek-file", out);
	buf_printf(out, "\"%s\": clients do not resume their sessions with it: %s\n",
	    c->ssl_stek_file, t->unusable);
}
