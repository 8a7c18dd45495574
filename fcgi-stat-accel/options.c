#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "fcgi-stat-accel/manual.h"
#include "fcgi-stat-accel/options_text.h"
#include "base/short_values.h"

static struct options_text opt;

/* --timing and --manual may stand alone. */
static gboolean
on_timing(const char *name, const char *value, void *data, GError **error)
{
	g_free(opt.timing);
	opt.timing = g_strdup(value != NULL ? value : "line");
	return (TRUE);
}

static gboolean
on_manual(const char *name, const char *page, void *data, GError **error)
{
	g_free(opt.manual);
	opt.manual = g_strdup(page != NULL ? page : "text");
	return (TRUE);
}

#define TEXT_OPTION(name, key, var, doc, arg) { name, key, 0, G_OPTION_ARG_STRING, &opt.var, doc, arg }
#define LIST_OPTION(name, key, var, doc, arg) { name, key, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.var, doc, arg }
#define FLAG_OPTION(name, key, var, doc)      { name, key, 0, G_OPTION_ARG_NONE, &opt.var, doc, NULL }
#define CALL_OPTION(name, call, doc, arg)     \
	{ name, 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (void *)call, doc, arg }

static const GOptionEntry entries[] = {
	TEXT_OPTION("mode", 0, mode, "Answer with the name of the file (default), or \"go on\" as an authorizer does",
	    "sendfile|auth"),
	TEXT_OPTION("for", 0, dialect, "How this server expects the name (default lighttpd); "
	    "--manual lists them", "SERVER"),
	TEXT_OPTION("header", 'H', header, "Header that names the file, instead of the server's", "NAME"),
	TEXT_OPTION("encode", 'e', encode, "How the name stands in it, instead of the server's way", "percent|raw"),
	LIST_OPTION("map", 'm', maps, "Files below FROM have URIs below TO; may be repeated", "FROM=TO"),
	TEXT_OPTION("path-from", 0, path_from, "Variables that name the file, first one set wins; DOCUMENT means "
	    "DOCUMENT_ROOT + SCRIPT_NAME + PATH_INFO (default WARM_PATH, SCRIPT_FILENAME, DOCUMENT)", "NAME,..."),
	TEXT_OPTION("warm", 'w', warm, "What is done before the answer (default read:16m); read:BYTES reads the start "
	    "of a file, or of the ranges that are asked for; nothing for HEAD", "stat|open|read:BYTES|read:all"),
	TEXT_OPTION("behind", 'b', behind, "Bytes read ahead after the answer, holes too (default 64m; none with open or stat)", "BYTES|all|none"),
	TEXT_OPTION("index", 'i', index, "Files that stand for their directory", "NAME,..."),
	TEXT_OPTION("siblings", 0, siblings, "Endings of files beside each file that are made warm with it", ".gz,.br,..."),
	TEXT_OPTION("expires", 0, expires, "Send Expires and Cache-Control for so many seconds", "SECONDS"),
	FLAG_OPTION("etag", 0, etag, "Send an ETag"),
	FLAG_OPTION("last-modified", 0, last_modified, "Send Last-Modified"),
	TEXT_OPTION("threads", 't', threads, "Threads that open files, and as many that read on "
	    "(else FCGI_STAT_THREADS, PHP_FCGI_CHILDREN, 20)", "N"),
	TEXT_OPTION("per-device", 0, per_device, "Threads of each kind that one device may keep busy "
	    "(default: all, while no other device needs one). All devices together get four times --threads: with many mounts "
	    "that may hang, set it low", "N"),
	TEXT_OPTION("queue", 'q', queue, "Look-ups that may wait for a device, one more is answered 503 (default 4096)", "N"),
	TEXT_OPTION("deadline", 'd', deadline, "Answer after so many ms in any case, 0 never (default 10000)", "MS"),
	TEXT_OPTION("late", 0, late, "What an authorizer says at the deadline (default go-on)", "go-on|503"),
	TEXT_OPTION("remember", 0, remember, "How long an answer holds for others, also that there is no such file "
	    "(default 1000)", "MS"),
	TEXT_OPTION("slow-ms", 0, slow, "Log files that take longer", "MS"),
	LIST_OPTION("root", 'r', roots, "Only files below DIR, no link may leave it; may be repeated. DIR is opened "
	    "at start: above a link that will point elsewhere after a deploy, name the directory that holds it", "DIR"),
	TEXT_OPTION("listen", 'l', address, "Listen here; without it on LISTEN_FDS, else on descriptor 0",
	    "unix:PATH|HOST:PORT"),
	FLAG_OPTION("allow-any", 0, allow_any, "Listen on a wildcard address without FCGI_WEB_SERVER_ADDRS"),
	TEXT_OPTION("peer-user", 0, peer_users, "Who may connect to a unix socket, beside root and the user it runs as",
	    "USER,..."),
	TEXT_OPTION("user", 'u', user, "Become this user after the socket is open; root's only. The socket is this user's, the log is "
	    "opened by this user", "NAME[:GROUP]"),
	FLAG_OPTION("no-sandbox", 0, no_sandbox, "Start without the sandbox: Landlock, which leaves the roots to read and the directory of the log "
	    "to write, and a filter of system calls"),
	TEXT_OPTION("status-path", 0, status_path, "A request with this SCRIPT_NAME gets the status; "
	    "?json and ?metrics are for programs", "URL"),
	TEXT_OPTION("ping-path", 0, ping_path, "A request with this SCRIPT_NAME gets \"pong\"", "URL"),
	TEXT_OPTION("log", 'L', log, "Write the log here; HUP opens it anew (default standard error)", "FILE"),
	CALL_OPTION("timing", on_timing, "Log where the time of each request went, for accel-graph", "json"),
	TEXT_OPTION("check", 0, check, "Name what blocks in CONFIG, a configuration of this server, and end",
	    "nginx|lighttpd|apache CONFIG"),
	CALL_OPTION("manual", on_manual, "Print the manual page, as text or for man(1)", "text|roff"),
	FLAG_OPTION("version", 'V', version, "Print the version"),
	{ G_OPTION_REMAINING, 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING_ARRAY, &opt.rest, NULL, NULL },
	{ NULL }
};

