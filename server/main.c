/* server/main.c -- accel-server: command line in, exit status out. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/events.h"
#include "io/file.h"
#include "io/io.h"
#include "io/start/std_fds.h"
#include "server/config/config.h"
#include "server/ctl/ctl.h"
#include "server/helper/helper.h"
#include "server/options.h"
#include "server/process/process.h"
#include "server/helper/starter.h"

/* With a loop of its own, which ends with this function. */
static void
put_backend(struct buf *out, const struct file_backend *b)
{
	const struct io_conf conf = { .backend = b, .stat_jobs = 1, .read_jobs = 1 };
	const char *why;
	struct io *io;
	int err = 0;

	io = io_new(&conf, &err);
	why = io != NULL ? io_fallback_why(io) : "no descriptor or memory for a loop";
	io_free(io);
	if (why != NULL)
		buf_printf(out, "  - %-20s %s\n", b->name, why);
	else
		buf_printf(out, "  + %-20s %s\n    %-20s its loop waits for %s\n", b->name, b->doc,
		    "", b->waits != NULL ? b->waits : "nothing");
}

static int
print_features(void)
{
	const struct file_backend *const *b;
	struct buf out;

	buf_init(&out, 0);
	buf_str(&out, "accel-server/" STAT_ACCEL_VERSION "\n\nNetwork backends:\n");
	for (b = file_backends; *b != NULL; b++)
		put_backend(&out, *b);
#ifndef HAVE_LIBURING
	buf_printf(&out, "  - %-20s built without liburing: adaptive takes its place\n",
	    "io-uring");
#endif
	return (options_out(&out));
}

static int
print_markdown(unsigned manual)
{
	struct buf out;

	buf_init(&out, 0);
	if (manual == MANUAL_EVENTS)
		events_markdown(&out);
	else
		manual_lighttpd(&out);
	return (options_out(&out));
}

/* Takes the sources. */
static int
load(const struct options *opt, struct sources *sources, struct config **cp)
{
	struct buf err, warn;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	*cp = config_load(opt->file, sources, &err, &warn);
	fprintf(stderr, "%.*s%.*s", (int)warn.n, warn.n != 0 ? warn.p : "", (int)err.n,
	    err.n != 0 ? err.p : "");
	buf_free(&err);
	buf_free(&warn);
	return (*cp != NULL ? 0 : EX_CONFIG);
}

static int
print_config(const struct config *config, bool whole)
{
	struct buf out;

	buf_init(&out, 0);
	(whole ? config_print_whole : config_print)(config, &out);
	return (options_out(&out));
}

/* -t, -tt and -p: report on the file and exit. */
static int
examine(const struct options *opt, struct config *config)
{
	int rc = opt->print || opt->translate ? print_config(config, opt->translate) : 0;

	if (rc == 0 && opt->test != 0)
		rc = process_check(config);
	if (rc == 0 && opt->test != 0)
		printf("Syntax OK\n");
	config_free(config);
	return (rc);
}

/* Loads in the same way as a reload. */
static int
serve(const struct options *opt)
{
	struct config *config = NULL;
	struct sources *sources;
	struct helper *helper;
	char why[1024];
	int rc;

	if (opt->daemon && starter_socket() < 0 && (rc = starter_daemonize()) >= 0)
		return (rc);
	process_block_signals();
	rc = helper_start(opt->file, &helper);
	if (rc != 0) {
		fprintf(stderr, "accel-server: cannot start the helper process: %s\n",
		    strerror(-rc));
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
	if (!opt->print && !opt->translate && opt->test == 0 && !opt->one)
		return (serve(opt));
	rc = load(opt, NULL, &config);
	if (rc != 0)
		return (rc);
	return (opt->print || opt->translate || opt->test != 0 ? examine(opt, config)
							       : process_run(opt, config, NULL));
}

int
main(int argc, char **argv)
{
	struct options opt;
	int rc;

	if (io_open_std_fds() != 0)
		return (EX_OSERR);
	helper_program(argv);
	starter_open();
	if (argv[1] != NULL && strcmp(argv[1], "ctl") == 0)
		return (ctl_main(argv + 1));
	rc = options_read(argv, &opt);
	if (rc != OPTIONS_RUN)
		return (rc);
	if (opt.version)
		rc = printf("accel-server/%s\n", STAT_ACCEL_VERSION) > 0 ? 0 : EX_IOERR;
	else if (opt.features)
		rc = print_features();
	else if (opt.manual >= MANUAL_LIGHTTPD)
		rc = print_markdown(opt.manual);
	else if (opt.manual != MANUAL_NONE)
		rc = options_print(opt.manual < MANUAL_PROGRAM ? manual_conf : manual_program,
		    opt.manual == MANUAL_CONF_ROFF || opt.manual == MANUAL_PROGRAM_ROFF);
	else
		rc = with_config(&opt);
	return (rc);
}
