/* io/log/syslog.c -- see syslog.h.  syslog(3) could wait, and would connect again, which the
 * sandbox forbids. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "io/log/syslog.h"

#define FACILITY_DAEMON (3 << 3)
#define FACILITY_MAX    (23u << 3)

static struct {
	int fd;
	const char *name;
} to = { .fd = -1 };

int
syslog_connect(const char *path)
{
	struct sockaddr_un log = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(log.sun_path))
		return (-ENAMETOOLONG);
	strcpy(log.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (-errno);
	if (connect(fd, (const struct sockaddr *)&log, sizeof(log)) == 0)
		return (fd);
	err = -errno;
	close(fd);
	return (err);
}

int
syslog_open(const char *name)
{
	int fd = syslog_connect("/dev/log");

	if (fd < 0)
		return (fd);
	to.fd = fd;
	to.name = name;
	return (0);
}

#define SEVERITY_ERROR 3

unsigned
syslog_severity(struct text line)
{
	static const unsigned of
	    [] = { [LOG_ALERT] = 1, [LOG_ERROR] = SEVERITY_ERROR, [LOG_WARN] = 4, [LOG_INFO] = 6 };

	return (of[log_level_of(line)]);
}

static ssize_t
send_line(int fd, int priority, const char *name, struct text line)
{
	char head[96];
	struct iovec iov[2] = { { .iov_base = head }, { .iov_base = (void *)line.p } };
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

	if (line.n > 0 && line.p[line.n - 1] == '\n')
		line.n--;
	iov[0].iov_len =
	    (size_t)snprintf(head, sizeof(head), "<%d>%.64s[%d]: ", priority, name, (int)getpid());
	iov[1].iov_len = line.n;
	return (sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0);
}

static void
send_to_daemon(unsigned severity, struct text line)
{
	if (to.fd >= 0)
		(void)send_line(to.fd, (int)(FACILITY_DAEMON | severity), to.name, line);
}

void
syslog_line(void *unused, struct text line)
{
	(void)unused;
	send_to_daemon(syslog_severity(line), line);
}

void
syslog_message(struct text line)
{
	send_to_daemon(SEVERITY_ERROR, line);
}

/* ---- targets */

bool
syslog_target_parse(const char *target, struct syslog_target *t)
{
	struct text rest = text_of(target), facility, severity;
	uint64_t f, s = 0;

	if (!text_next(&rest, ',', &facility) || !text_next(&rest, ',', &severity) ||
	    rest.p == NULL || text_u64(facility, &f) != 0 || f > FACILITY_MAX)
		return (false);
	if (!text_eq(severity, TEXT("e")) && (text_u64(severity, &s) != 0 || s > 7))
		return (false);
	*t = (struct syslog_target){ (unsigned)f, severity.p[0] == 'e' ? -1 : (int)s, rest.p };
	return (true);
}

ssize_t
syslog_send(int fd, const char *target, struct text line)
{
	struct text part = { line.p, line.n < SYSLOG_LINE_MAX ? line.n : SYSLOG_LINE_MAX };
	struct syslog_target t;
	ssize_t err;

	if (!syslog_target_parse(target, &t))
		return (-EINVAL);
	err = send_line(fd,
	    (int)(t.facility | (t.severity >= 0 ? (unsigned)t.severity : syslog_severity(line))),
	    "accel-server", part);
	return (err < 0 ? err : (ssize_t)line.n);
}
