/* server/ctl/ask.c -- asks a server through its control socket; server/process/control.c has the
 * protocol.
 *
 * The answer is printed without control characters: the process that answers may be an intruder.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "proxy-core/address.h"
#include "server/ctl/impl.h"

#define GREETING_MS 10000 /* a server whose main thread hangs does not greet */
#define ANSWER_MAX  (1u << 20)
#define EXIT_WORD   "exit "

static int
connect_to(const char *name)
{
	struct address a;
	int fd;

	if (address_parse(name, &a) != 0)
		return (-EINVAL);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return (-errno);
	if (connect(fd, &a.sa, a.len) == 0)
		return (fd);
	close(fd);
	return (-errno);
}

/* Reads until the end of file, or of the first line. */
static bool
read_more(int fd, struct buf *in, bool line, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n;

	while (!line || in->n == 0 || memchr(in->p, '\n', in->n) == NULL) {
		if (poll(&p, 1, timeout_ms) == 0)
			return (false);
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || in->failed)
			return (n == 0 && !line);
		buf_add(in, bytes, (size_t)n);
	}
	return (true);
}

static void
print(FILE *to, struct text said)
{
	struct text line;
	struct buf out;

	buf_init(&out, 0);
	while (text_next(&said, '\n', &line)) {
		size_t i;

		for (i = 0; i < line.n; i++)
			buf_char(&out, (unsigned char)line.p[i] < ' ' ? '?' : line.p[i]);
		if (line.n != 0)
			buf_char(&out, '\n');
	}
	if (out.n != 0) /* NULL else */
		fwrite(out.p, 1, out.n, to);
	buf_free(&out);
}

static int
report(enum ctl_verb verb, struct text answer)
{
	static const char *const done[CTL_VERBS] = {
		[CTL_RELOAD] = "reloaded",
		[CTL_UPGRADE] = "upgraded",
		[CTL_REOPEN] = "reopened",
		[CTL_DRAIN] = "stopped",
		[CTL_UNDRAIN] = "serving",
		[CTL_STOP] = "stopped",
		[CTL_QUIT] = "stopped",
	};
	struct text head = TEXT_NONE;
	uint64_t status;

	if (!text_next(&answer, '\n', &head) || !text_starts(head, TEXT(EXIT_WORD)) ||
	    text_u64((struct text){ head.p + strlen(EXIT_WORD), head.n - strlen(EXIT_WORD) },
		&status) != 0 ||
	    status > 255) {
		fprintf(stderr, "accel-server ctl: the server ended before it answered\n");
		return (EX_SOFTWARE);
	}
	print(status == 0 || verb == CTL_STATUS ? stdout : stderr, answer);
	if (status == 0 && done[verb] != NULL)
		printf("%s\n", done[verb]);
	else if (status != 0 && verb == CTL_STATUS)
		fprintf(stderr, "accel-server ctl: a loop stands still\n");
	else if (status != 0)
		fprintf(stderr, "accel-server ctl: not done; the server goes on as it is\n");
	return ((int)status);
}

static int
converse(int fd, enum ctl_verb verb, const char *request)
{
	struct buf in;
	int rc;

	buf_init(&in, ANSWER_MAX);
	if (dprintf(fd, "%s\n", request) < 0 || !read_more(fd, &in, true, GREETING_MS)) {
		fprintf(stderr, "accel-server ctl: the server does not answer\n");
		buf_free(&in);
		return (EX_UNAVAILABLE);
	}
	buf_drop(&in, (size_t)((char *)memchr(in.p, '\n', in.n) + 1 - in.p));
	(void)read_more(fd, &in, false, -1);
	rc = report(verb, buf_as_text(&in));
	buf_free(&in);
	return (rc);
}

int
ctl_ask(const char *name, enum ctl_verb verb, const char *request)
{
	int fd = connect_to(name), rc;

	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return (CTL_NO_SOCKET);
	if (fd < 0) {
		fprintf(stderr, "accel-server ctl: %s: %s%s\n", name, strerror(-fd),
		    fd == -EACCES ? "; only root and the user who started the server may" : "");
		return (fd == -EACCES ? EX_NOPERM : EX_UNAVAILABLE);
	}
	signal(SIGPIPE, SIG_IGN);
	rc = converse(fd, verb, request);
	close(fd);
	return (rc);
}
