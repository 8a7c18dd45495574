/* slowfs -- a read-only view of a directory that behaves like disks with nothing in memory.
 *
 *   slowfs [-n SPINDLES] [--lookup-ms N] [--open-ms N] [--read-ms N] [--jitter PCT] SOURCE MOUNTPOINT
 *
 * Each look-up of a name and each read of up to 128 KiB is one request to a disk.  Requests wait in
 * one queue, oldest first; SPINDLES threads take them from there, and each sleeps for the time its
 * request costs:
 *
 *     kernel --> receiver --> [ queue ] --> spindle 1 .. N --> sleep --> answer
 *                   `--> what is in memory on a real system too is answered at once
 *
 * The kernel is told to keep names, attributes (absences too) and pages, so that what was touched
 * once is fast from then on, until it is forgotten under memory pressure, as on a real disk.
 * The receiver never sleeps: any number of requests may wait without needing a thread each.
 */
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef STAT_ACCEL_VERSION
#define STAT_ACCEL_VERSION "0"
#endif

#define READ_MAX	(128 * 1024)	/* bytes in one request to the disk */
#define SPINDLES_MAX	1024
#define BUCKETS		65536
#define FOREVER		86400.0		/* seconds the kernel may keep what it was told */

/* A name the kernel knows.  Names, not descriptors: a pool of 100,000 files must not need as many
 * descriptors.  Nothing is ever renamed, the view is read-only. */
struct node {
	struct node *next;		/* in its bucket */
	uint64_t lookups;		/* how often the kernel was told; it gives them back by forget */
	char path[];			/* below the source, "." for the source itself */
};

struct job {
	struct job *next;
	void (*answer)(struct job *);
	fuse_req_t req;
	struct node *node;		/* the parent of a look-up, else the file itself */
	double ms;
	struct fuse_file_info fi;
	size_t size;
	off_t off;
	char name[];
};

static struct {
	int spindles;
	double lookup_ms, open_ms, read_ms, jitter;
	bool until_eof;
} opt = { .spindles = 2, .lookup_ms = 8, .read_ms = 8 };

static int source_fd;
static struct node root = { .lookups = 1, .path = "." };

static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *nodes[BUCKETS];

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct job *queue_head, **queue_tail = &queue_head;
static uint64_t jobs_taken;

static struct {
	uint64_t lookups, opens, reads;
} done;

/* ---------------------------------------------------------------- nodes */

static struct node *
node_of(fuse_ino_t ino)
{
	return (ino == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)ino);
}

static unsigned
bucket_of(const char *path)
{
	uint32_t h = 2166136261u;

	for (; *path != '\0'; path++)
		h = (h ^ (unsigned char)*path) * 16777619u;
	return (h % BUCKETS);
}

/* The node of this path, with one look-up more; NULL when there is no memory. */
static struct node *
node_get(const char *path)
{
	struct node **bucket = &nodes[bucket_of(path)], *n;

	pthread_mutex_lock(&nodes_lock);
	for (n = *bucket; n != NULL && strcmp(n->path, path) != 0; n = n->next)
		;
	if (n == NULL && (n = calloc(1, sizeof(*n) + strlen(path) + 1)) != NULL) {
		strcpy(n->path, path);
		n->next = *bucket;
		*bucket = n;
	}
	if (n != NULL)
		n->lookups++;
	pthread_mutex_unlock(&nodes_lock);
	return (n);
}

static void
node_forget(struct node *n, uint64_t count)
{
	struct node **np;

	if (n == &root)
		return;
	pthread_mutex_lock(&nodes_lock);
	n->lookups -= count;
	if (n->lookups == 0) {
		for (np = &nodes[bucket_of(n->path)]; *np != n; np = &(*np)->next)
			;
		*np = n->next;
		free(n);
	}
	pthread_mutex_unlock(&nodes_lock);
}

/* ---------------------------------------------------------------- queue and spindles */

static struct job *
job_new(fuse_req_t req, fuse_ino_t ino, double ms, void (*answer)(struct job *), const char *name)
{
	struct job *j;

	j = calloc(1, sizeof(*j) + strlen(name) + 1);
	if (j == NULL) {
		fuse_reply_err(req, ENOMEM);
		return (NULL);
	}
	j->req = req;
	j->node = node_of(ino);
	j->ms = ms;
	j->answer = answer;
	strcpy(j->name, name);
	return (j);
}

