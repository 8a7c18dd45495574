/* t/fuzz/fuzz_validate.c -- any bytes as Range, conditions and dates.
 *
 * Input: lines "R..." Range, "I..." If-Range, "M..." If-Match, "N..." If-None-Match, "S..."
 * If-Modified-Since, "U..." If-Unmodified-Since, "Z" and digits: the size of the file, "E" and
 * numbers: what its tag is made of. If a field comes twice, the second line counts for lists only,
 * as in a request that wire/http1/http1.c has read. */
#include <stdio.h>
#include <string.h>
#include "base/must.h"
#include "wire/http1/range.h"
#include "wire/http1/http_date.h"
#include "wire/http1/validate.h"
#include "t/fuzz/fuzz.h"

#define ETAG  "\"v1\""
#define MTIME 784111777u /* Sun, 06 Nov 1994 08:49:37 GMT */

const struct fuzz_seed fuzz_seeds[] = {
	SEED("Z1000\nRbytes=0-1,5-,-3"),
	SEED("Z18446744073709551615\nRbytes=0-18446744073709551615\nI\"v1\""),
	SEED("Z10\nRbytes=1-2, 4-5 ,7-7,2-3\nISun, 06 Nov 1994 08:49:37 GMT"),
	SEED("Z0\nRbytes=0-,-1\nN\"a\",W/\"v1\""),
	SEED("Z5\nM\"v1\", \"x\"\nSSunday, 06-Nov-94 08:49:37 GMT"),
	SEED("Z5\nUSun Nov  6 08:49:37 1994\nN*"),
	SEED("Z60\nRbytes=40-50,30-41, "
	     ",-5,0-1,1-3,18446744073709551615-18446744073709551615,5-\nRbytes=9-9,-0"),
	SEED("N\"a\"\nN\"v1\"\nM\"b\"\nM\"v1\"\nZ99999999999999"),
	SEED("E15 31 1000 784111777 1 784111777 2 0"),
	SEED("E5 31 1000 784111777 1 784111777 2 18446744073709551615\nN*"),
	{ NULL, 0 },
};

static const struct validators validators = { .etag = { ETAG, 4 }, .mtime_s = MTIME };

static const struct text names[HH_N] = {
	[HH_RANGE] = TEXT("Range"),
	[HH_IF_RANGE] = TEXT("If-Range"),
	[HH_IF_MATCH] = TEXT("If-Match"),
	[HH_IF_NONE_MATCH] = TEXT("If-None-Match"),
	[HH_IF_MODIFIED_SINCE] = TEXT("If-Modified-Since"),
	[HH_IF_UNMODIFIED_SINCE] = TEXT("If-Unmodified-Since"),
};

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
	default: return (-1);
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

/* Any second can be written; those of the years that have four digits are read again. */
static void
check_second(uint64_t s)
{
	char date[HTTP_DATE_LEN + 1];
	uint64_t again;

	http_date_put(date, s);
	must(strlen(date) == HTTP_DATE_LEN);
	must(http_date_parse(text_of(date), &again) == 0 &&
	     again == (s < 253402300799u ? s : 253402300799u));
}

/* ---------------------------------------------------------------- tags that we make */

static size_t
make_tag(struct text numbers, char tag[ETAG_MAX], bool *weak)
{
	uint64_t v[8] = { 0 };
	struct text word;
	struct statx sx = { 0 };
	size_t i;

	for (i = 0; i < NELEM(v) && text_next(&numbers, ' ', &word); i++)
		text_u64(word, &v[i]);
	sx.stx_ino = v[1];
	sx.stx_size = v[2];
	sx.stx_mtime =
	    (struct statx_timestamp){ .tv_sec = (int64_t)v[3], .tv_nsec = (uint32_t)v[4] };
	sx.stx_ctime =
	    (struct statx_timestamp){ .tv_sec = (int64_t)v[5], .tv_nsec = (uint32_t)v[6] };
	*weak = v[7] != 0;
	return (etag_make(tag, &sx, (unsigned)v[0] & 15, v[7]));
}

static int
status_with(enum http_known id, struct text value, const struct validators *v)
{
	static struct http_request r;

	r.verb = HTTP_GET;
	memset(r.known, 0, sizeof(r.known));
	r.known[id] = value;
	return (conditions_check(&r, v));
}

/* A tag that the server sent comes back: the file has not changed.  A weak tag is good for that
 * only, and equals no strong tag. */
