/* t/unit/io/notify.c -- reports to a service manager that reads, hangs or is not there. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/start/notify.h"
#include "t/unit/test.h"

static struct sockaddr_un un = { .sun_family = AF_UNIX };

static int
manager(const char *dir)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	g_assert_cmpint(fd, >=, 0);
	g_snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", dir);
	g_assert_cmpint(bind(fd, (const struct sockaddr *)&un, sizeof(un)), ==, 0);
	g_setenv("NOTIFY_SOCKET", un.sun_path, TRUE);
	return (fd);
}

static void
fill_queue(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	while (sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&un, sizeof(un)) == 1)
		;
	close(fd);
}

/* A report that waits for ever ends the test by SIGALRM. */
TEST("/notify/manager-hangs")
{
	char *dir = g_dir_make_tmp("accel-notify-XXXXXX", NULL), said[64] = "";
	int fd = manager(dir);

	alarm(60);
	notify_manager("READY=1");
	g_assert_cmpint(recv(fd, said, sizeof(said) - 1, 0), ==, 7);
	g_assert_cmpstr(said, ==, "READY=1");
	fill_queue();
	notify_manager("WATCHDOG=1");
	close(fd);
	notify_manager("WATCHDOG=1");
	unlink(un.sun_path);
	notify_manager("WATCHDOG=1");
	alarm(0);
	rmdir(dir);
	g_free(dir);
}

TEST("/notify/wrong-names")
{
	g_autofree char *name = g_strnfill(200, 'x');

	g_setenv("NOTIFY_SOCKET", name, TRUE);
	notify_manager("READY=1");
	g_setenv("NOTIFY_SOCKET", "", TRUE);
	notify_manager("READY=1");
	g_setenv("NOTIFY_SOCKET", "@", TRUE);
	notify_manager("READY=1");
	g_setenv("NOTIFY_SOCKET", "/dev/null", TRUE);
	notify_manager("READY=1");
	g_unsetenv("NOTIFY_SOCKET");
	notify_manager("READY=1");
}
