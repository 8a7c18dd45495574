/* t/unit/io/journal.c -- the fields of a line that the journal gets. */
#include "base/buf.h"
#include "base/log.h"
#include "io/log/journal.h"
#include "io/log/syslog.h"
#include "t/unit/test.h"

static void
check(const char *line, const char *fields)
{
	struct buf out;

	buf_init(&out, 0);
	buf_char(&out, '|');
	journal_fields(&out, text_of(line));
	g_assert_cmpmem(out.p + 1, out.n - 1, fields, strlen(fields));
	buf_free(&out);
}

TEST("/journal/fields")
{
	check("ts=1.5 level=warn ev=a.b id=c1.2 path=\"/a b=c\" waited-ms=30 e=\"\" x=y",
	    "ACCEL_TS=1.5\nACCEL_EV=a.b\nACCEL_ID=c1.2\nACCEL_PATH=/a b=c\nACCEL_WAITED_MS=30\n"
	    "ACCEL_E=\nACCEL_X=y\n");
	check("ts=1 level=info ev=quoted v=\"a\\x0aPRIORITY=0\"",
	    "ACCEL_TS=1\nACCEL_EV=quoted\nACCEL_V=a\\x0aPRIORITY=0\n");
	check("ts=1 level=info ev=cut v=\"abc...", "ACCEL_TS=1\nACCEL_EV=cut\nACCEL_V=abc...\n");
	check("ts=1 level=info ev=cut v=\"abc\" lon...", "ACCEL_TS=1\nACCEL_EV=cut\nACCEL_V=abc\n");
	check("ts=1 level=info ev=cut v=", "ACCEL_TS=1\nACCEL_EV=cut\nACCEL_V=\n");
	check("", "");
	check("network_writev.c.7: (trace) write-start: 1.2 path=\"/x\"", "");
	check("{\"ts\":1,\"level\":\"warn\"}", "");
}

static struct buf *line_of_test;

static void
take(void *arg, struct text line)
{
	buf_text(line_of_test, line);
}

/* Whatever a client sends: one field for each key, whole lines, and no name but ACCEL_. */
TEST("/journal/random")
{
	static const char bits[] = "a\"\\= \n\t\x80\xc3\xa4Z_-{}'\x01.";
	char in[600];
	struct buf line, out;
	unsigned round, fields;
	size_t i, n;

	buf_init(&line, 0);
	buf_init(&out, 0);
	line_of_test = &line;
	log_set_sink(take, NULL);
	for (round = 0; round < 20000; round++) {
		n = (size_t)g_test_rand_int_range(0, (gint32)sizeof(in));
		for (i = 0; i < n; i++)
			in[i] = bits[g_test_rand_int_range(0, (gint32)sizeof(bits) - 1)];
		line.n = out.n = 0;
		log_event(LOG_WARN, "c1.1", "any", LF_TEXT("t", ((struct text){ in, n })),
		    LF_U64("n", 7));
		g_assert_cmpuint(syslog_severity(buf_as_text(&line)), ==, 4);
		journal_fields(&out, (struct text){ line.p, line.n - 1 });
		buf_char(&out, '\0');
		for (fields = 0, i = 0; i + 1 < out.n; fields++) {
			g_assert_true(g_str_has_prefix(out.p + i, "ACCEL_"));
			i = (size_t)(strchr(out.p + i, '\n') - out.p) + 1;
		}
		g_assert_cmpuint(fields, ==, 5);
		g_assert_true(g_str_has_suffix(out.p, "\nACCEL_N=7\n"));
	}
	log_set_sink(NULL, NULL);
	buf_free(&line);
	buf_free(&out);
}

/* A full buffer ends between two fields. */
TEST("/journal/full")
{
	char memory[40];
	struct buf out;
	size_t n;

	for (n = 1; n <= sizeof(memory); n++) {
		out = (struct buf){ .p = memory, .cap = n, .max = n };
		journal_fields(&out, TEXT("ts=1 level=info ev=abc xyz=1"));
		g_assert_cmpuint(out.n, ==, n < 11 ? 0 : n < 24 ? 11 : n < 36 ? 24 : 36);
	}
}
