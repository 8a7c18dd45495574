/* server/manual.c -- what the tables of directives and options say, as manual pages. */
#include <errno.h>
#include "base/manpage.h"
#include "io/file.h"
#include "server/config/config.h"
#include "server/manual.h"
#include "server/options.h"
#include "wire/codec.h"

/* ---------------------------------------------------------------- accel-server.conf(5) */

static const char *const block_of_2007[] = {
	"server.document-root = \"/srv/www\"",
	"server.port = 8080",
	"$HTTP[\"url\"] =~ \"^/files/\" {",
	"  proxy-core.protocol = \"fastcgi\"",
	"  proxy-core.backends = ( \"unix:/run/stat-accel.sock\" )",
	"  proxy-core.allow-x-sendfile = \"enable\"",
	"  proxy-core.max-pool-size = 20",
	"}",
	NULL,
};

static const struct {
	const char *term, *prose;
} language[] = {
	{"key = value", "Sets a key. A key is set once in a block; a key without a dot is a variable, var.KEY."},
	{"key += value", "Adds to a key. Inside of a conditional block it adds to a copy of the outer value."},
	{"key := value", "Replaces a value that was set before, in an included file for example."},
	{"\"text\", 80, ( \"a\", \"b\" ), ( \"k\" => \"v\" )", "Strings (only \\\" is an escape; they may span lines), "
	    "numbers, lists, lists with keys. Values are added with +."},
	{"var.NAME, env.NAME, var.PID, var.CWD", "Variables, the environment, the process number, the working "
	    "directory."},
	{"$FIELD[\"name\"] op \"value\" { ... } else $FIELD... { ... } else { ... }", "A block for requests for which "
	    "the condition holds. op is == != =~ !~ (regular expression; \".\" is any byte), =^ (begins with) or =$ (ends with). Later "
	    "blocks win, setting by setting."},
	{"include \"file\", include_shell \"command\"", "Reads a file (or all that match a pattern), or what a command "
	    "prints, as if it stood there. Paths are relative to the directory of the main file."},
	{"global { ... }", "Lines that count outside of every condition."},
	{"# comment", "To the end of the line."},
};

static const struct {
	const char *term, *prose;
} conditions[] = {
	{"$SERVER[\"socket\"]", "Address and port the client connected to. == also listens there; \":80\" stands for "
	    "every address."},
	{"$HTTP[\"host\"]", "Host of the request, in lower case, without a dot at its end and without the port 80. == ignores a port that stands on "
	    "one side only; regular expressions ignore case."},
	{"$HTTP[\"url\"]", "Path without the query, decoded once, without \".\", \"..\" and double slashes. A %00, a %2F and a backslash are refused. "
	    "Case, dots and bytes above 127 count as they are, as in names of files."},
	{"$HTTP[\"querystring\"], $HTTP[\"query-string\"]", "What follows the question mark. Escapes of letters, digits and -._~ are decoded, the others stay."},
	{"$HTTP[\"remoteip\"], $HTTP[\"remote-ip\"]", "Address of the client. == and != take networks: \"10.0.0.0/8\"."},
	{"$HTTP[\"scheme\"], $HTTP[\"request-method\"]", "\"http\"; GET, HEAD ..."},
	{"$HTTP[\"referer\"], $HTTP[\"useragent\"], $HTTP[\"user-agent\"], $HTTP[\"cookie\"]", "Request headers; one "
	    "that was not sent is empty, one that came in several lines is joined with commas (cookies: semicolons)."},
	{"$PHYSICAL[\"path\"], $PHYSICAL[\"existing-path\"]", "File name of the request, before and after it was found "
	    "to exist."},
};

