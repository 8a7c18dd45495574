/* t/unit/wire/fcgi_record.c -- FastCGI records to requests: parameters, padding, limits. */
#include "t/unit/test.h"
#include "t/unit/wire/fcgi_record_test.h"

TEST("/record/one-request")
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A);
	REC(s, 4, 1, "");
	REC(s, 5, 1, "");
	check(s, WHOLE_X "|");
}

TEST("/record/pairs-straddle-records")
{
	GString *s = new_begun();

	rec_padded(s, 4, 1, PATH_A, 1, 7);
	rec_padded(s, 4, 1, PATH_A + 1, 9, 255);
	rec_padded(s, 4, 1, PATH_A + 10, 9, 1);
	rec_padded(s, 4, 1, "", 0, 8);
	rec_padded(s, 5, 1, "", 0, 3);
	check(s, WHOLE_X "|");
}

TEST("/record/long-lengths")
{
	GString *s = new_begun();

	REC(s, 4, 1, "\x80\0\0\x0f\x80\0\0\x02SCRIPT_FILENAME/a");
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|");
}

TEST("/record/only-names-in-use")
{
	GString *s = new_begun();

	REC(s, 4, 1,
	    "\x0b\x01HTTP_COOKIEx" PATH_A "\x00\x00"
	    "\x09\x01"
	    "FCGI_ROLEx");
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|");
}

TEST("/record/nul-leaves-no-name")
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A "\x09\x03WARM_PATH/\0x");
	REC(s, 4, 1, "");
	check(s, NONE_X "|");
}

TEST("/record/two-requests")
{
	GString *s = new_begun();

	REC(s, 4, 1, "");
	REC(s, 5, 1, "some body");
	REC(s, 5, 1, "");
	begin(s, 0x1234, 2, 0);
	REC(s, 4, 0x1234, "");
	check(s, NONE_X "R4660[0101123400080000"
			"0002010000000000"
			"0104123400000000]|");
}

TEST("/record/half-a-request-is-owed")
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A);
	check(s, "?|");
	s = g_string_new(NULL);
	g_string_append_len(s, "\1\1\0", 3);
	check(s, "?|");
	s = g_string_new(NULL); /* the body has no reader */
	REC(s, 5, 9, "bodybody");
	g_string_truncate(s, s->len - 3);
	check(s, "|");
}

TEST("/record/lengths-that-lie")
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "\xff\xff\xff\xff\xff\xff\xff\xff", 8 }, /* INT_MAX + INT_MAX */
		{ "\xff\xff\xff\xfe\x00", 5 },             /* aborts libfcgi 2.4.2 */
		{ "\x80\x00\x00\x01\xff\xff\xff\xfdx", 9 },
		{ "\x0f\x03SCRIPT_FILENAME/a", 19 }, /* one short */
		{ "\x01", 1 },
		{ "\x80", 1 },
		{ "\x80\0\0", 3 },
		{ "\x01\x80\0\0", 4 },
		{ "\x01\x01", 2 },
		{ "\x01\x01"
		  "a",
		    3 },
	};

	for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
		GString *s = new_begun();

		rec(s, 4, 1, bad[i].bytes, bad[i].n);
		REC(s, 4, 1, "");
		check(s, "B|");
	}
}

TEST("/record/params-have-a-limit")
{
	static const char block[32768];
	GString *s = new_begun();

	rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, block, sizeof(block) - 1); /* 65535: names and values of length 0 */
	rec(s, 4, 1, "", 0);
	check(s, "B|"); /* an odd number: the last pair is cut */
	s = new_begun();
	rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, block, sizeof(block) - 2);
	rec(s, 4, 1, "", 0);
	check(s, NONE_X "|");
	s = new_begun();
	rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, block, sizeof(block));
	check(s, "?|"); /* the web server owes us the end of it */
	s = new_begun();
	for (int i = 0; i < 32; i++)
		rec(s, 4, 1, block, sizeof(block));
	rec(s, 4, 1, "", 0);
	check(s, NONE_X "|"); /* it is answered, without its variables */
}

TEST("/record/long-params-are-not-kept")
{
	static const char block[32768];
	GString *s = new_begun(), *reply = g_string_new(NULL);
	struct record r;
	struct text in;

	for (int i = 0; i < 32; i++)
		rec(s, 4, 1, block, sizeof(block));
	in = (struct text){ s->str, s->len };
	record_init(&r, &conf);
	g_assert_cmpint(record_feed(&r, &in, reply), ==, RECORD_MORE);
	g_assert_true(r.too_long);
	g_assert_cmpuint(r.params->len, <=, RECORD_PARAMS_MAX);
	g_assert_false(record_idle(&r)); /* so its deadline runs */
	record_free(&r);
	g_string_free(s, TRUE);
	g_string_free(reply, TRUE);
}

TEST("/record/long-path")
{
	GString *s = new_begun(), *pair = g_string_new(NULL);
	const uint8_t lengths[] = { 15, 0x80, 0, 0xff, 0xeb };
	struct record r;
	struct text in;

	g_string_append_len(pair, (const char *)lengths, sizeof(lengths));
	g_string_append(pair, "SCRIPT_FILENAME");
	for (size_t i = 0; i < 0xffeb; i++)
		g_string_append_c(pair, '/');
	g_assert_cmpuint(pair->len, ==, RECORD_PARAMS_MAX);
	rec(s, 4, 1, pair->str, pair->len);
	REC(s, 4, 1, "");
	in = (struct text){ s->str, s->len };
	record_init(&r, &conf);
	g_assert_cmpint(record_feed(&r, &in, NULL), ==, RECORD_REQUEST);
	g_string_free(pair, TRUE);
	pair = record_take(&r);
	g_assert_true(g_string_equal(pair, s)); /* it was canonical already */
	g_string_free(pair, TRUE);
	g_string_free(s, TRUE);
	record_free(&r);
}

/* Requests with bytes turned at random: never a crash, and the same result however they are cut. */
TEST("/record/mutations")
{
	GRand *rand = g_rand_new_with_seed(20070127);

	for (int round = 0; round < 20000; round++) {
		g_autoptr(GString) s = new_begun();
		char *whole, *pieces;

		REC(s, 4, 1, PATH_A "\x0b\x01HTTP_COOKIEx");
		REC(s, 9, 0,
		    "\x0d\x00"
		    "FCGI_MAX_REQS");
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
	}
	g_rand_free(rand);
}
