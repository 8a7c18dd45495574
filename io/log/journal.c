/* io/log/journal.c -- see journal.h.  Each datagram names the address, so a journal that is started
 * again is found without a new socket. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "io/log/journal.h"
#include "io/log/syslog.h"

#define FIELDS_MAX ((size_t)2 * LOG_LINE_MAX) /* a key grows by "ACCEL_", and most have a value */
#define WAIT_US    100000

static const struct sockaddr_un journal = { .sun_family = AF_UNIX,
	.sun_path = "/run/systemd/journal/socket" };
static int sock = -1;

/* $JOURNAL_STREAM names the device and inode of the journal's stream. */
static bool
is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return (stream != NULL && sscanf(stream, "%" SCNuMAX ":%" SCNuMAX, &dev, &ino) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == (dev_t)dev &&
		st.st_ino == (ino_t)ino);
}

/* A container may have the stream and not the socket. */
static bool
is_there(void)
{
	int fd = syslog_connect(journal.sun_path);

	if (fd >= 0)
		close(fd);
	return (fd >= 0);
}

int
journal_open(void)
{
	const struct timeval wait = { .tv_usec = WAIT_US };

	if (sock >= 0)
		return (sock);
	if (!is_stderr() || !is_there())
		return (-ENOENT);
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return (-errno);
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	return (sock);
}

/* The quotes around a value have none inside, and no line break. */
static bool
next_field(struct text *line, struct text *key, struct text *value)
{
	char end = ' ';

	if (!text_next(line, '=', key) || line->p == NULL)
		return (false);
	if (line->n > 0 && line->p[0] == '"') {
		text_take(line, 1);
		end = '"';
	}
	if (!text_next(line, end, value))
		*value = TEXT_NONE;
	while (line->n > 0 && line->p[0] == ' ')
		text_take(line, 1);
	return (true);
}

static void
put_name(struct buf *out, struct text key)
{
	size_t i;

	buf_str(out, "ACCEL_");
	for (i = 0; i < key.n; i++)
		buf_char(out, !byte_is_alnum(key.p[i])  ? '_'
			      : byte_is_digit(key.p[i]) ? key.p[i]
							: (char)(key.p[i] & ~0x20));
	buf_char(out, '=');
}

void
journal_fields(struct buf *out, struct text line)
{
	struct text key, value;
	size_t whole;

	if (!text_starts(line, TEXT("ts=")))
		return;
	while (next_field(&line, &key, &value)) {
		if (text_eq(key, TEXT("level")))
			continue; /* it is PRIORITY */
		whole = out->n;
		put_name(out, key);
		buf_text(out, value);
		buf_char(out, '\n');
		if (out->failed) {
			out->n = whole;
			return;
		}
	}
}

ssize_t
journal_send(struct text line)
{
	char head[160], memory[FIELDS_MAX];
	struct buf fields = { .p = memory, .cap = sizeof(memory), .max = sizeof(memory) };
	struct text shown = line;
	struct iovec iov[4] = { { head, 0 }, { "MESSAGE=", 8 } };
	const struct msghdr m = { .msg_name = (void *)&journal,
		.msg_namelen = sizeof(journal),
		.msg_iov = iov,
		.msg_iovlen = 4 };

	if (shown.n > 0 && shown.p[shown.n - 1] == '\n')
		shown.n--;
	buf_char(&fields, '\n');
	journal_fields(&fields, shown);
	iov[0].iov_len = (size_t)snprintf(head, sizeof(head),
	    "PRIORITY=%u\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=%.64s\n", syslog_severity(line),
	    program_invocation_short_name);
	iov[2] = (struct iovec){ (void *)shown.p, shown.n };
	iov[3] = (struct iovec){ fields.p, fields.n };
	return (sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : (ssize_t)line.n);
}
