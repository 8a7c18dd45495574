/* server/manual.c -- makes manual pages of the tables of directives and options. */
#include "base/events.h"
#include "io/file.h"
#include "proxy-core/balance.h"
#include "server/config/config.h"
#include "server/ctl/ctl.h"
#include "server/options.h"
#include "wire/codec/codec.h"

/* ---------------------------------------------------------------- accel-server.conf(5) */

static const char language[] =
    "# NAME\n"
    "accel-server.conf - configuration of accel-server\n"
    "# EXAMPLE\n"
    "| server.document-root = \"/srv/www\"\n"
    "| server.port = 8080\n"
    "| $HTTP[\"url\"] =~ \"^/files/\" {\n"
    "|   proxy-core.protocol = \"fastcgi\"\n"
    "|   proxy-core.backends = ( \"unix:/run/stat-accel.sock\" )\n"
    "|   proxy-core.allow-x-sendfile = \"enable\"\n"
    "|   proxy-core.max-pool-size = 20\n"
    "| }\n"
    "# LANGUAGE\n"
    "= key = value\n"
    "Sets a key. A block sets a key at most once. A key without a dot is a variable, var.KEY.\n"
    "= key += value\n"
    "Adds to a key. In a conditional block it adds to a copy of the outer value.\n"
    "= key := value\n"
    "Replaces the value of a key, for example one of an included file.\n"
    "= \"text\", 80, ( \"a\", \"b\" ), ( \"k\" => \"v\" )\n"
    "Strings (only \\\" is an escape; they may span lines), numbers, lists, lists with keys. + "
    "adds values.\n"
    "= var.NAME, env.NAME, var.PID, var.CWD\n"
    "Variables, the environment, the process number, the working directory.\n"
    "= $FIELD[\"name\"] op \"value\" { ... } else $FIELD... { ... } else { ... }\n"
    "A block for requests for which the condition is true. op is == != =~ !~ (regular expression; "
    "\".\" is any byte), =^ (begins with) or =$ (ends with). Later blocks win, setting by "
    "setting.\n"
    "= include \"file\", include_shell \"command\"\n"
    "Reads a file, all files of a pattern, or the output of a command at this place. Paths are "
    "relative to the directory of the main file.\n"
    "= global { ... }\n"
    "Settings outside of all conditions.\n"
    "= # comment\n"
    "To the end of the line.\n"
    "# CONDITIONS\n"
    "= $SERVER[\"socket\"]\n"
    "Address and port the client connected to. == also listens there; \":80\" means every "
    "address.\n"
    "= $HTTP[\"host\"]\n"
    "Host of the request, in lower case, without a dot at its end and without the port 80. == "
    "ignores a port that is on one side only; regular expressions ignore case.\n"
    "= $HTTP[\"url\"]\n"
    "Path without the query, decoded once, without \".\", \"..\" and double slashes. Requests "
    "with %00, %2F or a backslash are refused. Case, dots and bytes above 127 are significant, as "
    "in file names.\n"
    "= $HTTP[\"querystring\"], $HTTP[\"query-string\"]\n"
    "The part behind the question mark. Escapes of letters, digits and -._~ are decoded, other "
    "escapes stay.\n"
    "= $HTTP[\"remoteip\"], $HTTP[\"remote-ip\"]\n"
    "Address of the client. == and != also take networks: \"10.0.0.0/8\".\n"
    "= $HTTP[\"scheme\"], $HTTP[\"request-method\"]\n"
    "\"http\"; GET, HEAD ...\n"
    "= $HTTP[\"referer\"], $HTTP[\"useragent\"], $HTTP[\"user-agent\"], $HTTP[\"cookie\"]\n"
    "Request headers. A missing header is empty. A header in several lines is joined with commas "
    "(cookies: semicolons).\n"
    "= $PHYSICAL[\"path\"], $PHYSICAL[\"existing-path\"]\n"
    "File name of the request, before and after the file was found.\n";

static const char other_servers[] =
    "# SETTINGS OF OTHER SERVERS\n"
    "A name that ends with a dot or a dash stands for all names that begin with it. Settings that "
    "protect, run something or change the bytes of a URL stop the start and a reload, unless "
    "their value is \"disable\". So does a name that is not in this manual.\n";

