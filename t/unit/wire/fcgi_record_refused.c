/* t/unit/wire/fcgi_record_refused.c -- requests that fcgi_record refuses, ends or holds back. */
#include "t/unit/test.h"
#include "t/unit/wire/fcgi_record_test.h"

TEST("/record/management")
{
	GString *s = g_string_new(NULL);

	REC(s, 9, 0,
	    "\x0e\x00"
	    "FCGI_MAX_CONNS"
	    "\x0d\x00"
	    "FCGI_MAX_REQS"
	    "\x0f\x00"
	    "FCGI_MPXS_CONNS"
	    "\x05\x00"
	    "OTHER");
	check(s, "|010a000000370000"
		 "0e04464347495f4d41585f434f4e4e5331303030"
		 "0d02464347495f4d41585f524551533230"
		 "0f01464347495f4d5058535f434f4e4e5330");
	s = g_string_new(NULL);
	REC(s, 9, 0, "");
	check(s, "|010a000000000000");
	s = g_string_new(NULL);
	REC(s, 77, 0, "what");
	check(s, "|010b000000080000"
		 "4d00000000000000");
}

TEST("/record/management-within-a-request")
{
	GString *s = new_begun();

	REC(s, 4, 1, PATH_A);
	REC(s, 200, 0, "");
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|010b000000080000"
			 "c800000000000000");
}

TEST("/record/abort")
{
	GString *s = new_begun();

	REC(s, 2, 1, "");
	check(s, "A|0103000100080000"
		 "0000000000000000");
	s = g_string_new(NULL);
	REC(s, 2, 7, ""); /* no request of that number runs */
	check(s, "|");
}

/* The request is aborted while its file is looked up. */
TEST("/record/abort-of-what-was-taken")
{
	GString *s = new_begun();

	REC(s, 4, 1, "");
	REC(s, 5, 1, "half a body");
	REC(s, 2, 1, "");
	REC(s, 2, 1, ""); /* once is enough */
	begin(s, 2, 1, 1);
	REC(s, 4, 2, "");
	answer_at_once = false;
	check(s, NONE_X "A"
			"R2k[0101000200080000"
			"0001010000000000"
			"0104000200000000]"
			"|0103000100080000"
			"0000000000000000");
	answer_at_once = true;
}

TEST("/record/next-request-is-held-back")
{
	GString *s = new_begun();

	REC(s, 4, 1, "");
	REC(s, 5, 1, "");
	REC(s, 4, 1, "late names"); /* of no interest */
	REC(s, 77, 0, "");          /* it is still answered */
	begin(s, 1, 1, 1);
	REC(s, 4, 1, "");
	answer_at_once = false;
	check(s, NONE_X "H" NONE_X "|010b000000080000"
			"4d00000000000000");
	answer_at_once = true;
}

TEST("/record/no-multiplexing")
{
	GString *s = new_begun();

	begin(s, 2, 1, 1);
	REC(s, 4, 2, "\xff\xff"); /* of no interest any more */
	REC(s, 4, 1, PATH_A);
	REC(s, 4, 1, "");
	check(s, WHOLE_X "|0103000200080000"
			 "0000000001000000");
}

TEST("/record/unknown-role")
{
	GString *s = g_string_new(NULL);

	begin(s, 3, 9, 1);
	REC(s, 4, 3, PATH_A);
	REC(s, 4, 3, "");
	check(s, "|0103000300080000"
		 "0000000003000000");
	s = g_string_new(NULL);
	begin(s, 3, 0, 0);
	check(s, "C|0103000300080000"
		 "0000000003000000");
}

TEST("/record/what-ends-the-connection")
{
	static const char heads[][8] = {
		{ 0, 1, 0, 1, 0, 8, 0, 0 },
		{ 2, 1, 0, 1, 0, 8, 0, 0 }, /* version */
		{ 1, 1, 0, 0, 0, 8, 0, 0 }, /* BEGIN of nothing */
		{ 1, 1, 0, 1, 0, 7, 0, 0 },
		{ 1, 1, 0, 1, 0, 9, 0, 0 }, /* BEGIN of wrong length */
		{ 1, 4, 0, 0, 0, 0, 0, 0 },
		{ 1, 0, 0, 0, 0, 0, 0, 0 },
		{ 1, 3, 0, 1, 0, 0, 0, 0 },
		{ 1, 6, 0, 1, 0, 0, 0, 0 }, /* what only we may say */
		{ 1, 9, 0, 1, 0, 0, 0, 0 },
		{ 1, 99, 0, 1, 0, 0, 0, 0 },
		{ 1, 9, 0, 0, 1, 1, 0, 0 }, /* GET_VALUES too long */
		{ 'G', 'E', 'T', ' ', '/', ' ', 'H', 'T' },
	};

	for (guint i = 0; i < G_N_ELEMENTS(heads); i++) {
		GString *s = g_string_new(NULL);

		g_string_append_len(s, heads[i], 8);
		check(s, "B|");
	}
}

TEST("/record/begin-twice")
{
	GString *s = new_begun();

	begin(s, 1, 1, 1);
	check(s, "B|");
}
