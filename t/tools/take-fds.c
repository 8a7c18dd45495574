/* take-fds -- a FastCGI client that receives descriptors (SCM_RIGHTS).
 *
 *   take-fds N PATH|PORT [FIFO FROM BYTES] <REQUESTS
 *
 * Sends its standard input to the unix socket, or to 127.0.0.1, and prints a line for each of N
 * answers: "ID STATUS ERRNO DEV:INODE FLAGS".  ERRNO is that of Warm-Errno; 0: there is none.
 * The rest is about the descriptor that came with the first byte of the answer; "-": none.
 * A descriptor at any other byte ends it with status 1.  It receives single bytes, so that the
 * kernel tells to which byte a descriptor belongs.
 * With FIFO it keeps each descriptor, waits for the end of FIFO, reads BYTES of the file from FROM,
 * and prints a line "read N".
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#define HEAD        8
#define END_REQUEST 3
#define STDOUT      6

static int
connect_to(const char *where)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(where)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int is_path = strchr(where, '/') != NULL, fd, rc;

	strncpy(un.sun_path, where, sizeof(un.sun_path) - 1);
	fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = is_path ? connect(fd, (struct sockaddr *)&un, sizeof(un))
		     : connect(fd, (struct sockaddr *)&in, sizeof(in));
	if (rc == 0)
		return (fd);
	perror(where);
	exit(EX_UNAVAILABLE);
}

static void
send_all(int sock)
{
	char bytes[65536];
	ssize_t n, at, k;

	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
		for (at = 0; at < n; at += k) {
			k = write(sock, bytes + at, (size_t)(n - at));
			if (k < 0)
				exit(EX_IOERR);
		}
	}
}

/* One byte, and the descriptor that came with it; -1: none. */
static unsigned char
take_byte(int sock, int *fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	unsigned char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1) {
		puts("end");
		exit(EX_IOERR);
	}
	*fd = -1;
	if (msg.msg_controllen == 0)
		return (byte);
	if (control.head.cmsg_len != CMSG_LEN(sizeof(int)) || (msg.msg_flags & MSG_CTRUNC)) {
		puts("more than one descriptor");
		exit(1);
	}
	memcpy(fd, CMSG_DATA(&control.head), sizeof(*fd));
	return (byte);
}

static unsigned char
take_plain(int sock)
{
	int fd;
	unsigned char byte = take_byte(sock, &fd);

	if (fd < 0)
		return (byte);
	puts("a descriptor with a byte that is not the first of an answer");
	exit(1);
}

static void
wait_for_end(const char *fifo)
{
	int fd = open(fifo, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd < 0) {
		perror(fifo);
		exit(EX_NOINPUT);
	}
	while (read(fd, &byte, 1) > 0)
		;
	close(fd);
}

static void
read_later(int fd, char **how)
{
	size_t bytes = strtoul(how[2], NULL, 10);
	char *to = malloc(bytes);
	ssize_t n;

	fflush(stdout);
	wait_for_end(how[0]);
	n = to != NULL ? pread(fd, to, bytes, atol(how[1])) : -1;
	free(to);
	printf("read %zd\n", n);
}

static void
print_answer(unsigned id, const char *text, int fd, char **how)
{
	const char *err = strstr(text, "\r\nWarm-Errno: ");
	struct stat st;

	printf("%u %.3s %d ", id, strncmp(text, "Status: ", 8) == 0 ? text + 8 : "-",
	    err != NULL ? atoi(err + strlen("\r\nWarm-Errno: ")) : 0);
	if (fd < 0)
		puts("- -");
	else if (fstat(fd, &st) == 0)
		printf("%lu:%lu %s%s\n", (unsigned long)st.st_dev, (unsigned long)st.st_ino,
		    (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? "r" : "w",
		    S_ISDIR(st.st_mode) ? "d" : "");
	if (fd >= 0 && how != NULL)
		read_later(fd, how);
	if (fd >= 0)
		close(fd);
}

/* Reads records up to END_REQUEST. */
static void
take_answer(int sock, char **how)
{
	unsigned char head[HEAD];
	char text[4096] = "";
	size_t len = 0, n, i;
	int fd = -1, first = 1;

	do {
		for (i = 0; i < HEAD; i++)
			head[i] = first && i == 0 ? take_byte(sock, &fd) : take_plain(sock);
		first = 0;
		n = (size_t)(head[4] << 8 | head[5]);
		for (i = 0; i < n + head[6]; i++) {
			char c = (char)take_plain(sock);

			if (head[1] == STDOUT && i < n && len + 1 < sizeof(text))
				text[len++] = c;
		}
	} while (head[1] != END_REQUEST);
	print_answer((unsigned)(head[2] << 8 | head[3]), text, fd, how);
}

int
main(int argc, char **argv)
{
	int sock, n;

	if (argc != 3 && argc != 6) {
		fprintf(stderr, "usage: take-fds N PATH|PORT [FIFO FROM BYTES] <REQUESTS\n");
		return (EX_USAGE);
	}
	sock = connect_to(argv[2]);
	send_all(sock);
	for (n = atoi(argv[1]); n > 0; n--)
		take_answer(sock, argc == 6 ? argv + 3 : NULL);
	return (0);
}
