/* server/options.c -- see options.h */
#include "server/options.h"

#define AT(field) offsetof(struct options, field)

static const struct option rows[] = {
	{ "config", 'f', "FILE", OPTION_TEXT, AT(file),
	    .prose = "Configuration file; \"-\" reads standard input." },
	{ "test", 't', NULL, OPTION_COUNT, AT(test), 1, 2,
	    .prose = "Check the configuration and exit. Finds what a start by the same user would "
		     "refuse: files, users, addresses and backends, too. An address in use is no "
		     "fault. Makes no file." },
	{ "test-preflight", '\0', NULL, OPTION_COUNT, AT(test), 2, 2,
	    .prose = "The same as --test, like -tt." },
	{ "print", 'p', NULL, OPTION_FLAG, AT(print),
	    .prose = "Print the configuration as the server reads it, and exit." },
	{ "translate", '\0', NULL, OPTION_FLAG, AT(translate),
	    .prose = "Print the configuration with fastcgi.server, scgi.server, proxy.server and "
		     "ajp13.server as blocks of proxy-core, and with its secrets, and exit. It "
		     "can take the place of the file." },
	{ "foreground", 'D', NULL, OPTION_IGNORED,
	    .prose = "Accepted for unit files and init scripts of lighttpd. The server stays in "
		     "the foreground unless --daemon is given." },
	{ "daemon", '\0', NULL, OPTION_FLAG, AT(daemon),
	    .prose = "Go to the background. The command ends when the server accepts connections, "
		     "with status 0, or when the start has failed, with the status of that. Until "
		     "then messages go to the terminal." },
	{ "version", 'v', NULL, OPTION_FLAG, AT(version), .prose = "Print the version and exit." },
	{ "features", 'V', NULL, OPTION_FLAG, AT(features),
	    .prose = "Print which network backends work on this machine." },
	{ "one-shot", '1', NULL, OPTION_FLAG, AT(one),
	    .prose = "Answer one request on standard input, then exit." },
	{ "until-eof", '\0', NULL, OPTION_FLAG, AT(until_eof),
	    .prose = "Exit at the end of standard input." },
	{ "manual", '\0', "text|roff|program|program-roff|lighttpd|events", OPTION_WORD, AT(manual),
	    MANUAL_CONF, .alone = "text",
	    .prose =
		"Print a manual page: of the configuration or of the program, as text or for "
		"man(1); or a table of the settings of lighttpd, or of the events of the logs." },
	{ "modules", 'm', "DIR", OPTION_IGNORED,
	    .prose = "Accepted for old scripts. All modules are built in." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command options_command = { "accel-server", "[OPTION]... -f FILE",
	"A web server that does not wait for the disk.\n"
	"\n"
	"Commands:\n"
	"  ctl      Reload, upgrade, stop or show a running server; see accel-server ctl --help.\n",
	rows };

int
options_read(char **argv, struct options *o)
{
	const char *const *rest;
	int code;

	*o = (struct options){ 0 };
	code = options_parse(&options_command, argv, o, &rest);
	if (code == OPTIONS_RUN && rest != NULL)
		code = options_wrong(&options_command, "expected -f FILE, got \"%s\"", rest[0]);
	if (code == OPTIONS_RUN && o->daemon && o->until_eof)
		code = options_wrong(&options_command,
		    "--daemon closes standard input: it cannot go with --until-eof");
	return (code);
}