static const char description[] =
    "A web server asks by FastCGI for a file before it sends it.  The file is opened and read in a thread\n"
    "that may wait for the disk; then the answer names it in a header, or says \"go on\", and the server finds it\n"
    "in memory.\n"
    "\n"
    "    spawn-fcgi -s /run/stat-accel.sock -u www-data -U www-data -- /usr/local/bin/fcgi-stat-accel --root /srv/www --mode=auth\n"
    "    fcgi-stat-accel --listen unix:/run/stat-accel.sock --for=nginx --map /srv/www=/protected\n"
    "    fcgi-stat-accel --check nginx /etc/nginx/nginx.conf\n"
    "\n"
    "TERM, INT and USR1 finish what is running, then end; a second signal ends at once.\n"
    "--manual tells the rest: servers, environment, exit status, examples.\n";

void
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

/* ---------------------------------------------------------------- what ends at once */

static int
print_manual(void)
{
	struct buf page;
	int code = 0;

	buf_init(&page, 0);
	if (manual_print(opt.manual, entries, &page) == 0)
		fwrite(page.p, 1, page.n, stdout);
	else {
		complain("--manual: expected text or roff, got \"%s\"", opt.manual);
		code = EX_USAGE;
	}
	buf_free(&page);
	return (code);
}

/* accel-check lies beside this program, or where the shell finds it. */
static int
run_check(const char *config)
{
	char *self = g_file_read_link("/proc/self/exe", NULL);
	char *dir = g_path_get_dirname(self != NULL ? self : "");
	char *beside = g_build_filename(dir, "accel-check", NULL);

	execl(beside, "accel-check", opt.check, config, (char *)NULL);
	execlp("accel-check", "accel-check", opt.check, config, (char *)NULL);
	complain("accel-check: %s (it is looked for in %s and in PATH)", g_strerror(errno), dir);
	g_free(beside);
	g_free(dir);
	g_free(self);
	return (EX_UNAVAILABLE);
}

static int
check_configuration(void)
{
	if (opt.rest != NULL && opt.rest[1] == NULL)
		return (run_check(opt.rest[0]));
	complain("--check %s: expected one file of configuration", opt.check);
	return (EX_USAGE);
}

static int
parse(char **argv)
{
	char **words = short_values_apart(argv, entries);
	GOptionContext *context = g_option_context_new("- make files warm before a web server opens them");
	GError *error = NULL;
	int code = 0;

	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_description(context, description);
	if (!g_option_context_parse_strv(context, &words, &error)) {
		complain("%s (--help lists the options)", error->message);
		g_error_free(error);
		code = EX_USAGE;
	} else if (opt.rest != NULL && opt.check == NULL) {
		complain("%s: no argument is expected (--help lists the options)", opt.rest[0]);
		code = EX_USAGE;
	}
	g_option_context_free(context);
	g_strfreev(words);
	return (code);
}

int
options_read(char **argv, struct options *o)
{
	int code = parse(argv);

	memset(o, 0, sizeof(*o));
	if (code != 0)
		return (code);
	if (opt.version) {
		g_print("fcgi-stat-accel " STAT_ACCEL_VERSION "\n");
		return (0);
	}
	if (opt.manual != NULL)
		return (print_manual());
	if (opt.check != NULL)
		return (check_configuration());
	return (options_choose(&opt, o));
}

void
options_free(void)
{
	for (const GOptionEntry *e = entries; e->long_name != NULL; e++) {
		if (e->arg == G_OPTION_ARG_STRING)
			g_clear_pointer((char **)e->arg_data, g_free);
		else if (e->arg == G_OPTION_ARG_FILENAME_ARRAY || e->arg == G_OPTION_ARG_STRING_ARRAY)
			g_clear_pointer((char ***)e->arg_data, g_strfreev);
	}
	g_clear_pointer(&opt.timing, g_free);
	g_clear_pointer(&opt.manual, g_free);
	options_choose_free();
}
