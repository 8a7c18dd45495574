/* server/options.c -- GOption does the work; one table feeds it and the manual. */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include "server/options.h"

const struct options_doc options_docs[] = {
	{'f', "config", "FILE", "Configuration file; \"-\" reads standard input."},
	{'t', "test", NULL, "Check the configuration and exit."},
	{'\0', "test-preflight", NULL, "Like --test, and open what the configuration names; -tt is the same."},
	{'p', "print", NULL, "Print the configuration as it was understood, and exit."},
	{'D', "foreground", NULL, "Stay in the foreground. This is the default."},
	{'\0', "no-daemon", NULL, "Another name of --foreground."},
	{'v', "version", NULL, "Print the version and exit."},
	{'V', "features", NULL, "Print which network backends work on this machine."},
	{'1', "one-shot", NULL, "Answer one request on standard input, then exit."},
	{'\0', "until-eof", NULL, "Exit when standard input ends."},
	{'\0', "manual", "PAGE", "Print a manual page: text, roff (of the configuration), program, program-roff."},
	{'h', "help", NULL, "Print the options and exit."},
	{'m', "modules", "DIR", "Accepted for old scripts. Everything is built in."},
	{'\0', NULL, NULL, NULL},
};

/* GOption gives callbacks one pointer; the options are filled by one thread, at start-up. */
struct sink {
	struct options *o;
};

static gboolean
on_flag(const gchar *name, const gchar *value, gpointer data, GError **err)
{
	struct options *o = ((struct sink *)data)->o;

	if (strcmp(name, "--test-preflight") == 0)
		o->test = 2;
	else
		o->test = MIN(o->test + 1, 2);
	return (TRUE);
}

static gboolean
on_manual(const gchar *name, const gchar *value, gpointer data, GError **err)
{
	struct options *o = ((struct sink *)data)->o;

	g_free(o->manual);
	o->manual = g_strdup(value != NULL ? value : "text");
	return (TRUE);
}

struct values {
	gboolean help, print, foreground, version, features, one, until_eof;
	char *file, *modules;
};

static void
add_entries(GOptionContext *ctx, struct sink *sink, struct values *v)
{
	GOptionEntry all[] = {
	    {"config", 'f', 0, G_OPTION_ARG_FILENAME, &v->file, NULL, "FILE"},
	    {"test", 't', G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer)on_flag, NULL, NULL},
	    {"test-preflight", 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer)on_flag, NULL, NULL},
	    {"print", 'p', 0, G_OPTION_ARG_NONE, &v->print, NULL, NULL},
	    {"foreground", 'D', 0, G_OPTION_ARG_NONE, &v->foreground, NULL, NULL},
	    {"no-daemon", 0, 0, G_OPTION_ARG_NONE, &v->foreground, NULL, NULL},
	    {"version", 'v', 0, G_OPTION_ARG_NONE, &v->version, NULL, NULL},
	    {"features", 'V', 0, G_OPTION_ARG_NONE, &v->features, NULL, NULL},
	    {"one-shot", '1', 0, G_OPTION_ARG_NONE, &v->one, NULL, NULL},
	    {"until-eof", 0, 0, G_OPTION_ARG_NONE, &v->until_eof, NULL, NULL},
	    {"manual", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (gpointer)on_manual, NULL, "PAGE"},
	    {"help", 'h', 0, G_OPTION_ARG_NONE, &v->help, NULL, NULL},
	    {"modules", 'm', 0, G_OPTION_ARG_FILENAME, &v->modules, NULL, "DIR"},
	    {NULL},
	};
	GOptionGroup *group = g_option_group_new("main", "", "", sink, NULL);

	g_option_group_add_entries(group, all);
	g_option_context_set_main_group(ctx, group);
}

/* GOption's own help writes an ellipsis that only some locales can show. */
static void
help(void)
{
	const struct options_doc *d;
	char *left;

	printf("Usage: accel-server [OPTION]... -f FILE\n\nA web server that does not wait for the disk.\n\n");
	for (d = options_docs; d->name != NULL; d++) {
		left = g_strdup_printf("--%s%s%s", d->name, d->arg != NULL ? "=" : "", d->arg != NULL ? d->arg : "");
		printf("  %c%c%c %-17s %s\n", d->letter != '\0' ? '-' : ' ', d->letter != '\0' ? d->letter : ' ',
		    d->letter != '\0' ? ',' : ' ', left, d->prose);
		g_free(left);
	}
}

static int
usage(const char *why)
{
	fprintf(stderr, "accel-server: %s\nTry accel-server --help.\n", why);
	return (OPTIONS_BAD);
}

static void
take_over(struct options *o, struct values *v)
{
	o->file = v->file;
	o->print = v->print;
	o->foreground = v->foreground;
	o->version = v->version;
	o->features = v->features;
	o->one = v->one;
	o->until_eof = v->until_eof;
	g_free(v->modules);
}

int
options_parse(int argc, char **argv, struct options *o)
{
	GOptionContext *ctx = g_option_context_new(NULL);
	struct sink sink = {.o = o};
	struct values v = {0};
	GError *err = NULL;
	char *extra;
	int res = 0;

	*o = (struct options){0};
	add_entries(ctx, &sink, &v);
	g_option_context_set_help_enabled(ctx, FALSE);
	if (!g_option_context_parse(ctx, &argc, &argv, &err))
		res = usage(err->message);
	else if (argc > 1) {
		extra = g_strdup_printf("\"%s\" is no option; the configuration file goes behind -f", argv[1]);
		res = usage(extra);
		g_free(extra);
	}
	take_over(o, &v);
	g_clear_error(&err);
	g_option_context_free(ctx);
	if (res != 0 || v.help)
		options_free(o);
	if (res == 0 && v.help) {
		help();
		exit(0);
	}
	return (res);
}

void
options_free(struct options *o)
{
	g_free(o->file);
	g_free(o->manual);
	*o = (struct options){0};
}

void
options_features(struct buf *out, const char *title, const struct options_feature *f, size_t n)
{
	size_t i;

	buf_printf(out, "%s:\n", title);
	for (i = 0; i < n; i++)
		buf_printf(out, "  %c %-20s %s\n", f[i].works ? '+' : '-', f[i].name, f[i].doc);
}