static void
job_queue(struct job *j)
{
	pthread_mutex_lock(&queue_lock);
	*queue_tail = j;
	queue_tail = &j->next;
	pthread_cond_signal(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
}

static struct job *
job_take(uint64_t *serial)
{
	struct job *j;

	pthread_mutex_lock(&queue_lock);
	while (queue_head == NULL)
		pthread_cond_wait(&queue_filled, &queue_lock);
	j = queue_head;
	queue_head = j->next;
	if (queue_head == NULL)
		queue_tail = &queue_head;
	*serial = jobs_taken++;
	pthread_mutex_unlock(&queue_lock);
	return (j);
}

/* -1..1, the same for the same serial number in every run (splitmix64). */
static double
noise(uint64_t serial)
{
	uint64_t z = (serial + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return ((double)(z >> 11) / (double)(1ull << 52) - 1.0);
}

static void
sleep_ms(double ms)
{
	struct timespec ts;

	ts.tv_sec = (time_t)(ms / 1000);
	ts.tv_nsec = (long)((ms - (double)ts.tv_sec * 1000) * 1e6);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static void *
spindle_main(void *arg)
{
	struct job *j;
	uint64_t serial;

	for (;;) {
		j = job_take(&serial);
		if (j->ms > 0)
			sleep_ms(j->ms * (1 + noise(serial) * opt.jitter / 100));
		j->answer(j);
		free(j);
	}
	return (arg);
}

/* ---------------------------------------------------------------- what a disk is needed for */

static int
path_join(char *buf, const char *dir, const char *name)
{
	int n;

	if (strcmp(dir, ".") == 0)
		n = snprintf(buf, PATH_MAX, "%s", name);
	else
		n = snprintf(buf, PATH_MAX, "%s/%s", dir, name);
	return (n < PATH_MAX ? 0 : ENAMETOOLONG);
}

static void
lookup_answer(struct job *j)
{
	struct fuse_entry_param e = { .attr_timeout = FOREVER, .entry_timeout = FOREVER };
	struct node *n;
	char path[PATH_MAX];
	int err;

	__atomic_add_fetch(&done.lookups, 1, __ATOMIC_RELAXED);
	if ((err = path_join(path, j->node->path, j->name)) != 0) {
		fuse_reply_err(j->req, err);
		return;
	}
	if (fstatat(source_fd, path, &e.attr, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			fuse_reply_entry(j->req, &e);	/* ino 0: the absence may be kept too */
		else
			fuse_reply_err(j->req, errno);
		return;
	}
	if ((n = node_get(path)) == NULL) {
		fuse_reply_err(j->req, ENOMEM);
		return;
	}
	e.ino = (uintptr_t)n;
	if (fuse_reply_entry(j->req, &e) == -ENOENT)
		node_forget(n, 1);		/* the caller was killed: nobody will give it back */
}

static void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct job *j;

	if ((j = job_new(req, parent, opt.lookup_ms, lookup_answer, name)) != NULL)
		job_queue(j);
}

static void
open_answer(struct job *j)
{
	int fd;

	__atomic_add_fetch(&done.opens, 1, __ATOMIC_RELAXED);
	fd = openat(source_fd, j->node->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		fuse_reply_err(j->req, errno);
		return;
	}
	j->fi.fh = (uint64_t)fd;
	j->fi.keep_cache = 1;
	if (fuse_reply_open(j->req, &j->fi) == -ENOENT)
		close(fd);
}

static void
op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct job *j;

	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if ((j = job_new(req, ino, opt.open_ms, open_answer, "")) == NULL)
		return;
	j->fi = *fi;
	if (opt.open_ms > 0) {
		job_queue(j);
		return;
	}
	open_answer(j);		/* the inode came with the look-up: no disk needed */
	free(j);
}

static void
read_answer(struct job *j)
{
	char *buf;
	ssize_t n;

	__atomic_add_fetch(&done.reads, 1, __ATOMIC_RELAXED);
	if ((buf = malloc(j->size)) == NULL) {
		fuse_reply_err(j->req, ENOMEM);
		return;
	}
	n = pread((int)j->fi.fh, buf, j->size, j->off);
	if (n < 0)
		fuse_reply_err(j->req, errno);
	else
		fuse_reply_buf(j->req, buf, (size_t)n);
	free(buf);
}

static void
op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct job *j;

	if ((j = job_new(req, ino, opt.read_ms, read_answer, "")) == NULL)
		return;
	j->fi = *fi;
	j->size = size;
	j->off = off;
	job_queue(j);
}

/* ---------------------------------------------------------------- what is answered at once */

static void
op_init(void *userdata, struct fuse_conn_info *conn)
{
	if (conn->capable & FUSE_CAP_PARALLEL_DIROPS)
		conn->want |= FUSE_CAP_PARALLEL_DIROPS;
	if (conn->capable & FUSE_CAP_ASYNC_READ)
		conn->want |= FUSE_CAP_ASYNC_READ;
	/* A listing must not warm the names in it. */
	conn->want &= ~(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_AUTO_INVAL_DATA);
	conn->max_read = READ_MAX;
	conn->max_readahead = READ_MAX;
	/* The kernel's own default of 12 would be a second, hidden number of spindles. */
	conn->max_background = 4 * SPINDLES_MAX;
	conn->congestion_threshold = 4 * SPINDLES_MAX;
}

static void
op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	node_forget(node_of(ino), count);
	fuse_reply_none(req);
}

