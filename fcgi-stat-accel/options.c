#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/address.h"
#include "base/option.h"
#include "fcgi-stat-accel/dialect.h"
#include "fcgi-stat-accel/options.h"
#include "fcgi-stat-accel/pin.h"
#include "files/warm/mode.h"
#include "wire/http1/headers.h"

#define THREADS_DEFAULT 20
#define THREADS_MAX     1024
#define QUEUE_MAX       (1 << 20)
#define MS_MAX          (24 * 3600 * 1000)
#define BYTES_MAX       (1ull << 50)
#define EXPIRES_MAX     (10 * 365 * 24 * 3600)
#define BEHIND_DEFAULT  (64ull << 20)
#define BEHIND_UNSET    (UINT64_MAX - 1)

enum encoding { ENCODING_OF_SERVER, ENCODING_PERCENT, ENCODING_RAW };

static struct given {
	struct options o;
	const struct dialect *dialect;
	const char *header; /* NULL: the dialect's */
	enum encoding encoding;
	unsigned late_503, manual; /* manual: 1 as text, 2 as roff */
	const char *user, *check;
	GArray *maps;   /* struct accel_map */
	GArray *caches; /* struct nginx_cache */
	bool no_sandbox, version;
} given;

#define AT(field) offsetof(struct given, field)

/* ---------------------------------------------------------------- values */

static bool
read_dialect(const char *text, void *at)
{
	const struct dialect *d = dialects;

	while (d->name != NULL && strcmp(d->name, text) != 0)
		d++;
	*(const struct dialect **)at = d;
	return (d->name != NULL);
}

static bool
is_header(const char *text, void *at)
{
	return (header_is_token(text_of(text)));
}

/* A line break in a header value would begin another header. */
static bool
has_no_control(const char *text, void *at)
{
	while (*text != '\0' && !g_ascii_iscntrl(*text))
		text++;
	return (*text == '\0');
}

/* Whole segments are replaced, and the URI is sent as it is. */
static bool
read_map(const char *text, void *at)
{
	const char *to = strchr(text, '=');
	struct accel_map m;
	char *from;

	if (to == NULL)
		return (false);
	from = g_strndup(text, (size_t)(to - text));
	m = (struct accel_map){ g_intern_string(from), g_intern_string(to + 1) };
	g_free(from);
	if (given.maps == NULL)
		given.maps = g_array_new(TRUE, TRUE, sizeof(m));
	g_array_append_val(given.maps, m);
	return (m.from[0] == '/' && has_no_control(m.to, NULL) && strchr(m.to, ' ') == NULL &&
		g_str_has_suffix(m.from, "/") == g_str_has_suffix(m.to, "/"));
}

static bool
read_cache(const char *text, void *at)
{
	struct nginx_cache c;

	if (!nginx_cache_read(text, &c))
		return (false);
	if (given.caches == NULL)
		given.caches = g_array_new(TRUE, TRUE, sizeof(c));
	g_array_append_val(given.caches, c);
	return (true);
}

static bool
read_warm(const char *text, void *at)
{
	return (warm_mode_parse_auto(text, at));
}

static bool
read_behind(const char *text, void *at)
{
	uint64_t *behind = at;

	if (strcmp(text, "all") == 0)
		*behind = WARM_ALL;
	else if (strcmp(text, "none") == 0)
		*behind = 0;
	else
		return (text_size(text_of(text), 0, BYTES_MAX, behind));
	return (true);
}

static bool
is_absolute(const char *text, void *at)
{
	return (text[0] == '/');
}

/* An empty variable of a script must not allow every user. */
static bool
is_not_empty(const char *text, void *at)
{
	return (text[0] != '\0');
}

/* ---------------------------------------------------------------- the table */

static const char servers[] =
#define D(name, ...) "|" name
#include "fcgi-stat-accel/dialects.def"
#undef D
    ;

