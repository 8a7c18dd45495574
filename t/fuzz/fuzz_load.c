/* t/fuzz/fuzz_load.c -- what other programs write for accel-load: reports of --json from other
 * machines, lists of hashes.
 *
 * What is accepted is written and read again: the second report is the first one. */
#include <glib.h>
#include <stdlib.h>
#include "accel-load/hash_list.h"
#include "accel-load/report_read.h"
#include "base/must.h"
#include "t/fuzz/fuzz.h"

#define HEAD                                                                                      \
	"{\"program\":\"accel-load\",\"seconds\":1.5,\"requests\":4,\"answered\":3,\"failed\":1," \
	"\"aborted\":0,\"unanswered\":0,\"connects\":2,\"held\":0,\"body_bytes\":10,"
#define ERRORS                                                                         \
	"\"errors\":{\"all\":1,\"connect\":0,\"refused\":0,\"reset\":1,\"timeout\":0," \
	"\"short\":0,\"long\":0,\"wrong\":0,\"status\":0,\"malformed\":0},\"status\":{\"200\":3},"
#define HISTOGRAMS                                                                       \
	"\"histograms\":{\"latency\":{\"sum_ns\":9000,\"max_ns\":4000,\"buckets\":["     \
	"[1000,1],[4000,2]]},\"first_byte\":{\"sum_ns\":0,\"max_ns\":0,\"buckets\":[]}," \
	"\"connect\":{\"sum_ns\":1,\"max_ns\":1,\"buckets\":[[1010,1],[null,1]]}},"
#define CLIENT \
	"\"client\":{\"threads\":1,\"connections\":2,\"never\":0,\"least\":1,\"cpu_s\":0.25}}"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(HEAD ERRORS HISTOGRAMS CLIENT),
	SEED(HEAD "\"new\":[{\"a\":\"\\\"\"},true,null,-1e3]," CLIENT),
	SEED(ERRORS HISTOGRAMS),
	SEED("900150983cd24fb0d6963f7d28e17f72  ./a/b\n\\900150983cd24fb0d6963f7d28e17f72 "
	     "*a\\\\b\\n\r\n"),
	{ NULL, 0 },
};

/* Pages are shared by all inputs: a report has 200 kB. */
static struct counts first, second;

static void
check_report(struct text in)
{
	struct text rest = in, again;
	struct load_result r = { .counts = &first }, s = { .counts = &second };
	struct report_fault fault;
	struct buf out;

	memset(&first, 0, sizeof(first));
	if (!report_read(&rest, &r, &first, &fault)) {
		must(fault.why != NULL && fault.at >= in.p && fault.at <= in.p + in.n);
		return;
	}
	must(rest.n < in.n);
	must(first.requests == first.answered + first.failed + first.aborted + first.unanswered);
	buf_init(&out, 0);
	report_json(&out, &r);
	again = buf_as_text(&out);
	memset(&second, 0, sizeof(second));
	must(report_read(&again, &s, &second, &fault) && again.n == 0);
	must(memcmp(&first, &second, sizeof(first)) == 0);
	must(r.threads == s.threads && r.connections == s.connections && r.held == s.held);
	out.n = 0;
	r.verbose = true;
	report_text(&out, &r);
	must(!out.failed);
	buf_free(&out);
}

static void
check_hashes(struct text in)
{
	struct hash_list list;
	GHashTableIter iter;
	gpointer path, hash;
	const char *why;
	unsigned line;

	if (!hash_list_read(in, &list, &line, &why)) {
		must(why != NULL && line >= 1 && line <= in.n + 2);
		return;
	}
	g_hash_table_iter_init(&iter, list.hashes);
	while (g_hash_table_iter_next(&iter, &path, &hash)) {
		char *url = g_strconcat("/x/", (char *)path, NULL);

		must(strspn(hash, "0123456789abcdef") == strlen(hash));
		must(strlen(hash) == 2 * (size_t)g_checksum_type_get_length(list.type));
		must(((char *)path)[0] == '\0' || hash_list_find(&list, url) != NULL);
		g_free(url);
	}
	hash_list_free(&list);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };

	check_report(in);
	check_hashes(in);
	return (0);
}