static void
op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *list)
{
	size_t i;

	for (i = 0; i < count; i++)
		node_forget(node_of(list[i].ino), list[i].nlookup);
	fuse_reply_none(req);
}

static void
op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	if (fstatat(source_fd, node_of(ino)->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_attr(req, &st, FOREVER);
}

static void
op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char buf[PATH_MAX];
	ssize_t n;

	n = readlinkat(source_fd, node_of(ino)->path, buf, sizeof(buf) - 1);
	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	buf[n] = '\0';
	fuse_reply_readlink(req, buf);
}

static void
op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	close((int)fi->fh);
	fuse_reply_err(req, 0);
}

static void
op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	DIR *dir;
	int fd;

	fd = openat(source_fd, node_of(ino)->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL) {
		fuse_reply_err(req, errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	fi->fh = (uintptr_t)dir;
	if (fuse_reply_open(req, fi) == -ENOENT)
		closedir(dir);
}

static void
op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	DIR *dir = (DIR *)(uintptr_t)fi->fh;
	struct dirent *de;
	struct stat st;
	size_t used = 0, n;
	char *buf;

	if ((buf = malloc(size)) == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	seekdir(dir, off);
	while ((de = readdir(dir)) != NULL) {
		memset(&st, 0, sizeof(st));
		st.st_ino = de->d_ino;
		st.st_mode = (mode_t)de->d_type << 12;
		n = fuse_add_direntry(req, buf + used, size - used, de->d_name, &st, telldir(dir));
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void
op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	closedir((DIR *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static void
op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	if (fstatvfs(source_fd, &st) < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init, .lookup = op_lookup, .forget = op_forget, .forget_multi = op_forget_multi,
	.getattr = op_getattr, .readlink = op_readlink, .open = op_open, .read = op_read,
	.release = op_release, .opendir = op_opendir, .readdir = op_readdir,
	.releasedir = op_releasedir, .statfs = op_statfs,
};

/* ---------------------------------------------------------------- start, loop, stop */

static void
usage(FILE *to)
{
	fputs("usage: slowfs [options] SOURCE MOUNTPOINT\n"
	    "Shows SOURCE at MOUNTPOINT, read-only and slow on first access. Stays in the foreground.\n"
	    "  -n, --spindles N   requests served at the same time (2)\n"
	    "      --lookup-ms N  a look-up of a name, there or not (8)\n"
	    "      --open-ms N    each open, as on a network file system that asks again (0)\n"
	    "      --read-ms N    a read of up to 128 KiB (8)\n"
	    "      --jitter PCT   spread of the times, the same in every run (0)\n"
	    "      --until-eof    unmount when standard input ends\n"
	    "  -h, --help  -V, --version\n"
	    "Prints `ready` once mounted; unmounts on TERM and INT; on USR1 and at the end it\n"
	    "prints how many requests reached the disks.\n", to);
}

static double
number_arg(const char *what, const char *s, double lo, double hi)
{
	char *end;
	double v;

	v = strtod(s, &end);
	if (end == s || *end != '\0' || !(v >= lo && v <= hi)) {
		fprintf(stderr, "slowfs: %s: \"%s\" is not a number from %g to %g\n", what, s, lo, hi);
		exit(64);
	}
	return (v);
}

static void
options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "spindles", 1, NULL, 'n' }, { "lookup-ms", 1, NULL, 'l' }, { "open-ms", 1, NULL, 'o' },
		{ "read-ms", 1, NULL, 'r' }, { "jitter", 1, NULL, 'j' }, { "until-eof", 0, NULL, 'e' },
		{ "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' }, { NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "n:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'n': opt.spindles = (int)number_arg("--spindles", optarg, 1, SPINDLES_MAX); break;
		case 'l': opt.lookup_ms = number_arg("--lookup-ms", optarg, 0, 60000); break;
		case 'o': opt.open_ms = number_arg("--open-ms", optarg, 0, 60000); break;
		case 'r': opt.read_ms = number_arg("--read-ms", optarg, 0, 60000); break;
		case 'j': opt.jitter = number_arg("--jitter", optarg, 0, 100); break;
		case 'e': opt.until_eof = true; break;
		case 'h': usage(stdout); exit(0);
		case 'V': puts("slowfs " STAT_ACCEL_VERSION); exit(0);
		default: usage(stderr); exit(64);
		}
	}
	if (argc - optind != 2) {
		usage(stderr);
		exit(64);
	}
}

/* libfuse 3.14 forgets FUSE_PARALLEL_DIROPS in its first answer, and without it the kernel sends
 * one look-up per directory at a time, whatever the number of spindles.  So it is added here. */
static ssize_t
dev_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	static bool first_sent;
	struct fuse_init_out *out;

	if (!first_sent && count == 2 && iov[1].iov_len >= offsetof(struct fuse_init_out, max_background)) {
		out = iov[1].iov_base;
		out->flags |= FUSE_PARALLEL_DIROPS;
	}
	first_sent = true;
	return (writev(fd, iov, count));
}

static ssize_t
dev_read(int fd, void *buf, size_t len, void *userdata)
{
	return (read(fd, buf, len));
}

static const struct fuse_custom_io dev_io = { .writev = dev_writev, .read = dev_read };

static struct fuse_session *
session_open(const char *mountpoint)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se;

	fuse_opt_add_arg(&args, "slowfs");
	fuse_opt_add_arg(&args, "-oro,fsname=slowfs,subtype=slowfs,default_permissions,max_read=131072");
	/* Servers that give up root must still see it; others may allow that in fuse.conf only. */
	if (geteuid() == 0)
		fuse_opt_add_arg(&args, "-oallow_other");
	se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	fuse_opt_free_args(&args);
	if (se == NULL)
		return (NULL);
	if (fuse_session_mount(se, mountpoint) != 0 ||
	    fuse_session_custom_io(se, &dev_io, fuse_session_fd(se)) != 0) {
		fuse_session_destroy(se);
		return (NULL);
	}
	return (se);
}

