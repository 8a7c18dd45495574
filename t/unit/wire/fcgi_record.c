/* Records in, results out: each table row is fed whole, byte by byte, and at every split. */

#include "wire/fcgi_record.h"

#include <string.h>

static const struct text names[] = {
	{ "SCRIPT_FILENAME", 15 }, { "WARM_PATH", 9 },
};
static const struct record_conf conf = {
	.names = names, .n_names = G_N_ELEMENTS(names), .max_conns = 1000, .max_reqs = 20,
};

static bool answer_at_once = true;		/* else when the next request begins */

/* A transcript of what record_feed() says: R request (id, k for keep, bytes), H the next one is held back, A abort,
 * C close, B bad, ? when the peer owes us more; then | and the reply in hex. */
static void
note_request(GString *log, struct record *r)
{
	unsigned id = r->id, keep = r->keep;
	GString *bytes = record_take(r);

	g_string_append_printf(log, "R%u%s[", id, keep ? "k" : "");
	for (gsize i = 0; i < bytes->len; i++)
		g_string_append_printf(log, "%02x", (uint8_t)bytes->str[i]);
	g_string_append(log, "]");
	g_string_free(bytes, TRUE);
	if (answer_at_once)
		record_answered(r);
}

/* False when the connection would be closed. */
static bool
feed(struct record *r, const uint8_t *p, size_t n, GString *log, GString *reply)
{
	size_t used;

	while (n > 0) {
		switch (record_feed(r, p, n, &used, reply)) {
		case RECORD_MORE:    g_assert_cmpuint(used, ==, n); break;
		case RECORD_REQUEST: note_request(log, r); break;
		case RECORD_HOLD:
			g_string_append_c(log, 'H');
			record_answered(r);
			break;
		case RECORD_ABORT:   g_string_append_c(log, 'A'); break;
		case RECORD_CLOSE:   g_string_append_c(log, 'C'); return (false);
		case RECORD_BAD:     g_string_append_c(log, 'B'); return (false);
		}
		g_assert_cmpuint(used, <=, n);
		p += used;
		n -= used;
	}
	return (true);
}

static void
finish_log(struct record *r, bool open, GString *log, GString *reply)
{
	g_string_append_printf(log, "%s|", open && !record_idle(r) ? "?" : "");
	for (gsize i = 0; i < reply->len; i++)
		g_string_append_printf(log, "%02x", (uint8_t)reply->str[i]);
	g_string_free(reply, TRUE);
	record_free(r);
}

/* Pieces of step bytes, or two pieces when step is 0. */
static char *
transcript(const GString *in, size_t step, size_t split)
{
	GString *log = g_string_new(NULL), *reply = g_string_new(NULL);
	const uint8_t *p = (const uint8_t *)in->str;
	struct record r;
	bool open = true;

	record_init(&r, &conf);
	if (step == 0)
		open = feed(&r, p, split, log, reply) &&
		    feed(&r, p + split, in->len - split, log, reply);
	for (size_t at = 0; step > 0 && open && at < in->len; at += step) {
		/* on the heap and exactly as long: a read too far is seen */
		uint8_t *piece = g_memdup2(p + at, MIN(step, in->len - at));

		open = feed(&r, piece, MIN(step, in->len - at), log, reply);
		g_free(piece);
	}
	finish_log(&r, open, log, reply);
	return (g_string_free(log, FALSE));
}

static void
check_splits(const GString *in, const char *whole)
{
	for (size_t split = 0; split <= in->len; split++) {
		char *got = transcript(in, 0, split);

		g_assert_cmpstr(got, ==, whole);
		g_free(got);
	}
}

static void
check(GString *in, const char *want)
{
	char *whole = transcript(in, in->len, 0), *bytes = transcript(in, 1, 0);

	g_assert_cmpstr(whole, ==, want);
	g_assert_cmpstr(bytes, ==, want);
	if (in->len < 1000)
		check_splits(in, want);
	g_free(whole);
	g_free(bytes);
	g_string_free(in, TRUE);
}

/* ---------------------------------------------------------------- building blocks */

static void
rec_padded(GString *s, int type, int id, const char *content, size_t n, uint8_t padding)
{
	const uint8_t h[8] = { 1, type, id >> 8, id, n >> 8, n, padding, 0 };

	g_string_append_len(s, (const char *)h, 8);
	g_string_append_len(s, content, n);
	for (int i = 0; i < padding; i++)
		g_string_append_c(s, 0x55);
}

static void
rec(GString *s, int type, int id, const char *content, size_t n)
{
	rec_padded(s, type, id, content, n, 0);
}