static const struct option rows[] = {
	{ "mode", '\0', "sendfile|auth", OPTION_WORD, AT(o.accel.mode), .def = "sendfile",
	    .prose = "Answer with the name of the file, or \"go on\" as an authorizer does." },
	{ "for", '\0', &servers[1], OPTION_OWN, AT(dialect), .def = "lighttpd",
	    .read = read_dialect, .expected = "the name of a server (--manual lists them)",
	    .prose = "Server that gets the name of the file; --manual lists their headers." },
	{ "header", 'H', "NAME", OPTION_TEXT, AT(header), .read = is_header,
	    .expected = "the name of a header",
	    .prose = "Header with the name of the file, instead of the server's." },
	{ "encode", 'e', "percent|raw", OPTION_WORD, AT(encoding), ENCODING_PERCENT,
	    .prose = "Encoding of the name in the header, instead of the server's." },
	{ "map", 'm', "FROM=TO", OPTION_OWN, .read = read_map,
	    .expected = "/PATH=/URI, both with a slash at the end or both without",
	    .prose = "Files below FROM have URIs below TO; may be repeated." },
	{ "path-from", '\0', "NAME,...", OPTION_NAMES, AT(o.accel.path_from),
	    .prose = "Variables that may name the file; the first one that is set wins. DOCUMENT "
		     "means DOCUMENT_ROOT + SCRIPT_NAME + PATH_INFO, and REQUEST_URI means "
		     "DOCUMENT_ROOT + its decoded path (default WARM_PATH, SCRIPT_FILENAME, "
		     "DOCUMENT, REQUEST_URI)." },
	/* A server whose sendfile() waits stalls on bytes that are not in memory yet, so
	 * most files are read whole. */
	{ "warm", 'w', "stat|open|read:BYTES|read:all|auto[:threads]", OPTION_OWN, AT(o.warm),
	    .def = "read:16m", .read = read_warm, .expected = WARM_MODES_AUTO,
	    .prose = "Work before the answer. read:BYTES reads the start of a file, or of the "
		     "requested ranges; nothing for HEAD. auto is read:16m. "
		     "auto:threads is for a server that sends in threads (nginx with aio threads, "
		     "Apache): a file over 256 KiB is answered when its turn to be read comes, and "
		     "the first 16 MiB are read at full speed while the server sends." },
	{ "behind", 'b', "BYTES|all|none", OPTION_OWN, AT(o.warm.behind), .read = read_behind,
	    .expected = "BYTES (64m), all or none",
	    .prose = "Bytes read ahead after the answer, holes too (default 64m; none with open "
		     "or stat)." },
	{ "pin", '\0', "BYTES", OPTION_SIZE, AT(o.pin), 0, PIN_MAX, "8m",
	    .prose = "Lock answered files in memory for five seconds, at most BYTES of them, the "
		     "oldest first to go, so that the web server finds them when memory is short. "
		     "0: none." },
	{ "index", 'i', "NAME,...", OPTION_NAMES, AT(o.warm.index), .read = has_no_control,
	    .expected = "names of files without control characters, as \"index.html,index.htm\"",
	    .prose = "Names of the file that is sent for a directory." },
	{ "siblings", '\0', ".gz,.br,...", OPTION_NAMES, AT(o.warm.siblings),
	    .prose = "Endings of files that are made warm with each file." },
	{ "expires", '\0', "SECONDS", OPTION_NUMBER, AT(o.accel.expires), 0, EXPIRES_MAX,
	    .unit = "seconds", .prose = "Send Expires and Cache-Control for this many seconds." },
	{ "etag", '\0', NULL, OPTION_FLAG, AT(o.accel.etag), .prose = "Send an ETag." },
	{ "last-modified", '\0', NULL, OPTION_FLAG, AT(o.accel.last_modified),
	    .prose = "Send Last-Modified." },
	{ "threads", 't', "N", OPTION_NUMBER, AT(o.threads), 1, THREADS_MAX,
	    .prose = "Threads that open files, and as many threads that read ahead (else "
		     "FCGI_STAT_THREADS; else PHP_FCGI_CHILDREN if it is more than 20; else 20)." },
	{ "per-device", '\0', "N", OPTION_NUMBER, AT(o.per_device), 0, THREADS_MAX,
	    .prose = "Threads of each kind that one device may keep busy (default: all, while no "
		     "other device needs one). All devices together get four times --threads. Set "
		     "it low with many mounts that may hang." },
	{ "queue", 'q', "N", OPTION_NUMBER, AT(o.queue), 1, QUEUE_MAX, "4096",
	    .prose = "Look-ups that may wait for a device. Further ones get 503." },
	{ "deadline", 'd', "MS", OPTION_NUMBER, AT(o.warm.deadline_ms), 0, MS_MAX, "10000", "ms",
	    .prose = "Answer after this time at the latest; 0: no limit." },
	{ "late", '\0', "go-on|503", OPTION_WORD, AT(late_503), .def = "go-on",
	    .prose = "Answer of an authorizer at the deadline, or at once if the queue is full. A "
		     "request with WARM_LATE=503 gets 503." },
	{ "remember", '\0', "MS", OPTION_NUMBER, AT(o.warm.remember_ms), 0, MS_MAX, "1000", "ms",
	    .prose =
		"Time that an answer is valid for other requests, also for a missing file. Below "
		"1000 each answer of --mode=auth says that the web server may not keep it." },
	{ "slow-ms", '\0', "MS", OPTION_NUMBER, AT(o.warm.slow_ms), 0, MS_MAX, .unit = "ms",
	    .prose = "Log files that take longer." },
	{ "root", 'r', "DIR", OPTION_REPEAT, AT(o.warm.roots), .read = is_absolute,
	    .expected = "an absolute path",
	    .prose =
		"Only files below DIR, and no link out of it; may be repeated. DIR is opened at "
		"start. If a deploy changes a link, name the directory that holds the link. "
		"Without it, every file that the user of this process may read." },
	{ "nginx-cache", '\0', "[NAME=]PATH[:LEVELS]", OPTION_OWN, .read = read_cache,
	    .expected = "[NAME=]/PATH:LEVELS, with 1 to 3 levels of 1 or 2 as in levels=1:2",
	    .prose = "Directory and levels of a proxy_cache_path or fastcgi_cache_path; may be "
		     "repeated. WARM_CACHE_KEY names a file in it, see NGINX'S CACHE. PATH is a "
		     "root, too." },
	{ "listen", 'l', "unix:PATH|HOST:PORT", OPTION_TEXT, AT(o.listen),
	    .prose = "Socket to listen on; default: LISTEN_FDS, else descriptor 0." },
	{ "replace", '\0', NULL, OPTION_FLAG, AT(o.replace),
	    .prose = "When ready, take the place of the process that listens at unix:PATH; that "
		     "one gets USR1. No request is lost: an upgrade, or other options." },
	{ "allow-any", '\0', NULL, OPTION_FLAG, AT(o.allow_any),
	    .prose = "Serve other hosts at a wildcard address, too. Without it, and without "
		     "FCGI_WEB_SERVER_ADDRS, only peers on this host are served there." },
	{ "peer-user", '\0', "USER,...", OPTION_NAMES, AT(o.peer_users), .read = is_not_empty,
	    .expected = "names or numbers of users",
	    .prose = "Users that may connect to a unix socket, besides root and the user of this "
		     "process." },
	{ "user", 'u', "NAME[:GROUP]", OPTION_TEXT, AT(user),
	    .prose =
		"Become this user after the socket is open; for root only. The socket belongs "
		"to this user, and this user opens the log. Default: with --root none; without "
		"it the first that exists of www-data, nginx, http, apache, lighttpd, wwwrun, "
		"nobody." },
	{ "no-sandbox", '\0', NULL, OPTION_FLAG, AT(no_sandbox),
	    .prose = "Start without the sandbox. The sandbox is Landlock (roots: read; directory "
		     "of the log: write) and a filter of system calls." },
	{ "status-path", '\0', "URL", OPTION_TEXT, AT(o.status_path), .read = is_absolute,
	    .expected = "a path that begins with /",
	    .prose =
		"A request with this SCRIPT_NAME gets the status; programs use ?json "
		"(?json&buckets: with all counts of histograms) and ?metrics. accel-top shows it "
		"in a terminal." },
	{ "advice", '\0', "MS", OPTION_NUMBER, AT(o.advice_ms), 0, MS_MAX, "60000", "ms",
	    .prose = "Watch the questions this long before an advice about the set-up (see "
		     "ADVICE); 0: never." },
	{ "prove-order", '\0', NULL, OPTION_FLAG, AT(o.prove_order),
	    .prose = "If almost no question waits for a disk, drop a warm file from memory now and "
		     "then. The next question about it shows whether the server asks in time." },
	{ "ping-path", '\0', "URL", OPTION_TEXT, AT(o.ping_path), .read = is_absolute,
	    .expected = "a path that begins with /",
	    .prose = "A request with this SCRIPT_NAME gets \"pong\"." },
	{ "log", 'L', "FILE", OPTION_TEXT, AT(o.log),
	    .prose = "File for the log; HUP reopens it (default standard error, or syslog if that "
		     "is /dev/null, as under spawn-fcgi without -n)." },
	{ "log-format", '\0', "text|json", OPTION_WORD, AT(o.log_json), .def = "text",
	    .prose = "Lines of the log: key=value, or a JSON object with the same fields; lines of "
		     "--timing, too." },
	{ "timing", '\0', "line|json", OPTION_WORD, AT(o.timing), TIMING_LINE, .alone = "line",
	    .prose = "Log where the time of each request went, for accel-graph." },
	{ "check", '\0', "nginx|lighttpd|apache CONFIG", OPTION_TEXT, AT(check),
	    .prose = "Name the settings that block in CONFIG, a configuration of this server, and "
		     "exit." },
	{ "manual", '\0', "text|roff", OPTION_WORD, AT(manual), 1, .alone = "text",
	    .prose = "Print the manual page, as text or for man(1)." },
	{ "version", 'V', NULL, OPTION_FLAG, AT(version), .prose = "Print the version." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command accel_command = { "fcgi-stat-accel", "[OPTION]...",
	"A web server sends a FastCGI request before it sends a file.  A thread that may wait for\n"
	"the disk opens and reads the file.  The answer names the file in a header, or says\n"
	"\"go on\".  The server then finds the file in memory.\n"
	"\n"
	"    spawn-fcgi -s /run/stat-accel.sock -u www-data -U www-data -- \\\n"
	"        " STAT_ACCEL_BINDIR "/fcgi-stat-accel --root /srv/www --mode=auth\n"
	"    fcgi-stat-accel --listen unix:/run/stat-accel.sock --for=nginx \\\n"
	"        --map /srv/www=/protected\n"
	"    fcgi-stat-accel --check nginx /etc/nginx/nginx.conf\n"
	"\n"
	"TERM, INT and USR1 finish the running requests, then exit; a second signal exits at "
	"once.\n"
	"--manual has the rest: servers, environment, exit status, examples.\n",
	rows };

/* ---------------------------------------------------------------- --check, --manual */

static int
run_check(const char *config)
{
	char *program = options_program("accel-check");

	execlp(program, "accel-check", given.check, config, (char *)NULL);
	print_error("%s: %s; expected it beside fcgi-stat-accel or in PATH", program,
	    g_strerror(errno));
	g_free(program);
	return (EX_UNAVAILABLE);
}

static int
check_configuration(const char *const *files)
{
	if (files != NULL && files[1] == NULL)
		return (run_check(files[0]));
	return (print_error("--check %s: expected one configuration file", given.check));
}

/* ---------------------------------------------------------------- values together */

/* Another program may use the variable, too: a wrong value is reported and ignored. */
static bool
threads_from(const char *variable, unsigned *threads)
{
	const char *text = g_getenv(variable);
	uint64_t n;

	if (text == NULL)
		return (false);
	if (text_u64(text_of(text), &n) != 0 || n < 1 || n > THREADS_MAX) {
		print_error("%s: expected 1 to %d, got \"%s\"; ignored", variable, THREADS_MAX,
		    text);
		return (false);
	}
	*threads = (unsigned)n;
	return (true);
}

/* The caches are roots, too: --nginx-cache alone confines the process to them. */
static const char *const *
all_roots(const struct options *o)
{
	const struct nginx_cache *c = o->accel.caches;
	GPtrArray *all;

	if (c == NULL)
		return (o->warm.roots);
	all = g_ptr_array_new();
	for (const char *const *root = o->warm.roots; root != NULL && *root != NULL; root++)
		g_ptr_array_add(all, (gpointer)*root);
	for (; c->path != NULL; c++)
		g_ptr_array_add(all, (gpointer)c->path);
	g_ptr_array_add(all, NULL);
	g_free((gpointer)o->warm.roots);
	return ((const char *const *)g_ptr_array_free(all, FALSE));
}

static void
combine(struct options *o)
{
	const struct dialect *d = given.dialect;

	/* spawn-fcgi -C 1 and lighttpd's bin-path set PHP_FCGI_CHILDREN to 1, meaning processes:
	 * with one thread, each slow file would hold up all others. */
	if (o->threads == 0 && !threads_from("FCGI_STAT_THREADS", &o->threads)) {
		(void)threads_from("PHP_FCGI_CHILDREN", &o->threads);
		o->threads = MAX(o->threads, THREADS_DEFAULT);
	}
	o->sandbox = !given.no_sandbox;
	o->accel.header = given.header != NULL ? given.header : d->header;
	o->accel.utf8 = d->utf8;
	o->accel.status_307 = d->status_307;
	o->accel.raw =
	    given.encoding == ENCODING_OF_SERVER ? d->raw : given.encoding == ENCODING_RAW;
	o->accel.late_503 = given.late_503;
	o->accel.no_store = o->warm.remember_ms < 1000;
	o->accel.maps = given.maps != NULL ? (const struct accel_map *)given.maps->data : NULL;
	o->accel.caches =
	    given.caches != NULL ? (const struct nginx_cache *)given.caches->data : NULL;
	o->warm.roots = all_roots(o);
	if (o->warm.behind == BEHIND_UNSET)
		o->warm.behind = o->warm.how == WARM_READ ? BEHIND_DEFAULT : 0;
}

int
accel_options_read(char **argv, struct options *o)
{
	const char *const *rest;
	int code;

	given.o.accel.expires = -1;
	given.o.warm.behind = BEHIND_UNSET;
	code = options_parse(&accel_command, argv, &given, &rest);
	if (code != OPTIONS_RUN)
		return (code);
	if (given.version)
		return (puts("fcgi-stat-accel " STAT_ACCEL_VERSION) < 0 ? EX_IOERR : 0);
	if (given.manual != 0)
		return (options_print(accel_manual, given.manual == 2));
	if (given.check != NULL)
		return (check_configuration(rest));
	if (rest != NULL)
		return (print_error("expected no argument, got \"%s\" (--help lists the options)",
		    rest[0]));
	combine(&given.o);
	if (given.o.warm.behind != 0 && given.o.warm.how == WARM_STAT)
		return (
		    print_error("--behind needs --warm=open or read; --warm=stat opens no file"));
	if (given.o.replace &&
	    (given.o.listen == NULL || address_path(text_of(given.o.listen)).p == NULL))
		return (print_error("--replace needs --listen unix:PATH; a socket of systemd or "
				    "spawn-fcgi stays when the process is replaced"));
	*o = given.o;
	if (given.user == NULL && o->warm.roots == NULL && user_is_root())
		user_of_web_servers(&o->user);
	if (given.user == NULL || user_read(given.user, &o->user) == 0)
		return (OPTIONS_RUN);
	print_error("--user: expected NAME[:GROUP] of an existing user and group, got \"%s\"",
	    given.user);
	return (EX_NOUSER);
}
