/* server/config/certificates_renew.c -- certificates that are made again when their files change */
#include "io/tls/tls.h"
#include "server/config/certificates_impl.h"

struct renewing {
	struct certificates *p;
	struct conf_refusal at;
	struct sources *sources;
	certificates_news *news;
	void *arg;
};

static void
tell_staple(struct renewing *k, const struct certificate *one)
{
	const struct conf *c = k->at.c;

	if (one->unstapled != NULL)
		(void)config_refuse_value(&k->at, "ssl.stapling-file", c->ssl_stapling_file,
		    one->unstapled);
	k->news(k->arg, c->ssl_pemfile, NULL, one->unstapled != NULL ? k->at.err : NULL);
}

static void
renew_from(struct renewing *k, struct certificate *one, const struct file_set *files)
{
	struct io_secure *s = certificate_make(&k->at, files);

	made_of_note(&one->of, files, s != NULL);
	if (s == NULL) {
		k->news(k->arg, k->at.c->ssl_pemfile, k->at.err, NULL);
		return;
	}
	certificate_note_staple(one, s, files);
	tls_secure_renew(one->secure, s);
	tell_staple(k, one);
}

static bool
of_block(const struct conf *c, void *arg)
{
	struct renewing *k = arg;
	struct certificate *one = certificate_find(k->p, c);
	struct file_set files;

	if (one == NULL || one->turn == k->p->turn)
		return (true);
	one->turn = k->p->turn;
	k->at.c = c;
	files = certificate_files(c, k->sources);
	if (made_of_others(&one->of, &files))
		renew_from(k, one, &files);
	file_set_free(&files);
	return (true);
}

static bool
of_socket(const char *socket, const struct conf *c, void *arg)
{
	struct renewing *k = arg;

	return (config_each_at(k->at.config, socket, of_block, k));
}

void
certificates_renew(struct certificates *p, const struct config *config, struct sources *sources,
    certificates_news *news, void *arg)
{
	char err[512];
	struct renewing k = { .p = p,
		.at = { .config = config, .err = err, .errsize = sizeof(err) },
		.sources = sources,
		.news = news,
		.arg = arg };

	p->turn++;
	(void)config_each_secure(config, of_socket, &k);
}

struct certificates_state
certificates_state(const struct certificates *p)
{
	struct certificates_state now = { 0 };
	struct certificate *one;
	GHashTableIter at;
	uint64_t ends;

	g_hash_table_iter_init(&at, p->made);
	while (g_hash_table_iter_next(&at, NULL, (gpointer *)&one)) {
		now.n++;
		now.refused += one->of.refused != NULL;
		ends = tls_secure_ends_s(one->secure);
		if (now.ends_s == 0 || ends < now.ends_s)
			now.ends_s = ends;
	}
	return (now);
}
