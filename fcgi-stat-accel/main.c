/* fcgi-stat-accel/main.c -- options, limits and signals; then threads and the loop. */

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "fcgi-stat-accel/listen.h"
#include "fcgi-stat-accel/manual.h"
#include "fcgi-stat-accel/serve.h"
#include "fcgi-stat-accel/touch.h"
#include "fcgi-stat-accel/work.h"

#define THREADS_DEFAULT	  20
#define THREADS_MAX	  1024
#define READAHEAD_DEFAULT (128 * 1024)
#define READAHEAD_MAX	  (1024 * 1024 * 1024)
#define CONNS_MAX	  65536
#define FDS_OF_A_THREAD	  3		/* its pair of sockets, and the file */
#define FDS_OF_OURS	  32

static struct {
	char	*threads, *readahead, *address, *header, *encode, *manual, **roots;
	gboolean allow_any, version;
	char   **rest;
} opt;

static gboolean
on_manual(const char *name, const char *page, void *data, GError **error)
{
	g_free(opt.manual);
	opt.manual = g_strdup(page != NULL ? page : "text");
	return (TRUE);
}

static const GOptionEntry entries[] = {
	{ "threads", 't', 0, G_OPTION_ARG_STRING, &opt.threads,
	    "Threads that touch files (else FCGI_STAT_THREADS, PHP_FCGI_CHILDREN, 20)", "N" },
	{ "listen", 'l', 0, G_OPTION_ARG_STRING, &opt.address,
	    "Listen here; without it on LISTEN_FDS, else on descriptor 0",
	    "unix:PATH|HOST:PORT" },
	{ "allow-any", 0, 0, G_OPTION_ARG_NONE, &opt.allow_any,
	    "Listen on a wildcard address without FCGI_WEB_SERVER_ADDRS", NULL },
	{ "root", 'r', 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.roots,
	    "Only files below DIR, no link may leave it; may be repeated", "DIR" },
	{ "header", 'H', 0, G_OPTION_ARG_STRING, &opt.header,
	    "Header that names the file (default X-LIGHTTPD-send-file)", "NAME" },
	{ "encode", 'e', 0, G_OPTION_ARG_STRING, &opt.encode,
	    "How the name stands in it (default percent)", "percent|raw" },
	{ "readahead", 'R', 0, G_OPTION_ARG_STRING, &opt.readahead,
	    "Bytes to read from the start of each file (default 131072)", "BYTES" },
	{ "manual", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (void *)on_manual,
	    "Print the manual page, as text or for man(1)", "text|roff" },
	{ "version", 'V', 0, G_OPTION_ARG_NONE, &opt.version, "Print the version", NULL },
	{ G_OPTION_REMAINING, 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, &opt.rest,
	    NULL, NULL },
	{ NULL }
};

static const char description[] =
    "A web server asks by FastCGI for SCRIPT_FILENAME (WARM_PATH overrides it; DOCUMENT_ROOT +\n"
    "SCRIPT_NAME + PATH_INFO stand in).  The file is opened and its start is read in a thread\n"
    "that may wait for the disk; the answer tells the server to send it, without a wait.\n"
    "\n"
    "    spawn-fcgi -s /run/stat-accel.sock -C 20 -- /usr/local/bin/fcgi-stat-accel --root /srv/www\n"
    "    fcgi-stat-accel --listen unix:/run/stat-accel.sock --threads 8\n"
    "\n"
    "TERM, INT and USR1 finish what is running, then end; a second signal ends at once.\n"
    "--manual tells the rest: environment, exit status, examples.\n";

static void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void
complain(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	g_printerr("fcgi-stat-accel: %s\n", text);
	g_free(text);
}

/* ---------------------------------------------------------------- options */

/* Digits only, between min and max. */
static bool
read_number(const char *text, guint64 min, guint64 max, guint64 *n)
{
	return (g_ascii_string_to_unsigned(text, 10, min, max, n, NULL));
}

/* A wrong value in the environment may have been meant for something else: say so and go on. */
static bool
threads_from(const char *variable, guint64 *n)
{
	const char *text = g_getenv(variable);

	if (text == NULL)
		return (false);
	if (read_number(text, 1, THREADS_MAX, n))
		return (true);
	complain("%s=\"%s\" is not a number from 1 to %d; ignored", variable, text, THREADS_MAX);
	return (false);
}

static bool
choose_threads(unsigned *threads)
{
	guint64 n = THREADS_DEFAULT;

	if (opt.threads != NULL && !read_number(opt.threads, 1, THREADS_MAX, &n)) {
		complain("--threads %s: a number from 1 to %d, please", opt.threads, THREADS_MAX);
		return (false);
	}
	if (opt.threads == NULL && !threads_from("FCGI_STAT_THREADS", &n))
		threads_from("PHP_FCGI_CHILDREN", &n);
	*threads = (unsigned)n;
	return (true);
}

static bool
choose_header(struct accel_conf *conf)
{
	conf->header = opt.header != NULL ? opt.header : "X-LIGHTTPD-send-file";
	conf->raw = opt.encode != NULL && strcmp(opt.encode, "raw") == 0;
	if (!accel_header_valid(conf->header)) {
		complain("--header \"%s\": not the name of a header", conf->header);
		return (false);
	}
	if (opt.encode != NULL && !conf->raw && strcmp(opt.encode, "percent") != 0) {
		complain("--encode %s: percent or raw, please", opt.encode);
		return (false);
	}
	return (true);
}