/* "number, default 80, 0 to 65535 connections" */
static void
facts(struct manpage *p, const struct directive *d)
{
	static const struct {
		const char *type, *words;
	} types[] = {
		{ "BOOL", "\"enable\" or \"disable\"" },
		{ "UINT", "Number" },
		{ "STR", "String" },
		{ "LIST", "List of strings" },
		{ "MAP", "List \"key\" => \"value\"" },
		{ "MAPS", "List \"key\" => ( \"a\" => \"b\" )" },
	};
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].type, d->type) == 0)
			buf_str(&b, types[i].words);
	if (strcmp(d->type, "UINT") == 0)
		buf_printf(&b, " from %s to %s%s%s", d->min, d->max, d->unit[0] != '\0' ? " " : "",
		    d->unit);
	else if (d->min[0] != '\0')
		buf_printf(&b, ", one of: %s", d->min);
	else if (strcmp(d->max, "text") == 0)
		buf_str(&b, ", printable text on one line");
	else if (strcmp(d->max, "name") == 0)
		buf_str(&b, ", names of header fields");
	else if (strcmp(d->max, "log-format") == 0)
		buf_str(&b, ", text with %-parts");
	else if (strcmp(d->max, "network") == 0)
		buf_str(&b, ", addresses and networks");
	else if (strcmp(d->max, "secret") == 0)
		buf_str(&b, " of at most 256 bytes, not shown");
	if (d->def[0] != '\0')
		buf_printf(&b, "; default %s", d->def);
	if (d->scope[0] == 'G')
		buf_str(&b, "; outside of conditions only");
	else if (d->scope[0] == 'S')
		buf_str(&b, "; outside of conditions, or in $SERVER[\"socket\"] only");
	else if (d->scope[0] == 'P')
		buf_str(&b, "; of the pool, so it stands in the block of proxy-core.backends or "
			    "around it");
	buf_str(&b, ".");
	buf_char(&b, '\0');
	manpage_text(p, b.p);
	buf_free(&b);
}

static void
choice(struct manpage *p, const char *name, const char *doc)
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "\"%s\": %s.", name, doc);
	buf_char(&b, '\0');
	manpage_text(p, b.p);
	buf_free(&b);
}

static void
backend(struct manpage *p, const struct file_backend *b)
{
	struct buf doc;

	buf_init(&doc, 0);
	buf_printf(&doc, "%s. Its loop waits for %s", b->doc,
	    b->waits != NULL ? b->waits : "nothing");
	buf_char(&doc, '\0');
	choice(p, b->name, doc.p);
	buf_free(&doc);
}

/* Values that are the names in another table. */
static void
choices(struct manpage *p, const struct directive *d)
{
	const struct file_backend *const *b;
	const struct proto *const *c;
	const struct balancer *l;

	if (strcmp(d->name, "server.network-backend") == 0)
		for (b = file_backends; *b != NULL; b++)
			backend(p, *b);
	if (strcmp(d->name, "proxy-core.protocol") == 0)
		for (c = protos; *c != NULL; c++)
			choice(p, (*c)->name, (*c)->doc);
	if (strcmp(d->name, "proxy-core.balancer") == 0)
		for (l = balancers; l->name != NULL; l++)
			if (l->now == NULL)
				choice(p, l->name, l->doc);
}

static bool
is_active(const struct directive *d)
{
	return (strcmp(d->type, "OLD") != 0 && strcmp(d->type, "NOP") != 0 &&
		strcmp(d->type, "BLOCK") != 0 && strcmp(d->type, "ALIAS") != 0);
}

static void
other(struct manpage *p, const struct directive *d)
{
	manpage_item(p, d->name);
	if (strcmp(d->type, "ALIAS") == 0)
		manpage_text(p, "Another name of the following.");
	if (strcmp(d->type, "BLOCK") == 0)
		manpage_text(p, "Becomes blocks of proxy-core.");
	else
		manpage_text(p,
		    strcmp(d->type, "ALIAS") == 0 ? d->def : "Accepted, without effect.");
	manpage_text(p, d->prose);
}

static void
refused(struct manpage *p)
{
	const struct refused *f;

	for (f = refused_settings; f->name != NULL; f++) {
		manpage_item(p, f->name);
		manpage_text(p,
		    f->kind == SETTING_REFUSED ? "Refused:" : "Accepted with a warning:");
		manpage_text(p, f->why);
		if (f->instead[0] != '\0')
			manpage_text(p, f->instead);
	}
}

static void
control(struct manpage *p, const struct control_row *c)
{
	const char *setting = control_setting(c->allowed);
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "%s: %s", c->name.p, control_value_name(c->value));
	buf_char(&b, '\0');
	manpage_item(p, b.p);
	manpage_text(p, c->doc);
	b.n = 0;
	buf_printf(&b, "Allowed by %s.", setting);
	buf_char(&b, '\0');
	if (setting != NULL)
		manpage_text(p, b.p);
	buf_free(&b);
}

