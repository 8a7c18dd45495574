/* t/unit/io/syslog.c -- targets of lines for the system's log. */
#include <string.h>

#include "io/log/syslog.h"
#include "t/unit/test.h"

TEST("/syslog/targets")
{
	static const char *const bad[] = { "", "24", "24,", "24,6", "x,6,/l", "24,8,/l", "24,x,/l",
		"200,6,/l", ",,/l" };
	struct syslog_target t;

	g_assert_true(syslog_target_parse("24,6,/dev/log", &t));
	g_assert_cmpuint(t.facility, ==, 24);
	g_assert_cmpint(t.severity, ==, 6);
	g_assert_cmpstr(t.socket, ==, "/dev/log");
	g_assert_true(syslog_target_parse("184,e,/a,b", &t));
	g_assert_cmpint(t.severity, ==, -1);
	g_assert_cmpstr(t.socket, ==, "/a,b");
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(syslog_target_parse(bad[i], &t));
}
