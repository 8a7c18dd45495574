/* accel-load/merge.c -- --merge: the sum of reports; see report.h. */
#include <errno.h>
#include <sysexits.h>

#include "accel-load/input.h"
#include "accel-load/report_read.h"
#include "base/option.h"

/* A report has 1 MB if no bucket is empty; several may follow each other in a file. */
#define MERGE_FILE_MAX (16u << 20)

/* All machines ran at the same time, so the run is as long as the longest one. */
static void
result_add(struct load_result *into, const struct load_result *r)
{
	into->seconds = r->seconds > into->seconds ? r->seconds : into->seconds;
	into->cpu_s += r->cpu_s;
	into->threads += r->threads;
	into->connections += r->connections;
	into->held += r->held;
	into->never += r->never;
	into->least = r->least < into->least ? r->least : into->least;
}

static int
fault_tell(const char *name, struct text whole, const struct report_fault *fault)
{
	unsigned line = 1;
	const char *start = whole.p, *p;

	for (p = whole.p; p < fault->at; p++) {
		if (*p == '\n') {
			line++;
			start = p + 1;
		}
	}
	load_message("%s:%u:%zu: %s", name, line, (size_t)(fault->at - start) + 1, fault->why);
	return (EX_DATAERR);
}

static int
no_memory(void)
{
	load_message("not enough memory");
	return (EX_OSERR);
}

static int
merge_text(const char *name, struct text whole, struct load_result *sum, struct counts *counts)
{
	struct report_fault fault = { whole.p, "expected a report of accel-load --json" };
	struct load_result one;
	struct counts *c;
	struct text rest = whole;
	bool ok = whole.n > 0;

	while (ok && rest.n > 0) {
		one = (struct load_result){ 0 };
		c = counts_new();
		if (c == NULL)
			return (no_memory());
		ok = report_read(&rest, &one, c, &fault);
		if (ok) {
			counts_add(counts, c);
			result_add(sum, &one);
		}
		counts_free(c);
	}
	return (ok ? 0 : fault_tell(name, whole, &fault));
}

static int
merge_file(const char *name, struct load_result *sum, struct counts *counts)
{
	struct buf text;
	int err, code;

	buf_init(&text, MERGE_FILE_MAX);
	err = input_read(name, &text);
	if (err == 0)
		code = merge_text(name, buf_as_text(&text), sum, counts);
	else {
		load_message("%s: %s", name,
		    err == -EFBIG ? "expected at most 16 MiB of reports" : strerror(-err));
		code = err == -EFBIG ? EX_DATAERR : EX_NOINPUT;
	}
	buf_free(&text);
	return (code);
}

int
merge_files(const struct load_conf *conf, const char *const *files)
{
	struct counts *counts = counts_new();
	struct load_result sum = { .least = UINT64_MAX,
		.verbose = conf->verbose,
		.counts = counts };
	struct buf out;
	int code = 0;

	if (counts == NULL)
		return (no_memory());
	for (size_t i = 0; files[i] != NULL && code == 0; i++)
		code = merge_file(files[i], &sum, counts);
	if (code == 0) {
		buf_init(&out, 0);
		(conf->json ? report_json : report_text)(&out, &sum);
		code = options_out(&out);
	}
	counts_free(counts);
	return (code);
}
