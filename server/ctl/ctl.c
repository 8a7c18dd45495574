/* server/ctl/ctl.c -- see ctl.h */
#include "server/ctl/ctl.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/config/language/broken.h"
#include "server/config/config.h"
#include "server/config/control_name.h"
#include "server/ctl/impl.h"

struct ctl_options {
	const char *file, *socket;
	unsigned pid;   /* 0: not given */
	unsigned delay; /* seconds; NO_DELAY: not given */
	bool json;
};

#define NO_DELAY  ~0u
#define DELAY_MAX 3600

#define AT(field) offsetof(struct ctl_options, field)

static const struct option rows[] = {
	{ "config", 'f', "FILE", OPTION_TEXT, AT(file),
	    .prose =
		"The configuration of the server: it names the control socket and the pid file." },
	{ "pid", '\0', "N", OPTION_NUMBER, AT(pid), 1, 4194304,
	    .prose = "Send a signal to this process instead. Its outcome is in the error log." },
	{ "socket", '\0', "PATH", OPTION_TEXT, AT(socket),
	    .prose = "The control socket, for a server whose configuration does not load any more. "
		     "With --config, too, it is used only then. Without it, the lines in front "
		     "of the mistake say where the server is. The server itself refuses a reload "
		     "or an upgrade then: its log and its metrics show that." },
	{ "delay", '\0', "S", OPTION_NUMBER, AT(delay), 0, DELAY_MAX,
	    .prose =
		"drain: seconds until it stops. Without it those of server.drain-delay, or 15." },
	{ "json", '\0', NULL, OPTION_FLAG, AT(json), .prose = "status: print one JSON object." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command ctl_command = { "accel-server ctl",
	"reload|upgrade|reopen|drain [--delay=S]|undrain|stop|quit|status [--json] [-f FILE] "
	"[--pid=N | --socket=PATH]",
	"Commands:\n"
	"  reload   read the configuration again\n"
	"  upgrade  execute the program file anew; it takes over without losing a connection\n"
	"  reopen   open the logs again, after a rotation\n"
	"  drain    let health checks fail, stop after a time\n"
	"  undrain  end that: go on serving\n"
	"  stop     stop now\n"
	"  quit     stop after the running replies\n"
	"  status   print what the server does\n"
	"\n"
	"Waits for the outcome and prints it.\n",
	rows };

static const char *const words[CTL_VERBS] = {
	[CTL_RELOAD] = "reload",
	[CTL_UPGRADE] = "upgrade",
	[CTL_REOPEN] = "reopen",
	[CTL_DRAIN] = "drain",
	[CTL_UNDRAIN] = "undrain",
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

/* Says what is wrong with the configuration: no running server was found that could say it. */
static void
say_broken(struct text err, enum ctl_verb verb)
{
	fprintf(stderr, "%.*saccel-server ctl: %s\n", (int)err.n, err.n != 0 ? err.p : "",
	    verb == CTL_RELOAD || verb == CTL_UPGRADE
		? "nothing was done; the running server goes on as it is"
		: "the control socket is unknown: use --socket=PATH or --pid=N");
}

static int
ask(const struct ctl_options *o, enum ctl_verb verb, const char *name)
{
	char request[32];

	snprintf(request, sizeof(request), "%s%s", words[verb],
	    verb == CTL_STATUS && o->json ? " --json" : "");
	if (verb == CTL_DRAIN && o->delay != NO_DELAY)
		snprintf(request, sizeof(request), "%s %u", words[verb], o->delay);
	return (ctl_ask(name, verb, request));
}

static int
ask_socket(const struct ctl_options *o, enum ctl_verb verb)
{
	struct buf name;
	int rc;

	buf_init(&name, 0);
	buf_printf(&name, "unix:%s", o->socket);
	buf_char(&name, '\0');
	rc = ask(o, verb, name.p);
	buf_free(&name);
	return (rc);
}

static int
by_socket(const struct ctl_options *o, enum ctl_verb verb)
{
	int rc = ask_socket(o, verb);

	if (rc != CTL_NO_SOCKET)
		return (rc);
	fprintf(stderr, "accel-server ctl: no server listens on %s\n", o->socket);
	return (EX_UNAVAILABLE);
}

static int
by_names(const struct ctl_options *o, enum ctl_verb verb, const char *control, const char *pid_file)
{
	unsigned pid;
	int rc = control != NULL ? ask(o, verb, control) : CTL_NO_SOCKET;

	if (rc != CTL_NO_SOCKET || pid_file == NULL)
		return (rc);
	rc = ctl_read_pid(pid_file, &pid);
	return (rc == 0 ? ctl_signal(pid, verb) : rc);
}

static int
by_good(const struct ctl_options *o, enum ctl_verb verb, const struct conf *c)
{
	const char *name = control_name(c);
	int rc = by_names(o, verb, name, c->pid_file);

	if (rc != CTL_NO_SOCKET)
		return (rc);
	fprintf(stderr, "accel-server ctl: %s\n",
	    name != NULL ? "no server listens on its control socket"
			 : "set server.pid-file or server.control-socket, or use --pid=N");
	return (name != NULL ? EX_UNAVAILABLE : EX_CONFIG);
}

/* The running server refuses it, too, so that its log and its metrics show the refusal. */
static int
by_broken(const struct ctl_options *o, enum ctl_verb verb, struct text err)
{
	struct broken_names names;
	int rc = o->socket != NULL ? ask_socket(o, verb) : CTL_NO_SOCKET;

	broken_names(o->file, &names);
	if (rc == CTL_NO_SOCKET && names.control != NULL)
		rc = ask(o, verb, names.control);
	if (rc == CTL_NO_SOCKET && names.pid_file != NULL && access(names.pid_file, F_OK) == 0) {
		rc = by_names(o, verb, NULL, names.pid_file);
		if (verb == CTL_RELOAD || verb == CTL_UPGRADE)
			rc = CTL_NO_SOCKET; /* the server has logged the outcome */
	}
	if (rc != CTL_NO_SOCKET)
		return (rc);
	say_broken(err, verb);
	return (EX_CONFIG);
}

static int
by_config(const struct ctl_options *o, enum ctl_verb verb)
{
	struct config *config;
	struct buf err, warn;
	int rc;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	config = config_load(o->file, NULL, &err, &warn);
	rc = config != NULL ? by_good(o, verb, config_global(config))
			    : by_broken(o, verb, buf_as_text(&err));
	config_free(config);
	buf_free(&err);
	buf_free(&warn);
	return (rc);
}

int
ctl_main(char **argv)
{
	struct ctl_options o = { .delay = NO_DELAY };
	const char *const *rest;
	enum ctl_verb verb;
	int code = options_parse(&ctl_command, argv, &o, &rest);

	if (code != OPTIONS_RUN)
		return (code);
	verb = verb_of(rest != NULL ? rest[0] : NULL);
	if (verb == CTL_VERBS || rest[1] != NULL)
		return (options_wrong(&ctl_command,
		    "expected one of reload, upgrade, reopen, drain, undrain, stop, quit, status, "
		    "got \"%s\"",
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
		[CTL_REOPEN] = "Open the logs again, as after a rotation, like HUP. Status 73: one "
			       "could not be "
			       "opened, and its lines go to the old file; the reason is printed.",
		[CTL_DRAIN] =
		    "status.health-url answers 503 for --delay seconds, while all requests are "
		    "served and their connections end; then the server stops as after quit. So a "
		    "balancer "
		    "sends nothing more before it stops. Waits until the process has ended. Status "
		    "75: undrain has ended it.",
		[CTL_UNDRAIN] = "End a drain before the stop: status.health-url answers 200 again.",
		[CTL_STOP] = "Stop now, and wait until the process has ended.",
		[CTL_QUIT] =
		    "Stop after the running replies, and before that wait for server.drain-delay. "
		    "Waits until the process has ended.",
		[CTL_STATUS] =
		    "Print version, process, state, uptime, connections, generations that "
		    "drain, and the last reload with its outcome (0, or the status above). Each "
		    "event loop is asked. Status 75: a loop has not answered for a second, and "
		    "loops_still names it.",
	};

	for (v = 0; v < CTL_VERBS; v++) {
		manpage_item(p, words[v]);
		manpage_text(p, prose[v]);
	}
	options_items(p, rows);
}