static void
spindles_start(void)
{
	pthread_attr_t attr;
	pthread_t t;
	int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	for (i = 0; i < opt.spindles; i++) {
		if (pthread_create(&t, &attr, spindle_main, NULL) != 0) {
			fprintf(stderr, "slowfs: cannot start thread %d\n", i);
			exit(71);
		}
	}
}

static void
counters_print(const char *word)
{
	printf("%s lookups=%llu opens=%llu reads=%llu\n", word,
	    (unsigned long long)__atomic_load_n(&done.lookups, __ATOMIC_RELAXED),
	    (unsigned long long)__atomic_load_n(&done.opens, __ATOMIC_RELAXED),
	    (unsigned long long)__atomic_load_n(&done.reads, __ATOMIC_RELAXED));
	fflush(stdout);
}

static bool
told_to_stop(int sigfd)
{
	struct signalfd_siginfo si;

	if (read(sigfd, &si, sizeof(si)) != sizeof(si))
		return (false);
	if (si.ssi_signo != SIGUSR1)
		return (true);
	counters_print("so-far");
	return (false);
}

static bool
input_ended(void)
{
	char buf[256];
	ssize_t n;

	n = read(STDIN_FILENO, buf, sizeof(buf));
	return (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR));
}

static void
serve(struct fuse_session *se, int sigfd)
{
	struct fuse_buf buf = { .mem = NULL };
	struct pollfd p[3] = {
		{ .fd = fuse_session_fd(se), .events = POLLIN }, { .fd = sigfd, .events = POLLIN },
		{ .fd = opt.until_eof ? STDIN_FILENO : -1, .events = POLLIN },
	};
	bool announced = false;
	int n;

	while (!fuse_session_exited(se)) {
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents != 0 && told_to_stop(sigfd))
			break;
		if (p[2].revents != 0 && input_ended())
			break;
		if (p[0].revents == 0)
			continue;
		n = fuse_session_receive_buf(se, &buf);
		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			break;			/* unmounted by someone else */
		fuse_session_process_buf(se, &buf);
		if (!announced) {
			puts("ready");
			fflush(stdout);
			announced = true;
		}
	}
	free(buf.mem);
}

int
main(int argc, char **argv)
{
	struct fuse_session *se;
	struct rlimit rl;
	sigset_t sigs;
	int sigfd;

	options(argc, argv);
	if ((source_fd = open(argv[optind], O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fprintf(stderr, "slowfs: %s: %s\n", argv[optind], strerror(errno));
		return (66);
	}
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	sigemptyset(&sigs);
	sigaddset(&sigs, SIGTERM);
	sigaddset(&sigs, SIGINT);
	sigaddset(&sigs, SIGHUP);
	sigaddset(&sigs, SIGUSR1);
	sigprocmask(SIG_BLOCK, &sigs, NULL);
	sigfd = signalfd(-1, &sigs, SFD_CLOEXEC | SFD_NONBLOCK);
	if ((se = session_open(argv[optind + 1])) == NULL)
		return (71);
	/* A request may be taken back between poll and read. */
	fcntl(fuse_session_fd(se), F_SETFL, O_NONBLOCK);
	spindles_start();
	serve(se, sigfd);
	fuse_session_unmount(se);
	counters_print("done");
	_exit(0);			/* sleeping spindles have nobody left to answer */
}
