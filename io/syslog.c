/* io/syslog.c -- see syslog.h.  syslog(3) could wait, and would connect again, which the sandbox
 * forbids. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "io/syslog.h"

#define FACILITY_DAEMON (3 << 3)

static struct {
	int fd;
	const char *name;
} to = { .fd = -1 };

int
syslog_open(const char *name)
{
	const struct sockaddr_un log = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return (-errno);
	if (connect(fd, (const struct sockaddr *)&log, sizeof(log)) < 0) {
		err = -errno;
		close(fd);
		return (err);
	}
	to.fd = fd;
	to.name = name;
	return (0);
}

/* Severities of RFC 5424.  Timing lines and others without a level are information. */
static int
severity_of(struct text line)
{
	static const struct {
		struct text word;
		int severity;
	} levels[] = { { TEXT(" level=alert "), 1 }, { TEXT(" level=error "), 3 },
		{ TEXT(" level=warn "), 4 }, { TEXT(" level=info "), 6 } };

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (memmem(line.p, line.n < 64 ? line.n : 64, levels[i].word.p, levels[i].word.n) !=
		    NULL)
			return (levels[i].severity);
	return (text_starts(line, TEXT("ts=")) ? 6 : 3);
}

void
syslog_line(void *unused, struct text line)
{
	char head[96];
	struct iovec iov[2] = { { .iov_base = head }, { .iov_base = (void *)line.p } };
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	int n;

	(void)unused;
	if (line.n > 0 && line.p[line.n - 1] == '\n')
		line.n--;
	n = snprintf(head, sizeof(head), "<%d>%.64s[%d]: ", FACILITY_DAEMON | severity_of(line),
	    to.name, (int)getpid());
	iov[0].iov_len = (size_t)n;
	iov[1].iov_len = line.n;
	if (to.fd >= 0)
		(void)!sendmsg(to.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}