static const char control_headers[] =
    "# HEADERS OF APPLICATIONS\n"
    "An application asks for these things in its reply. A client gets none of these headers, and "
    "an "
    "application gets none of them from a client. If a reply names several answers, the first one "
    "of this list is sent. A header that is not allowed is dropped and logged "
    "(ev=control.dropped). "
    "A number, time or name that is malformed is dropped, too. A file that may not be sent gets "
    "403, a missing one 404, a malformed list of pieces or URL 502.\n";

void
manual_conf(struct manpage *p)
{
	enum control c;

	const struct directive *d;

	manpage_title(p, "accel-server.conf", "5");
	manpage_marked(p, language);
	manpage_marked(p, "# SETTINGS\n");
	for (d = directives; d->name != NULL; d++) {
		if (!is_active(d))
			continue;
		manpage_item(p, d->name);
		manpage_text(p, d->prose);
		choices(p, d);
		facts(p, d);
	}
	manpage_marked(p, control_headers);
	for (c = 0; c < CONTROLS; c++)
		control(p, &controls[c]);
	manpage_marked(p, "# SETTINGS WITHOUT EFFECT\n");
	for (d = directives; d->name != NULL; d++)
		if (!is_active(d))
			other(p, d);
	manpage_marked(p, other_servers);
	refused(p);
	manpage_marked(p, "# SEE ALSO\naccel-server(8)\n");
}

/* ---------------------------------------------------------------- accel-server(8) */

static const char synopsis[] =
    "# NAME\n"
    "accel-server - a web server that does not wait for the disk\n"
    "# SYNOPSIS\n"
    "accel-server [-tpDvVh1] [-m DIR] [--daemon] -f FILE\n"
    "accel-server ctl reload|upgrade|reopen|drain|undrain|stop|quit|status -f FILE\n";

static const char operation[] =
    "# SIGNALS\n"
    "= TERM\n"
    "Stop now.\n"
    "= INT, QUIT\n"
    "Stop listening, finish the running replies, then stop. With server.drain-delay it serves on "
    "for that time first, and a second signal begins the stop. A further signal stops now.\n"
    "= USR1\n"
    "Reload the configuration without losing a connection.\n"
    "= USR2\n"
    "Execute the program file anew, by the name with which it was started. The new process reads "
    "the "
    "configuration and takes over the listening sockets, the pid file and the applications of "
    "bin-path. Then the old one accepts nothing more and ends with its last connection. If the new "
    "one "
    "fails, the old one serves on and logs why.\n"
    "= HUP\n"
    "Reopen the log files.\n"
    "# SANDBOX\n"
    "Before its first thread starts, the server confines itself for good. Landlock leaves it the "
    "directories that the configuration names, seccomp the system calls that it uses. A call that "
    "only an intruder makes kills it with SIGSYS, and the kernel logs the number of the call: "
    "journalctl -k -g type=1326. A helper process opens logs, the pid file, ports and the "
    "configuration. A reload that names a root out of reach is refused. See server.sandbox and "
    "server.sandbox-paths in accel-server.conf(5).\n"
    "# ENVIRONMENT\n"
    "= LISTEN_FDS, LISTEN_PID\n"
    "Listening sockets from descriptor 3 on, see sd_listen_fds(3). server.port and server.bind "
    "have no effect then.\n"
    "= JOURNAL_STREAM\n"
    "Set by systemd if standard error is its journal. Without server.errorlog each line of the "
    "error log is an entry with fields then: PRIORITY, ACCEL_EV, ACCEL_PATH and so on.\n"
    "= NOTIFY_SOCKET\n"
    "Socket of systemd for the states \"ready\", \"reloading\" and \"stopping\", with the number "
    "of connections, see sd_notify(3).\n"
    "= WATCHDOG_USEC, WATCHDOG_PID\n"
    "Systemd restarts the server if one of its loops stands still for so long, see "
    "sd_watchdog_enabled(3).\n"
    "# EXIT STATUS\n"
    "= 0\n"
    "Stopped by a signal, or a check found no error.\n"
    "= 64\n"
    "The command line is wrong.\n"
    "= 69\n"
    "The server cannot listen on an address.\n"
    "= 71\n"
    "The helper process was lost; a service manager starts the server again.\n"
    "= 73\n"
    "The error log or the pid file cannot be made.\n"
    "= 77\n"
    "The server cannot become the user or group of the configuration.\n"
    "= 78\n"
    "The configuration is wrong, or names a file that does not exist.\n";

void
manual_program(struct manpage *p)
{
	manpage_title(p, "accel-server", "8");
	manpage_marked(p, synopsis);
	options_manual(p, options_command.options);
	ctl_manual(p);
	manpage_marked(p, operation);
	events_manual(p, "server");
	manpage_marked(p, "# SEE ALSO\naccel-server.conf(5)\n");
}