/* "number, default 80, 0 to 65535 connections" */
static void
facts(struct manpage *p, const struct directive *d)
{
	static const struct {
		const char *type, *words;
	} types[] = {
		{"BOOL", "\"enable\" or \"disable\""}, {"UINT", "Number"}, {"STR", "String"},
		{"LIST", "List of strings"}, {"MAP", "List \"key\" => \"value\""},
		{"MAPS", "List \"key\" => ( \"a\" => \"b\" )"},
	};
	struct buf b;
	size_t i;

	buf_init(&b, 0);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].type, d->type) == 0)
			buf_str(&b, types[i].words);
	if (strcmp(d->type, "UINT") == 0)
		buf_printf(&b, " from %s to %s%s%s", d->min, d->max, d->unit[0] != '\0' ? " " : "", d->unit);
	else if (d->min[0] != '\0')
		buf_printf(&b, ", one of: %s", d->min);
	else if (strcmp(d->max, "text") == 0)
		buf_str(&b, ", printable text on one line");
	if (d->def[0] != '\0')
		buf_printf(&b, "; default %s", d->def);
	if (d->scope[0] == 'G')
		buf_str(&b, "; outside of conditions only");
	buf_str(&b, ".");
	buf_char(&b, '\0');
	manpage_said(p, b.p);
	buf_free(&b);
}

static void
choice(struct manpage *p, const char *name, const char *doc)
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "\"%s\": %s.", name, doc);
	buf_char(&b, '\0');
	manpage_said(p, b.p);
	buf_free(&b);
}

/* Values that are the names of another table. */
static void
choices(struct manpage *p, const struct directive *d)
{
	const struct file_backend *const *b;
	const struct proto *const *c;

	if (strcmp(d->name, "server.network-backend") == 0)
		for (b = file_backends; *b != NULL; b++)
			choice(p, (*b)->name, (*b)->doc);
	if (strcmp(d->name, "proxy-core.protocol") == 0)
		for (c = protos; *c != NULL; c++)
			choice(p, (*c)->name, (*c)->doc);
}

static bool
is_active(const struct directive *d)
{
	return (strcmp(d->type, "OLD") != 0 && strcmp(d->type, "NOP") != 0 &&
	    strcmp(d->type, "ALIAS") != 0);
}

static void
other(struct manpage *p, const struct directive *d)
{
	manpage_item(p, d->name);
	if (strcmp(d->type, "ALIAS") == 0)
		manpage_said(p, "Another name of the following.");
	manpage_said(p, strcmp(d->type, "ALIAS") == 0 ? d->def : "Accepted, without effect.");
	manpage_said(p, d->prose);
}

static void
foreign(struct manpage *p)
{
	const struct foreign *f;

	for (f = foreigns; f->name != NULL; f++) {
		manpage_item(p, f->name);
		manpage_said(p, f->kind == FOREIGN_REFUSED ? "Refused:" : "Accepted with a warning:");
		manpage_said(p, f->why);
		if (f->instead[0] != '\0')
			manpage_said(p, f->instead);
	}
}

static void
page_conf(struct manpage *p)
{
	const struct directive *d;
	size_t i;

	manpage_title(p, "accel-server.conf", "5");
	manpage_heading(p, "NAME");
	manpage_para(p, "accel-server.conf - configuration of accel-server");
	manpage_heading(p, "EXAMPLE");
	manpage_example(p, block_of_2007);
	manpage_heading(p, "LANGUAGE");
	for (i = 0; i < sizeof(language) / sizeof(language[0]); i++) {
		manpage_item(p, language[i].term);
		manpage_said(p, language[i].prose);
	}
	manpage_heading(p, "CONDITIONS");
	for (i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		manpage_item(p, conditions[i].term);
		manpage_said(p, conditions[i].prose);
	}
	manpage_heading(p, "SETTINGS");
	for (d = directives; d->name != NULL; d++) {
		if (!is_active(d))
			continue;
		manpage_item(p, d->name);
		manpage_said(p, d->prose);
		choices(p, d);
		facts(p, d);
	}
	manpage_heading(p, "SETTINGS KNOWN FROM ELSEWHERE");
	for (d = directives; d->name != NULL; d++)
		if (!is_active(d))
			other(p, d);
	manpage_heading(p, "SETTINGS OF OTHER SERVERS");
	manpage_para(p, "A name that ends with a dot or a dash stands for all that begin with it. Those that protect, run something or "
	    "change which bytes a URL gives stop the start and a reload, unless their value is \"disable\". So does a name that "
	    "stands nowhere in this manual.");
	foreign(p);
	manpage_heading(p, "SEE ALSO");
	manpage_para(p, "accel-server(8)");
}