#define REC(s, type, id, literal) rec(s, type, id, literal, sizeof(literal) - 1)

static void
begin(GString *s, int id, int role, int flags)
{
	const char body[8] = { 0, role, flags };

	rec(s, 1, id, body, 8);
}

static GString *
new_begun(void)
{
	GString *s = g_string_new(NULL);

	begin(s, 1, 1, 1);
	return (s);
}

#define BEGUN	 "0101000100080000" "0001010000000000"
#define PATH_A	 "\x0f\x02SCRIPT_FILENAME/a"
#define PATH_A_X "0f025343524950545f46494c454e414d452f61"
#define EMPTY_X	 "0104000100000000"
#define WHOLE_X	 "R1k[" BEGUN "0104000100130000" PATH_A_X EMPTY_X "]"
#define NONE_X	 "R1k[" BEGUN EMPTY_X "]"

/* ---------------------------------------------------------------- tests */

static void
test_one_request(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A);
	REC(s, 4, 1, "");
	REC(s, 5, 1, "");
	check(s, WHOLE_X "|");
}

static void
test_pairs_straddle_records_with_padding(void)
{
	GString *s = new_begun();

	rec_padded(s, 4, 1, PATH_A, 1, 7);
	rec_padded(s, 4, 1, PATH_A + 1, 9, 255);
	rec_padded(s, 4, 1, PATH_A + 10, 9, 1);
	rec_padded(s, 4, 1, "", 0, 8);
	rec_padded(s, 5, 1, "", 0, 3);
	check(s, WHOLE_X "|");
}

static void
test_long_lengths_are_written_short(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, "\x80\0\0\x0f\x80\0\0\x02SCRIPT_FILENAME/a");
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|");
}

static void
test_only_names_in_use_are_passed_on(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, "\x0b\x01HTTP_COOKIEx" PATH_A "\x00\x00" "\x09\x01" "FCGI_ROLEx");
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|");
}

static void
test_a_nul_leaves_no_name(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A "\x09\x03WARM_PATH/\0x");
	REC(s, 4, 1, "");
	check(s, NONE_X "|");
}

static void
test_two_requests_in_a_row(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, "");
	REC(s, 5, 1, "some body");
	REC(s, 5, 1, "");
	begin(s, 0x1234, 2, 0);
	REC(s, 4, 0x1234, "");
	check(s, NONE_X "R4660[0101123400080000" "0002010000000000" "0104123400000000]|");
}

static void
test_half_a_request_is_owed(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A);
	check(s, "?|");
	s = g_string_new(NULL);
	g_string_append_len(s, "\1\1\0", 3);
	check(s, "?|");
	s = g_string_new(NULL);			/* a body for nobody: no hurry */
	REC(s, 5, 9, "bodybody");
	g_string_truncate(s, s->len - 3);
	check(s, "|");
}

static void
test_lengths_that_lie(void)
{
	static const struct { const char *bytes; size_t n; } bad[] = {
		{ "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },	/* INT_MAX + INT_MAX */
		{ "\xff\xff\xff\xfe\x00", 5 },			/* aborts libfcgi 2.4.2 */
		{ "\x80\x00\x00\x01\xff\xff\xff\xfdx", 9 },
		{ "\x0f\x03SCRIPT_FILENAME/a", 19 },		/* one short */
		{ "\x01", 1 }, { "\x80", 1 }, { "\x80\0\0", 3 }, { "\x01\x80\0\0", 4 },
		{ "\x01\x01", 2 }, { "\x01\x01" "a", 3 },
	};

	for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
		GString *s = new_begun();

		rec(s, 4, 1, bad[i].bytes, bad[i].n);
		REC(s, 4, 1, "");
		check(s, "B|");
	}
}

static void
test_params_have_a_limit(void)
{
	static const char block[32768];
	GString *s = new_begun();

	rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, block, sizeof(block) - 1);		/* 65535: names and values of length 0 */
	rec(s, 4, 1, "", 0);
	check(s, "B|");				/* an odd number: the last pair is cut */
	s = new_begun();
	rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, block, sizeof(block) - 2);
	rec(s, 4, 1, "", 0);
	check(s, NONE_X "|");
	s = new_begun();
	rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, block, sizeof(block));
	check(s, "?|");				/* the web server owes us the end of it */
	s = new_begun();
	for (int i = 0; i < 32; i++)
		rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, "", 0);
	check(s, NONE_X "|");			/* it is answered, without its variables */
}

