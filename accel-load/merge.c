/* accel-load/merge.c -- --merge: accel-load-merge adds the reports; see report.h.
 *
 * A line of what it prints is a group, a name and a number: "run requests 800".  Groups of --beside
 * begin with "beside.".
 */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <sysexits.h>

#include "accel-load/report.h"
#include "base/must.h"
#include "base/option.h"

static bool
add_to_run(struct load_result *r, struct counts *c, const char *name, const char *number)
{
	const struct {
		const char *name;
		uint64_t *n;
	} numbers[] = { { "requests", &c->requests }, { "answered", &c->answered },
		{ "failed", &c->failed }, { "aborted", &c->aborted },
		{ "unanswered", &c->unanswered }, { "connects", &c->connects },
		{ "body_bytes", &c->body_bytes }, { "handshakes", &c->handshakes },
		{ "resumed", &c->resumed }, { "goaways", &c->goaways }, { "again", &c->again },
		{ "held", &r->held }, { "streams", &r->streams }, { "threads", &r->threads },
		{ "connections", &r->connections }, { "never", &r->never },
		{ "least", &r->least } };

	for (size_t i = 0; i < NELEM(numbers); i++)
		if (strcmp(name, numbers[i].name) == 0)
			return (text_u64(text_of(number), numbers[i].n) == 0);
	if (strcmp(name, "seconds") != 0 && strcmp(name, "cpu_s") != 0)
		return (false);
	*(name[0] == 's' ? &r->seconds : &r->cpu_s) = strtod(number, NULL);
	return (true);
}

static uint64_t *
place_of_time(struct histogram_fine *h, const char *name)
{
	int bucket;

	if (strcmp(name, "sum_ns") == 0)
		return (&h->sum_ns);
	if (strcmp(name, "max_ns") == 0)
		return (&h->max_ns);
	bucket = histogram_fine_bucket(strtoull(name, NULL, 10));
	return (bucket < 0 ? NULL : &h->n[bucket]);
}

static uint64_t *
place_of(struct counts *c, const char *group, const char *name)
{
	if (strcmp(group, "status") == 0)
		return (&c->status[strtoul(name, NULL, 10) % COUNT_STATUSES]);
	if (strcmp(group, "latency") == 0)
		return (place_of_time(&c->latency, name));
	if (strcmp(group, "first_byte") == 0)
		return (place_of_time(&c->first_byte, name));
	if (strcmp(group, "connect") == 0)
		return (place_of_time(&c->connect, name));
	if (strcmp(group, "handshake") == 0)
		return (place_of_time(&c->handshake, name));
	for (unsigned i = 0; strcmp(group, "errors") == 0 && i < LOAD_ERRORS; i++)
		if (strcmp(name, load_errors[i].name) == 0)
			return (&c->errors[i]);
	return (NULL);
}

struct sum {
	struct load_result result;
	struct counts *all, *beside;
};

static bool
read_line(char *line, struct sum *sum)
{
	bool beside = strncmp(line, "beside.", 7) == 0;
	struct counts *c = beside ? sum->beside : sum->all;
	struct load_result none = { 0 }, *r = beside ? &none : &sum->result;
	char **words = g_strsplit(line + (beside ? 7 : 0), " ", 3);
	uint64_t *place;
	bool ok = false;

	if (g_strv_length(words) == 3 && strcmp(words[0], "run") == 0)
		ok = add_to_run(r, c, words[1], words[2]);
	else if (g_strv_length(words) == 3) {
		place = place_of(c, words[0], words[1]);
		ok = place != NULL && text_u64(text_of(words[2]), place) == 0;
	}
	g_strfreev(words);
	if (beside)
		sum->result.beside = c;
	return (ok);
}

static void
free_counts(struct sum *sum)
{
	counts_free(sum->all);
	counts_free(sum->beside);
}

static int
print_sum(const struct load_conf *conf, char *lines)
{
	struct sum sum = { .all = counts_new(), .beside = counts_new() };
	char *line, *rest = lines;
	struct buf out;

	if (sum.all == NULL || sum.beside == NULL) {
		free_counts(&sum);
		return (EX_OSERR);
	}
	sum.result = (struct load_result){ .verbose = conf->verbose, .counts = sum.all };
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0')
		if (!read_line(line, &sum)) {
			load_message("accel-load-merge: expected a number, got \"%s\"", line);
			free_counts(&sum);
			return (EX_SOFTWARE);
		}
	buf_init(&out, 0);
	(conf->json ? report_json : report_text)(&out, &sum.result);
	free_counts(&sum);
	return (options_out(&out));
}

int
merge_files(const struct load_conf *conf, const char *const *files)
{
	GPtrArray *argv = g_ptr_array_new();
	char *helper = options_program("accel-load-merge"), *lines = NULL;
	GError *error = NULL;
	int status, code;

	g_ptr_array_add(argv, helper);
	g_ptr_array_add(argv, (char *)"--");
	for (; *files != NULL; files++)
		g_ptr_array_add(argv, (char *)*files);
	g_ptr_array_add(argv, NULL);
	if (!g_spawn_sync(NULL, (char **)argv->pdata, NULL,
		G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL, &lines, NULL,
		&status, &error)) {
		load_message("%s; expected it beside accel-load or in PATH", error->message);
		g_error_free(error);
		code = EX_UNAVAILABLE;
	} else if (status != 0)
		code = WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE;
	else
		code = print_sum(conf, lines);
	g_free(lines);
	g_free(helper);
	g_ptr_array_free(argv, TRUE);
	return (code);
}