/* ---------------------------------------------------------------- accel-server(8) */

static const struct {
	const char *term, *prose;
} signals[] = {
	{"TERM", "Stop now."},
	{"INT, QUIT", "Stop listening, finish the running replies, then stop; a second one stops now."},
	{"USR1", "Load the configuration anew without losing a connection."},
	{"HUP", "Open the log files anew."},
};

static const struct {
	const char *term, *prose;
} statuses[] = {
	{"0", "Stopped as asked, or nothing was wrong."},
	{"64", "The command line was not understood."},
	{"69", "An address could not be listened on."},
	{"73", "The error log or the pid file could not be made."},
	{"77", "The user or group of the configuration could not be taken on."},
	{"78", "The configuration was not understood, or names what is not there."},
};

static void
option(struct manpage *p, const struct options_doc *d)
{
	struct buf b;

	buf_init(&b, 0);
	if (d->letter != '\0')
		buf_printf(&b, "-%c%s%s, ", d->letter, d->arg != NULL ? " " : "", d->arg != NULL ? d->arg : "");
	buf_printf(&b, "--%s%s%s", d->name, d->arg != NULL ? "=" : "", d->arg != NULL ? d->arg : "");
	buf_char(&b, '\0');
	manpage_item(p, b.p);
	manpage_said(p, d->prose);
	buf_free(&b);
}

static void
page_program(struct manpage *p)
{
	const struct options_doc *d;
	size_t i;

	manpage_title(p, "accel-server", "8");
	manpage_heading(p, "NAME");
	manpage_para(p, "accel-server - a web server that does not wait for the disk");
	manpage_heading(p, "SYNOPSIS");
	manpage_para(p, "accel-server [-tpDvVh1] [-m DIR] -f FILE");
	manpage_heading(p, "OPTIONS");
	for (d = options_docs; d->name != NULL; d++)
		option(p, d);
	manpage_heading(p, "SIGNALS");
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		manpage_item(p, signals[i].term);
		manpage_said(p, signals[i].prose);
	}
	manpage_heading(p, "SANDBOX");
	manpage_para(p, "Before its first thread starts, the server confines itself for good: Landlock leaves it the directories that the configuration "
	    "names, seccomp the system calls that it makes. A call that only an intruder makes kills it with SIGSYS, and the kernel logs the number of the "
	    "call: journalctl -k -g type=1326. Logs, the pid file, ports and the configuration are opened by a helper process. "
	    "A reload that names a root out of reach is refused. See server.sandbox and server.sandbox-paths in accel-server.conf(5).");
	manpage_heading(p, "EXIT STATUS");
	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		manpage_item(p, statuses[i].term);
		manpage_said(p, statuses[i].prose);
	}
	manpage_heading(p, "SEE ALSO");
	manpage_para(p, "accel-server.conf(5)");
}

int
manual_print(const char *page, struct buf *out)
{
	struct manpage p = {.out = out, .roff = strcmp(page, "roff") == 0 || strcmp(page, "program-roff") == 0};

	if (strcmp(page, "text") == 0 || strcmp(page, "roff") == 0)
		page_conf(&p);
	else if (strcmp(page, "program") == 0 || strcmp(page, "program-roff") == 0)
		page_program(&p);
	else
		return (-EINVAL);
	return (0);
}