static bool
choose_readahead(size_t *readahead)
{
	guint64 n = READAHEAD_DEFAULT;

	if (opt.readahead != NULL && !read_number(opt.readahead, 0, READAHEAD_MAX, &n)) {
		complain("--readahead %s: bytes from 0 to %d, please", opt.readahead,
		    READAHEAD_MAX);
		return (false);
	}
	*readahead = n;
	return (true);
}

static int
parse_options(int *argc, char ***argv)
{
	GOptionContext *context = g_option_context_new("- touch files before a web server does");
	GError *error = NULL;
	int code = 0;

	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_description(context, description);
	if (!g_option_context_parse(context, argc, argv, &error)) {
		complain("%s (--help lists the options)", error->message);
		g_error_free(error);
		code = EX_USAGE;
	} else if (opt.rest != NULL) {
		complain("%s: no argument is expected (--help lists the options)", opt.rest[0]);
		code = EX_USAGE;
	}
	g_option_context_free(context);
	return (code);
}

static void
free_options(void)
{
	g_free(opt.threads);
	g_free(opt.readahead);
	g_free(opt.address);
	g_free(opt.header);
	g_free(opt.encode);
	g_free(opt.manual);
	g_strfreev(opt.roots);
	g_strfreev(opt.rest);
}

/* ---------------------------------------------------------------- what it needs to run */

static int
add_roots(struct touch *t)
{
	int err;

	for (char **dir = opt.roots; dir != NULL && *dir != NULL; dir++) {
		if ((*dir)[0] != '/') {
			complain("--root %s: an absolute path, please", *dir);
			return (EX_USAGE);
		}
		err = touch_add_root(t, *dir);
		if (err == -ENOSYS) {
			complain("--root needs openat2(2): Linux 5.6 or newer");
			return (EX_OSERR);
		}
		if (err != 0) {
			complain("--root %s: %s", *dir, g_strerror(-err));
			return (err == -EACCES || err == -EPERM ? EX_NOPERM : EX_CONFIG);
		}
	}
	return (0);
}

/* So many that a thread never finds the last descriptor taken by a connection. */
static unsigned
choose_max_conns(unsigned threads)
{
	const rlim_t ours = FDS_OF_OURS + (rlim_t)threads * FDS_OF_A_THREAD;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return (1);
	r.rlim_cur = MAX(r.rlim_cur, MIN(r.rlim_max, CONNS_MAX + ours));
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	return (r.rlim_cur > ours ? (unsigned)MIN(r.rlim_cur - ours, CONNS_MAX) : 1);
}

/* Blocked before there are threads, so that each inherits it and only the loop hears of them. */
static int
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);	/* there is no log to reopen */
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static int
open_listener(struct listener **listener)
{
	const struct listen_conf conf = {
		.address = opt.address,
		.peers = g_getenv("FCGI_WEB_SERVER_ADDRS"),
		.allow_any = opt.allow_any,
	};
	char *why = NULL;
	int code;

	code = listen_start(&conf, listener, &why);
	if (code != 0)
		complain("%s", why);
	g_free(why);
	return (code);
}

static int
serve(struct work_conf *conf, struct listener **listener)
{
	struct serve_conf sc = {
		.threads = conf->threads,
		.max_conns = choose_max_conns(conf->threads),
		.signal_fd = catch_signals(),
	};
	struct work *work;
	int err;

	if (sc.signal_fd < 0) {
		complain("signalfd: %s", g_strerror(errno));
		return (EX_OSERR);
	}
	err = work_start(conf, &work);
	if (err != 0) {
		complain("cannot start %u threads: %s", conf->threads, g_strerror(-err));
		return (EX_OSERR);
	}
	err = serve_run(&sc, listener, work);
	if (err == -EBUSY) {
		complain("ended while a thread was still waiting for a file");
		_exit(0);		/* it may wait for ever */
	}
	if (err != 0)
		complain("epoll: %s", g_strerror(-err));
	work_stop(&work);
	close(sc.signal_fd);
	return (err != 0 ? EX_OSERR : 0);
}

static int
run(struct touch *t, unsigned threads)
{
	struct work_conf conf = { .threads = threads, .touch = t };
	struct listener *listener = NULL;
	int code;

	if (!choose_header(&conf.accel))
		return (EX_USAGE);
	code = add_roots(t);
	if (code == 0)
		code = open_listener(&listener);
	if (code == 0)
		code = serve(&conf, &listener);
	listen_stop(&listener);
	return (code);
}

static int
configure_and_run(void)
{
	struct touch *t;
	unsigned threads;
	size_t readahead;
	int code;

	if (!choose_threads(&threads) || !choose_readahead(&readahead))
		return (EX_USAGE);
	touch_new(readahead, &t);
	code = run(t, threads);
	touch_free(&t);
	return (code);
}

static int
print_manual(void)
{
	struct buf page;
	int code = 0;

	buf_init(&page, 0);
	if (manual_print(opt.manual, entries, &page) == 0)
		fwrite(page.p, 1, page.n, stdout);
	else {
		complain("--manual=%s: text or roff, please", opt.manual);
		code = EX_USAGE;
	}
	buf_free(&page);
	return (code);
}

int
main(int argc, char **argv)
{
	int code = parse_options(&argc, &argv);

	if (code == 0 && opt.version)
		g_print("fcgi-stat-accel " STAT_ACCEL_VERSION "\n");
	else if (code == 0 && opt.manual != NULL)
		code = print_manual();
	else if (code == 0)
		code = configure_and_run();
	free_options();
	return (code);
}
