/* textbook -- fcgi-stat-accel as libfcgi's own example would have it: what the product is measured
 * against.
 *
 *   textbook -s SOCKET [-t THREADS] [-r BYTES] [-H NAME] [-m]
 *
 * THREADS threads; each accepts, and answers the requests of its connection until that ends.  A
 * kept connection holds its thread: with more connections than threads, the rest wait for ever.
 * With -m they accept under a mutex, as libfcgi's example does for systems whose accept() needs it;
 * a thread that waits on its kept connection then holds up all others.
 */
#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 1024

static int listener;
static bool serialize;
static size_t start_max;
static const char *header = "X-Sendfile";

/* Opens the file and reads its start: 0, or an errno. */
static int
make_warm(const char *path, char *buf)
{
	struct stat st;
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (errno);
	if (fstat(fd, &st) < 0 || (start_max > 0 && read(fd, buf, start_max) < 0))
		err = errno;
	else if (!S_ISREG(st.st_mode))
		err = EACCES;
	close(fd);
	return (err);
}

static void
answer(FCGX_Request *r, char *buf)
{
	const char *path = FCGX_GetParam("SCRIPT_FILENAME", r->envp);
	int err = path != NULL ? make_warm(path, buf) : EACCES;

	if (err == 0)
		FCGX_FPrintF(r->out, "Status: 200 OK\r\n%s: %s\r\n\r\n", header, path);
	else
		FCGX_FPrintF(r->out, "Status: %s\r\nContent-Type: text/plain\r\n\r\n",
		    err == ENOENT ? "404 Not Found" : "403 Forbidden");
}

static void *
thread_main(void *arg)
{
	static pthread_mutex_t accept_mutex = PTHREAD_MUTEX_INITIALIZER;
	char *buf = malloc(start_max + 1);
	FCGX_Request r;
	int rc;

	if (buf == NULL || FCGX_InitRequest(&r, listener, 0) != 0)
		exit(71);
	for (;;) {
		if (serialize)
			pthread_mutex_lock(&accept_mutex);
		rc = FCGX_Accept_r(&r);
		if (serialize)
			pthread_mutex_unlock(&accept_mutex);
		if (rc < 0)
			break;
		answer(&r, buf);
		FCGX_Finish_r(&r);
	}
	free(buf);
	return (NULL);
}

int
main(int argc, char **argv)
{
	const char *socket = NULL;
	int c, threads = 1;
	pthread_t t;

	while ((c = getopt(argc, argv, "s:t:r:H:m")) != -1) {
		switch (c) {
		case 's': socket = optarg; break;
		case 't': threads = atoi(optarg); break;
		case 'r': start_max = strtoul(optarg, NULL, 10); break;
		case 'm': serialize = true; break;
		case 'H': header = optarg; break;
		default:
			socket = NULL;
			optind = argc;
			break;
		}
	}
	if (socket == NULL || threads < 1) {
		fputs("usage: textbook -s SOCKET [-t THREADS] [-r BYTES] [-H NAME] [-m]\n", stderr);
		return (64);
	}
	if (FCGX_Init() != 0 || (listener = FCGX_OpenSocket(socket, BACKLOG)) < 0) {
		perror(socket);
		return (71);
	}
	while (--threads > 0)
		if (pthread_create(&t, NULL, thread_main, NULL) != 0)
			return (71);
	thread_main(NULL);
	return (0);
}
