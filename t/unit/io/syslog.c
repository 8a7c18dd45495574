/* t/unit/io/syslog.c -- targets of lines for the system's log. */
#include <glib.h>
#include <string.h>

#include "io/log/syslog.h"

static void
test_targets(void)
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

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/syslog/targets", test_targets);
	return (g_test_run());
}