static void
test_long_params_are_not_kept(void)
{
	static const char block[32768];
	GString *s = new_begun(), *reply = g_string_new(NULL);
	struct record r;
	size_t used;

	for (int i = 0; i < 32; i++)
		rec(s, 4, 1, block, sizeof(block));
	record_init(&r, &conf);
	g_assert_cmpint(record_feed(&r, (uint8_t *)s->str, s->len, &used, reply), ==, RECORD_MORE);
	g_assert_true(r.too_long);
	g_assert_cmpuint(r.params->len, <=, RECORD_PARAMS_MAX);
	g_assert_false(record_idle(&r));		/* so its deadline runs */
	record_free(&r);
	g_string_free(s, TRUE);
	g_string_free(reply, TRUE);
}

static void
test_a_long_path_fits(void)
{
	GString *s = new_begun(), *pair = g_string_new(NULL);
	const uint8_t lengths[] = { 15, 0x80, 0, 0xff, 0xeb };
	struct record r;
	size_t used;

	g_string_append_len(pair, (const char *)lengths, sizeof(lengths));
	g_string_append(pair, "SCRIPT_FILENAME");
	for (size_t i = 0; i < 0xffeb; i++)
		g_string_append_c(pair, '/');
	g_assert_cmpuint(pair->len, ==, RECORD_PARAMS_MAX);
	rec(s, 4, 1, pair->str, pair->len);
	REC(s, 4, 1, "");
	record_init(&r, &conf);
	g_assert_cmpint(record_feed(&r, (uint8_t *)s->str, s->len, &used, NULL), ==,
	    RECORD_REQUEST);
	g_string_free(pair, TRUE);
	pair = record_take(&r);
	g_assert_true(g_string_equal(pair, s));		/* it was canonical already */
	g_string_free(pair, TRUE);
	g_string_free(s, TRUE);
	record_free(&r);
}

static void
test_management(void)
{
	GString *s = g_string_new(NULL);

	REC(s, 9, 0, "\x0e\x00" "FCGI_MAX_CONNS" "\x0d\x00" "FCGI_MAX_REQS"
	    "\x0f\x00" "FCGI_MPXS_CONNS"
	    "\x05\x00" "OTHER");
	check(s, "|010a000000370000"
	    "0e04464347495f4d41585f434f4e4e5331303030"
	    "0d02464347495f4d41585f524551533230"
	    "0f01464347495f4d5058535f434f4e4e5330");
	s = g_string_new(NULL);
	REC(s, 9, 0, "");
	check(s, "|010a000000000000");
	s = g_string_new(NULL);
	REC(s, 77, 0, "what");
	check(s, "|010b000000080000" "4d00000000000000");
}

static void
test_management_within_a_request(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A);
	REC(s, 200, 0, "");
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|010b000000080000" "c800000000000000");
}

static void
test_abort(void)
{
	GString *s = new_begun();

	REC(s, 2, 1, "");
	check(s, "A|0103000100080000" "0000000000000000");
	s = g_string_new(NULL);
	REC(s, 2, 7, "");			/* nothing of that number runs */
	check(s, "|");
}

/* While its file is looked up. */
static void
test_abort_of_what_was_taken(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, "");
	REC(s, 5, 1, "half a body");
	REC(s, 2, 1, "");
	REC(s, 2, 1, "");			/* once is enough */
	begin(s, 2, 1, 1);
	REC(s, 4, 2, "");
	answer_at_once = false;
	check(s, NONE_X "A" "R2k[0101000200080000" "0001010000000000" "0104000200000000]"
	    "|0103000100080000" "0000000000000000");
	answer_at_once = true;
}

static void
test_the_next_request_is_held_back(void)
{
	GString *s = new_begun();

	REC(s, 4, 1, "");
	REC(s, 5, 1, "");
	REC(s, 4, 1, "late names");		/* of no interest */
	REC(s, 77, 0, "");			/* answered all the same */
	begin(s, 1, 1, 1);
	REC(s, 4, 1, "");
	answer_at_once = false;
	check(s, NONE_X "H" NONE_X "|010b000000080000" "4d00000000000000");
	answer_at_once = true;
}

static void
test_no_multiplexing(void)
{
	GString *s = new_begun();

	begin(s, 2, 1, 1);
	REC(s, 4, 2, "\xff\xff");		/* of no interest any more */
	REC(s, 4, 1, PATH_A);
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|0103000200080000" "0000000001000000");
}