static void
check_tag(struct text numbers)
{
	char store[ETAG_MAX], list[2 * ETAG_MAX + 8];
	struct validators v = { .etag = { store, 0 } };
	struct text strong;
	bool weak;
	size_t i;
	int n;

	v.etag.n = make_tag(numbers, store, &weak);
	must(v.etag.n <= ETAG_MAX);
	if (v.etag.n == 0)
		return;
	strong = weak ? (struct text){ v.etag.p + 2, v.etag.n - 2 } : v.etag;
	must(text_starts(v.etag, TEXT("W/\"")) == weak && strong.n > 2 && strong.p[0] == '"' &&
	     strong.p[strong.n - 1] == '"');
	for (i = 1; i + 1 < strong.n; i++)
		must(strchr("0123456789abcdef-", strong.p[i]) != NULL && strong.p[i] != '\0');
	n = snprintf(list, sizeof(list), "\"a,b\" , %.*s", (int)v.etag.n, v.etag.p);
	must(status_with(HH_IF_NONE_MATCH, v.etag, &v) == 304);
	must(status_with(HH_IF_NONE_MATCH, (struct text){ list, (size_t)n }, &v) == 304);
	must(status_with(HH_IF_MATCH, (struct text){ list, (size_t)n }, &v) == (weak ? 412 : 0));
}

/* ---------------------------------------------------------------- requests */

static void
check_ranges(const struct http_request *r, uint64_t size)
{
	struct range_part out[RANGES_MAX];
	uint64_t sum = 0;
	int n, i, j;

	n = ranges_select(r, &validators, size, out);
	must(n >= -1 && n <= RANGES_MAX);
	must(n == 0 || r->known[HH_RANGE].p != NULL);
	for (i = 0; i < n; i++) {
		must(out[i].from < out[i].to && out[i].to <= size);
		sum += out[i].to - out[i].from;
		for (j = 0; j < i; j++) /* apart, with at least one byte between */
			must(out[i].to < out[j].from || out[j].to < out[i].from);
	}
	must(sum <= size);
}

static bool
in_parts(const struct range_part *v, unsigned n, uint64_t at, uint64_t size)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (v[i].from == RANGE_TAIL ? at >= (v[i].to < size ? size - v[i].to : 0)
					    : at >= v[i].from && at < v[i].to)
			return (true);
	return (false);
}

/* The parts of a file that are to be warm: in order, apart, no more than `most` bytes.  They have
 * the first bytes that are asked for, and no others. */
static void
check_want(struct text header, uint64_t size, uint64_t most)
{
	struct range_part out[RANGE_PARTS];
	uint64_t sum = 0, at;
	struct range_set set;
	unsigned i, n;

	if (!range_set_read(header, &set))
		return;
	must(set.n > 0 && set.n <= RANGE_PARTS);
	n = range_resolve(&set, size, most, out);
	must(n <= set.n);
	for (i = 0; i < n; i++) {
		must(out[i].from < out[i].to && out[i].to <= size &&
		     (i == 0 || out[i].from > out[i - 1].to));
		sum += out[i].to - out[i].from;
	}
	must(sum <= most);
	for (at = 0; at < 64 && at < size; at++)
		must(most < size
			 ? !in_parts(out, n, at, size) || in_parts(set.part, set.n, at, size)
			 : in_parts(out, n, at, size) == in_parts(set.part, set.n, at, size));
	set.n--;
	must(range_resolve(&set, size, UINT64_MAX, out) <= set.n);
}

static void
check_conditions(const struct http_request *r)
{
	int status = conditions_check(r, &validators);

	must(status == 0 || status == 412 ||
	     (status == 304 && (r->verb == HTTP_GET || r->verb == HTTP_HEAD)));
	if (r->known[HH_IF_MATCH].p == NULL && r->known[HH_IF_NONE_MATCH].p == NULL &&
	    r->known[HH_IF_MODIFIED_SINCE].p == NULL && r->known[HH_IF_UNMODIFIED_SINCE].p == NULL)
		must(status == 0);
}

static void
add_field(struct http_request *r, enum http_known id, struct text value)
{
	if (r->known[id].p == NULL)
		r->known[id] = value;
	if (r->nheaders < HTTP_MAX_HEADERS)
		r->headers[r->nheaders++] = (struct http_header){ names[id], value };
}

static void
check_number(struct text digits, uint64_t *size)
{
	if (text_u64(digits, size) == 0)
		check_second(*size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct http_request r;
	struct text in = { (const char *)p, n }, line, value;
	uint64_t size = 1000;
	int id;

	r.nheaders = 0;
	memset(r.known, 0, sizeof(r.known));
	while (text_next(&in, '\n', &line)) {
		if (line.n == 0)
			continue;
		value = (struct text){ line.p + 1, line.n - 1 };
		id = known_of(line.p[0]);
		if (id >= 0)
			add_field(&r, (enum http_known)id, value);
		else if (line.p[0] == 'Z')
			check_number(value, &size);
		else if (line.p[0] == 'E')
			check_tag(value);
		if (id == HH_RANGE) {
			check_want(value, size, UINT64_MAX);
			check_want(value, size, 10);
		}
		check_date(value);
	}
	for (r.verb = HTTP_OTHER; r.verb <= HTTP_CONNECT; r.verb++) {
		check_conditions(&r);
		check_ranges(&r, size);
	}
	return (0);
}
