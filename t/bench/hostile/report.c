/* t/bench/hostile/report.c -- what was done and what was seen, as one JSON object. */
#include <stdio.h>
#include "t/bench/hostile/hostile.h"

#define U(x) ((unsigned long long)(x))

/* Those that are not 0, by name. */
static void
report_codes(const char *what, const uint64_t *codes)
{
	const char *comma = "";
	unsigned i;

	printf(",\"%s\":{", what);
	for (i = 0; i <= H2_CODES; i++)
		if (codes[i] > 0) {
			printf("%s\"%s\":%llu", comma, h2_codes[i], U(codes[i]));
			comma = ",";
		}
	printf("}");
}

static void
report_run(const struct run *r)
{
	unsigned i;

	printf("{\"attack\":\"%s\",\"connections\":%llu,\"failed\":%llu,\"open_most\":%u,"
	       "\"requests\":%llu,\"sent\":%llu,\"received\":%llu,",
	    r->attack->name, U(r->connections), U(r->failed), r->open_most, U(r->requests),
	    U(r->sent), U(r->received));
	printf("\"answers\":{");
	for (i = 1; i <= 5; i++)
		printf("%s\"%uxx\":%llu", i > 1 ? "," : "", i, U(r->answers[i]));
	printf("},\"closed\":%llu,\"broken\":%llu,\"resets\":%llu", U(r->closed), U(r->broken),
	    U(r->resets));
	if (r->attack->frames != NULL) {
		printf(",\"frames\":%llu,\"frames_received\":%llu", U(r->frames), U(r->h2.frames));
		report_codes("goaway", r->h2.goaway);
		report_codes("reset_streams", r->h2.reset);
	}
	printf("}");
}

void
report(double seconds)
{
	unsigned i;

	printf("{\"seconds\":%.3f,\"attacks\":[", seconds);
	for (i = 0; i < opt.nruns; i++) {
		printf(i > 0 ? "," : "");
		report_run(&opt.runs[i]);
	}
	printf("]}\n");
}
