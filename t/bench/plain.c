/* plain -- what a file system gives to N threads that just read.
 *
 *   plain [-j THREADS] [-d SECONDS] [LIST]
 *
 * Reads file names, one a line, from LIST or standard input; THREADS threads take the next name,
 * open it, stat it and read it to its end.  Stops after the last name or after SECONDS.  Prints
 * files per second and MB per second (10^6 bytes): the mark no server can pass on the same disk;
 * and the CPU time of one file, most of it the kernel's, which a server pays too.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 1024

static char **names;
static size_t n_names;
static double deadline;
static atomic_size_t next_name;
static atomic_ullong files, bytes, errors;

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
}

/* getrusage() counts ticks of the clock on some kernels: 0 for a short run. */
static double
cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
}

static void
read_one(const char *name, char *buf, size_t size)
{
	struct stat st;
	ssize_t n = -1;
	int fd;

	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0)
		while ((n = read(fd, buf, size)) > 0 && now() < deadline)
			bytes += (unsigned long long)n;
	if (fd >= 0)
		close(fd);
	if (n == 0)
		files++;
	else if (n < 0)
		errors++;
}

static void *
thread_main(void *arg)
{
	static const size_t size = 128 * 1024;
	char *buf = malloc(size);
	size_t i;

	while (buf != NULL && now() < deadline && (i = next_name++) < n_names)
		read_one(names[i], buf, size);
	free(buf);
	return (NULL);
}

static void
list_read(FILE *f)
{
	char *line = NULL;
	size_t cap = 0, room = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, f)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (n_names == room) {
			room = room == 0 ? 1024 : 2 * room;
			if ((names = realloc(names, room * sizeof(*names))) == NULL)
				exit(71);
		}
		if ((names[n_names++] = strdup(line)) == NULL)
			exit(71);
	}
	free(line);
}

static void
usage(FILE *to)
{
	fputs("usage: plain [-j THREADS] [-d SECONDS] [LIST]\n"
	      "THREADS (1) threads read the files named in LIST, for at most SECONDS (60).\n",
	    to);
}

int
main(int argc, char **argv)
{
	static const struct option long_options[] = { { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 } };
	pthread_t t[THREADS_MAX];
	double start, seconds = 60;
	int c, i, n = 1;
	FILE *f = stdin;

	while ((c = getopt_long(argc, argv, "j:d:h", long_options, NULL)) != -1) {
		switch (c) {
		case 'j': n = atoi(optarg); break;
		case 'd': seconds = atof(optarg); break;
		case 'h': usage(stdout); return (0);
		default: usage(stderr); return (64);
		}
	}
	if (n < 1 || n > THREADS_MAX || !(seconds > 0 && seconds <= 3600)) {
		usage(stderr);
		return (64);
	}
	if (optind < argc && (f = fopen(argv[optind], "r")) == NULL) {
		fprintf(stderr, "plain: %s: %s\n", argv[optind], strerror(errno));
		return (66);
	}
	list_read(f);
	start = now();
	deadline = start + seconds;
	for (i = 0; i < n; i++) {
		if (pthread_create(&t[i], NULL, thread_main, NULL) != 0) {
			fputs("plain: cannot start a thread\n", stderr);
			return (71);
		}
	}
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	seconds = now() - start;
	printf("files=%llu errors=%llu bytes=%llu seconds=%.3f files_per_s=%.1f mb_per_s=%.2f "
	       "cpu_us=%.1f\n",
	    files, errors, bytes, seconds, (double)files / seconds, (double)bytes / seconds / 1e6,
	    files > 0 ? cpu_seconds() * 1e6 / (double)files : 0);
	return (errors > 0);
}
