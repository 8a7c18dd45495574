/* t/fuzz/fuzz_validate.c -- any bytes as Range, conditions and dates.
 *
 * Input: lines "R..." Range, "I..." If-Range, "M..." If-Match, "N..." If-None-Match, "S..."
 * If-Modified-Since, "U..." If-Unmodified-Since, "Z" and digits: the size of the file. */
#include "base/must.h"
#include "server/http_date.h"
#include "server/validate.h"
#include "t/fuzz/fuzz.h"

#define ETAG "\"v1\""
#define MTIME 784111777u        /* Sun, 06 Nov 1994 08:49:37 GMT */

const struct fuzz_seed fuzz_seeds[] = {
	SEED("Z1000\nRbytes=0-1,5-,-3"),
	SEED("Z18446744073709551615\nRbytes=0-18446744073709551615\nI\"v1\""),
	SEED("Z10\nRbytes=1-2, 4-5 ,7-7,2-3\nISun, 06 Nov 1994 08:49:37 GMT"),
	SEED("Z0\nRbytes=0-,-1\nN\"a\",W/\"v1\""),
	SEED("Z5\nM\"v1\", \"x\"\nSSunday, 06-Nov-94 08:49:37 GMT"),
	SEED("Z5\nUSun Nov  6 08:49:37 1994\nN*"),
	{NULL, 0},
};

static const struct validators validators = {.etag = {ETAG, 4}, .mtime_s = MTIME};

static int
known_of(char letter)
{
	switch (letter) {
	case 'R': return (HH_RANGE);
	case 'I': return (HH_IF_RANGE);
	case 'M': return (HH_IF_MATCH);
	case 'N': return (HH_IF_NONE_MATCH);
	case 'S': return (HH_IF_MODIFIED_SINCE);
	case 'U': return (HH_IF_UNMODIFIED_SINCE);
	default:  return (-1);
	}
}

/* A date that can be read is written as one that reads the same. */
static void
check_date(struct text t)
{
	char again[HTTP_DATE_LEN + 1];
	uint64_t s, s2;

	if (http_date_parse(t, &s) != 0)
		return;
	http_date_put(again, s);
	must(strlen(again) == HTTP_DATE_LEN);
	must(http_date_parse(text_of(again), &s2) == 0 && (s2 == s || s > 253402300799u));
}

static void
check_ranges(const struct http_request *r, uint64_t size)
{
	struct byte_range out[RANGES_MAX];
	uint64_t sum = 0;
	int n, i, j;

	n = ranges_select(r, &validators, size, out);
	must(n >= -1 && n <= RANGES_MAX);
	must(n == 0 || r->known[HH_RANGE].p != NULL);
	for (i = 0; i < n; i++) {
		must(out[i].len > 0 && out[i].len <= size && out[i].off <= size - out[i].len);
		sum += out[i].len;
		for (j = 0; j < i; j++)         /* apart, with at least one byte between */
			must(out[i].off + out[i].len < out[j].off || out[j].off + out[j].len < out[i].off);
	}
	must(sum <= size);
}

static void
check_conditions(const struct http_request *r)
{
	int status = conditions_check(r, &validators);

	must(status == 0 || status == 412 || (status == 304 && (r->verb == HTTP_GET || r->verb == HTTP_HEAD)));
	if (r->known[HH_IF_MATCH].p == NULL && r->known[HH_IF_NONE_MATCH].p == NULL &&
	    r->known[HH_IF_MODIFIED_SINCE].p == NULL && r->known[HH_IF_UNMODIFIED_SINCE].p == NULL)
		must(status == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct http_request r;
	struct text in = {(const char *)p, n}, line, value;
	uint64_t size = 1000;
	int id;

	memset(r.known, 0, sizeof(r.known));
	while (text_next(&in, '\n', &line)) {
		if (line.n == 0)
			continue;
		value = (struct text){line.p + 1, line.n - 1};
		id = known_of(line.p[0]);
		if (id >= 0)
			r.known[id] = value;
		else if (line.p[0] == 'Z')
			text_u64(value, &size);
		check_date(value);
	}
	for (r.verb = HTTP_OTHER; r.verb <= HTTP_CONNECT; r.verb++) {
		check_conditions(&r);
		check_ranges(&r, size);
	}
	return (0);
}
