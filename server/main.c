/* server/main.c -- accel-server: command line in, exit status out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "io/file.h"
#include "io/io.h"
#include "io/std.h"
#include "server/config/config.h"
#include "server/helper/helper.h"
#include "server/manual.h"
#include "server/options.h"
#include "server/config/places.h"
#include "server/process/process.h"

static int
put_out(struct buf *out)
{
	bool ok = !out->failed && fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0;

	buf_free(out);
	return (ok ? 0 : EX_IOERR);
}

/* Started for a moment, for a loop of its own. */
static struct options_feature
backend_feature(const struct file_backend *b)
{
	const struct io_conf conf = {.backend = b, .stat_jobs = 1, .read_jobs = 1};
	const char *why;
	struct io *io;
	int err = 0;

	io = io_new(&conf, &err);
	why = io != NULL ? io_fallback_why(io) : "no descriptor or memory for a loop";
	io_free(io);
	return ((struct options_feature){b->name, why != NULL ? why : b->doc, why == NULL});
}

static int
print_features(void)
{
	struct options_feature f[16];
	struct buf out;
	size_t n;

	buf_init(&out, 0);
	buf_printf(&out, "accel-server/%s\n\n", STAT_ACCEL_VERSION);
	for (n = 0; n + 1 < NELEM(f) && file_backends[n] != NULL; n++)
		f[n] = backend_feature(file_backends[n]);
#ifndef HAVE_LIBURING
	f[n++] = (struct options_feature){"io-uring", "built without liburing: adaptive takes its place", false};
#endif
	options_features(&out, "Network backends", f, n);
	return (put_out(&out));
}

static int
print_manual(const char *page)
{
	struct buf out;

	buf_init(&out, 0);
	if (manual_print(page, &out) != 0) {
		fprintf(stderr, "accel-server: --manual=%s: no such page; text, roff, program or program-roff\n", page);
		buf_free(&out);
		return (EX_USAGE);
	}
	return (put_out(&out));
}

/* Takes the sources. */
static int
load(const struct options *opt, struct sources *sources, struct config **cp)
{
	struct buf err, warn;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	*cp = config_load(opt->file, sources, &err, &warn);
	fprintf(stderr, "%.*s%.*s", (int)warn.n, warn.n != 0 ? warn.p : "", (int)err.n, err.n != 0 ? err.p : "");
	buf_free(&err);
	buf_free(&warn);
	return (*cp != NULL ? 0 : EX_CONFIG);
}

static int
print_config(const struct config *config)
{
	struct buf out;

	buf_init(&out, 0);
	config_print(config, &out);
	return (put_out(&out));
}

/* -tt: what only shows when the values are used. */
static int
preflight(const struct config *config)
{
	const struct conf *c = config_global(config);
	char why[512];
	struct places *places = places_new(config, NULL, NULL, why, sizeof(why));
	const char *note;

	if (places == NULL) {
		fprintf(stderr, "%s\n", why);
		return (EX_CONFIG);
	}
	places_free(places);
	if (file_backend_by_name(c->network_backend, &note) == NULL) {
		fprintf(stderr, "server.network-backend \"%s\" is unknown; accel-server -V lists them\n", c->network_backend);
		return (EX_CONFIG);
	}
	return (0);
}

/* -t, -tt and -p: say what is thought of the file, and leave. */
static int
examine(const struct options *opt, struct config *config)
{
	int rc = opt->print ? print_config(config) : 0;

	if (rc == 0 && opt->test > 1)
		rc = preflight(config);
	if (rc == 0 && opt->test != 0)
		printf("Syntax OK\n");
	config_free(config);
	return (rc);
}

/* The same way as at a reload. */
static int
serve(const struct options *opt)
{
	struct config *config = NULL;
	struct sources *sources;
	struct helper *helper;
	char why[1024];
	int rc = helper_start(opt->file, &helper);

	if (rc != 0) {
		fprintf(stderr, "accel-server: cannot start the helper process: %s\n", strerror(-rc));
		return (EX_OSERR);
	}
	sources = helper_load(helper, why, sizeof(why));
	if (sources == NULL) {
		fprintf(stderr, "accel-server: %s was not read: %s\n", opt->file, why);
		rc = EX_CONFIG;
	} else
		rc = load(opt, sources, &config);
	if (rc == 0)
		rc = process_run(opt, config, helper);
	helper_free(helper);
	return (rc);
}

static int
with_config(const struct options *opt)
{
	struct config *config;
	int rc;

	if (opt->file == NULL) {
		fprintf(stderr, "accel-server: no configuration; use -f FILE (see --help)\n");
		return (EX_USAGE);
	}
	if (!opt->print && opt->test == 0 && !opt->one)
		return (serve(opt));
	rc = load(opt, NULL, &config);
	if (rc != 0)
		return (rc);
	return (opt->print || opt->test != 0 ? examine(opt, config) : process_run(opt, config, NULL));
}

int
main(int argc, char **argv)
{
	struct options opt;
	int rc;

	if (io_std_open() != 0)
		return (EX_OSERR);
	rc = options_parse(argc, argv, &opt);
	if (rc != 0)
		return (rc);
	if (opt.version)
		rc = printf("accel-server/%s\n", STAT_ACCEL_VERSION) > 0 ? 0 : EX_IOERR;
	else if (opt.features)
		rc = print_features();
	else if (opt.manual != NULL)
		rc = print_manual(opt.manual);
	else
		rc = with_config(&opt);
	options_free(&opt);
	return (rc);
}
