/* server/ctl/ctl.c -- see ctl.h */
#include "server/ctl/ctl.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "server/config/config.h"
#include "server/config/control_name.h"
#include "server/ctl/impl.h"

struct ctl_options {
	const char *file, *socket;
	unsigned pid; /* 0: not given */
	bool json;
};

#define AT(field) offsetof(struct ctl_options, field)

static const struct option rows[] = {
	{ "config", 'f', "FILE", OPTION_TEXT, AT(file),
	    .prose =
		"The configuration of the server: it names the control socket and the pid file." },
	{ "pid", '\0', "N", OPTION_NUMBER, AT(pid), 1, 4194304,
	    .prose = "Send a signal to this process instead. Its outcome is in the error log." },
	{ "socket", '\0', "PATH", OPTION_TEXT, AT(socket),
	    .prose = "The control socket, for a server whose configuration does not load any more. "
		     "Beside --config it is used only then, so the server itself refuses a reload: "
		     "its log and its metrics have it." },
	{ "json", '\0', NULL, OPTION_FLAG, AT(json), .prose = "status: print one JSON object." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command ctl_command = { "accel-server ctl",
	"reload|upgrade|stop|quit|status [--json] [-f FILE] [--pid=N | --socket=PATH]",
	"Commands:\n"
	"  reload   read the configuration again\n"
	"  upgrade  execute the program file anew; it takes over without losing a connection\n"
	"  stop     stop now\n"
	"  quit     stop after the running replies\n"
	"  status   print what the server does\n"
	"\n"
	"Waits for the outcome and prints it.\n",
	rows };

static const char *const words[CTL_VERBS] = {
	[CTL_RELOAD] = "reload",
	[CTL_UPGRADE] = "upgrade",
	[CTL_STOP] = "stop",
	[CTL_QUIT] = "quit",
	[CTL_STATUS] = "status",
};

static enum ctl_verb
verb_of(const char *word)
{
	enum ctl_verb v;

	for (v = 0; v < CTL_VERBS && (word == NULL || strcmp(words[v], word) != 0); v++)
		;
	return (v);
}

/* A configuration that does not load is the answer to a reload or an upgrade, too.  Quiet: the
 * server is asked for it. */
static struct config *
load(const char *file, enum ctl_verb verb, bool quiet)
{
	struct config *config;
	struct buf err, warn;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	config = config_load(file, NULL, &err, &warn);
	if (config == NULL && !quiet)
		fprintf(stderr, "%.*saccel-server ctl: %s\n", (int)err.n, err.n != 0 ? err.p : "",
		    verb == CTL_RELOAD || verb == CTL_UPGRADE
			? "nothing was done; the running server goes on as it is"
			: "the control socket is unknown: use --socket=PATH or --pid=N");
	buf_free(&err);
	buf_free(&warn);
	return (config);
}

static int
by_socket(const struct ctl_options *o, enum ctl_verb verb)
{
	struct buf name;
	int rc;

	buf_init(&name, 0);
	buf_printf(&name, "unix:%s", o->socket);
	buf_char(&name, '\0');
	rc = ctl_ask(name.p, verb, words[verb], o->json);
	buf_free(&name);
	if (rc != CTL_NO_SOCKET)
		return (rc);
	fprintf(stderr, "accel-server ctl: no server listens on %s\n", o->socket);
	return (EX_UNAVAILABLE);
}

static int
by_config(const struct ctl_options *o, enum ctl_verb verb)
{
	struct config *config = load(o->file, verb, o->socket != NULL);
	const struct conf *c;
	const char *name;
	unsigned pid;
	int rc = CTL_NO_SOCKET;

	if (config == NULL)
		return (o->socket != NULL ? by_socket(o, verb) : EX_CONFIG);
	c = config_global(config);
	name = control_name(c);
	if (name != NULL)
		rc = ctl_ask(name, verb, words[verb], o->json);
	if (rc == CTL_NO_SOCKET && c->pid_file == NULL) {
		fprintf(stderr, "accel-server ctl: %s\n",
		    name != NULL ? "no server listens on its control socket"
				 : "set server.pid-file or server.control-socket, or use --pid=N");
		rc = name != NULL ? EX_UNAVAILABLE : EX_CONFIG;
	} else if (rc == CTL_NO_SOCKET && (rc = ctl_read_pid(c->pid_file, &pid)) == 0)
		rc = ctl_signal(pid, verb);
	config_free(config);
	return (rc);
}

int
ctl_main(char **argv)
{
	struct ctl_options o = { 0 };
	const char *const *rest;
	enum ctl_verb verb;
	int code = options_parse(&ctl_command, argv, &o, &rest);

	if (code != OPTIONS_RUN)
		return (code);
	verb = verb_of(rest != NULL ? rest[0] : NULL);
	if (verb == CTL_VERBS || rest[1] != NULL)
		return (options_wrong(&ctl_command,
		    "expected one of reload, upgrade, stop, quit, status, got \"%s\"",
		    rest == NULL        ? ""
		    : verb == CTL_VERBS ? rest[0]
					: rest[1]));
	if ((o.pid != 0 && (o.file != NULL || o.socket != NULL)) ||
	    (o.pid == 0 && o.file == NULL && o.socket == NULL))
		return (
		    options_wrong(&ctl_command, "expected one of -f FILE, --pid=N, --socket=PATH"));
	if (o.pid != 0)
		return (ctl_signal(o.pid, verb));
	return (o.file != NULL ? by_config(&o, verb) : by_socket(&o, verb));
}

void
ctl_manual(struct manpage *p)
{
	enum ctl_verb v;
	static const char *const prose[CTL_VERBS] = {
		[CTL_RELOAD] =
		    "Reload the configuration. Warnings and errors are printed with file and line. "
		    "Status 78: it was refused, and the old one stays in use.",
		[CTL_UPGRADE] =
		    "Execute the program file anew, like USR2. Prints which process serves. If the "
		    "new one fails, its messages are printed, and the status is that of the new "
		    "one.",
		[CTL_STOP] = "Stop now, and wait until the process has ended.",
		[CTL_QUIT] =
		    "Stop after the running replies, and wait until the process has ended.",
		[CTL_STATUS] =
		    "Print version, process, state, uptime, connections, generations that "
		    "drain, and the last reload with its outcome (0, or the status above).",
	};

	manpage_marked(p,
	    "# CTL\n"
	    "accel-server ctl reload|upgrade|stop|quit|status [--json] [-f FILE] [--pid=N | "
	    "--socket=PATH] asks a running server and waits for the outcome. It uses the control "
	    "socket (server.control-socket), which only root and the user who started the server "
	    "can use. Without one, signals are sent to the process of the pid file; then the "
	    "outcome "
	    "of reload and upgrade is in the error log only, and there is no status. Status 69: no "
	    "server runs there. Status 75: not now, for example because it is stopping.\n");
	for (v = 0; v < CTL_VERBS; v++) {
		manpage_item(p, words[v]);
		manpage_text(p, prose[v]);
	}
	options_items(p, rows);
}
