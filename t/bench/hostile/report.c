/* t/bench/hostile/report.c -- what was done and what was seen, as one JSON object. */
#include <stdio.h>
#include "t/bench/hostile/hostile.h"

#define U(x) ((unsigned long long)(x))

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
	printf("},\"closed\":%llu,\"broken\":%llu,\"resets\":%llu}", U(r->closed), U(r->broken),
	    U(r->resets));
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