static void
test_unknown_role(void)
{
	GString *s = g_string_new(NULL);

	begin(s, 3, 9, 1);
	REC(s, 4, 3, PATH_A);
	REC(s, 4, 3, "");
	check(s, "|0103000300080000" "0000000003000000");
	s = g_string_new(NULL);
	begin(s, 3, 0, 0);
	check(s, "C|0103000300080000" "0000000003000000");
}

static void
test_what_ends_the_connection(void)
{
	static const char heads[][8] = {
		{ 0, 1, 0, 1, 0, 8, 0, 0 }, { 2, 1, 0, 1, 0, 8, 0, 0 },	/* version */
		{ 1, 1, 0, 0, 0, 8, 0, 0 },				/* BEGIN of nothing */
		{ 1, 1, 0, 1, 0, 7, 0, 0 }, { 1, 1, 0, 1, 0, 9, 0, 0 },	/* BEGIN of wrong length */
		{ 1, 4, 0, 0, 0, 0, 0, 0 }, { 1, 0, 0, 0, 0, 0, 0, 0 },
		{ 1, 3, 0, 1, 0, 0, 0, 0 }, { 1, 6, 0, 1, 0, 0, 0, 0 },	/* what only we may say */
		{ 1, 9, 0, 1, 0, 0, 0, 0 }, { 1, 99, 0, 1, 0, 0, 0, 0 },
		{ 1, 9, 0, 0, 1, 1, 0, 0 },				/* GET_VALUES too long */
		{ 'G', 'E', 'T', ' ', '/', ' ', 'H', 'T' },
	};

	for (guint i = 0; i < G_N_ELEMENTS(heads); i++) {
		GString *s = g_string_new(NULL);

		g_string_append_len(s, heads[i], 8);
		check(s, "B|");
	}
}

static void
test_begin_twice(void)
{
	GString *s = new_begun();

	begin(s, 1, 1, 1);
	check(s, "B|");
}

/* Requests with bytes turned at random: never a crash, and the same result however they are cut. */
static void
test_mutations(void)
{
	GRand *rand = g_rand_new_with_seed(20070127);

	for (int round = 0; round < 20000; round++) {
		GString *s = new_begun();
		char *whole, *pieces;

		REC(s, 4, 1, PATH_A "\x0b\x01HTTP_COOKIEx");
		REC(s, 9, 0, "\x0d\x00" "FCGI_MAX_REQS");
		REC(s, 4, 1, "");
		REC(s, 5, 1, "body");
		begin(s, 1, 1, 0);
		REC(s, 4, 1, "");
		for (int i = g_rand_int_range(rand, 1, 5); i > 0; i--)
			s->str[g_rand_int_range(rand, 0, (gint32)s->len)] = (char)g_rand_int(rand);
		whole = transcript(s, s->len, 0);
		pieces = transcript(s, (size_t)g_rand_int_range(rand, 1, 9), 0);
		g_assert_cmpstr(whole, ==, pieces);
		g_free(whole);
		g_free(pieces);
		g_string_free(s, TRUE);
	}
	g_rand_free(rand);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/record/one-request", test_one_request);
	g_test_add_func("/record/pairs-straddle-records", test_pairs_straddle_records_with_padding);
	g_test_add_func("/record/long-lengths", test_long_lengths_are_written_short);
	g_test_add_func("/record/only-names-in-use", test_only_names_in_use_are_passed_on);
	g_test_add_func("/record/nul-leaves-no-name", test_a_nul_leaves_no_name);
	g_test_add_func("/record/two-requests", test_two_requests_in_a_row);
	g_test_add_func("/record/half-a-request-is-owed", test_half_a_request_is_owed);
	g_test_add_func("/record/lengths-that-lie", test_lengths_that_lie);
	g_test_add_func("/record/params-have-a-limit", test_params_have_a_limit);
	g_test_add_func("/record/long-params-are-not-kept", test_long_params_are_not_kept);
	g_test_add_func("/record/long-path", test_a_long_path_fits);
	g_test_add_func("/record/management", test_management);
	g_test_add_func("/record/management-within-a-request", test_management_within_a_request);
	g_test_add_func("/record/abort", test_abort);
	g_test_add_func("/record/abort-of-what-was-taken", test_abort_of_what_was_taken);
	g_test_add_func("/record/next-request-is-held-back", test_the_next_request_is_held_back);
	g_test_add_func("/record/no-multiplexing", test_no_multiplexing);
	g_test_add_func("/record/unknown-role", test_unknown_role);
	g_test_add_func("/record/what-ends-the-connection", test_what_ends_the_connection);
	g_test_add_func("/record/begin-twice", test_begin_twice);
	g_test_add_func("/record/mutations", test_mutations);
	return (g_test_run());
}
