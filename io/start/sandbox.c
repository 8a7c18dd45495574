/* io/start/sandbox.c -- Landlock, and the order of the steps; sandbox_calls.c has the filter of
 * calls.
 *
 * Rights are written as numbers: the headers of Debian 12 are older than the kernels it runs on,
 * and this interface only grows.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "io/disk/mounts.h"
#include "io/start/sandbox.h"
#include "io/start/sandbox_impl.h"

#ifndef SYS_landlock_create_ruleset /* the same on every architecture */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define ASK_VERSION  1u /* LANDLOCK_CREATE_RULESET_VERSION */
#define RULE_BENEATH 1  /* LANDLOCK_RULE_PATH_BENEATH */

/* LANDLOCK_ACCESS_FS_* */
#define WRITE_FILE  (1ull << 1)
#define READ_FILE   (1ull << 2)
#define READ_DIR    (1ull << 3)
#define REMOVE_FILE (1ull << 5)
#define MAKE_REG    (1ull << 8)
#define OF_ABI_1    ((1ull << 13) - 1)
#define REFER       (1ull << 13) /* version 2 and newer */
#define TRUNCATE    (1ull << 14) /* version 3 and newer */
#define IOCTL_DEV   (1ull << 15) /* version 5 and newer */
/* all rights that a rule about a file may have */
#define OF_FILES (WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

/* LANDLOCK_ACCESS_NET_*, version 4 and newer */
#define BIND_TCP    (1ull << 0)
#define CONNECT_TCP (1ull << 1)

struct ruleset {
	uint64_t fs, net;
};

struct beneath {
	uint64_t allowed;
	int32_t dir;
} __attribute__((packed));

static int
abi_of_kernel(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

	return (abi < 0 ? -errno : (int)abi);
}

static uint64_t
rights_known(int abi)
{
	return (OF_ABI_1 | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) |
		(abi >= 5 ? IOCTL_DEV : 0));
}

static int
ruleset_new(unsigned programs, int abi)
{
	const struct ruleset r = {
		.fs = rights_known(abi),
		.net = abi >= 4 && (programs & SANDBOX_ACCELERATOR) ? BIND_TCP | CONNECT_TCP : 0,
	};
	/* an old kernel takes a longer struct if the rest is 0 */
	long fd = syscall(SYS_landlock_create_ruleset, &r, sizeof(r), 0);

	return (fd < 0 ? -errno : (int)fd);
}

static uint64_t
rights_of(unsigned rights)
{
	return ((rights & SANDBOX_READ ? READ_FILE | READ_DIR : 0) |
		(rights & SANDBOX_APPEND ? WRITE_FILE | MAKE_REG : 0) |
		(rights & SANDBOX_SPOOL ? WRITE_FILE | READ_FILE | MAKE_REG | REMOVE_FILE | TRUNCATE
					: 0) |
		(rights & SANDBOX_REMOVE ? REMOVE_FILE : 0) |
		(rights & SANDBOX_WRITE ? WRITE_FILE : 0));
}

/* A directory of struct sandbox. */
struct dir {
	uint64_t dev, ino;
	unsigned rights; /* SANDBOX_READ, SANDBOX_SPOOL */
};

static guint
dir_hash(gconstpointer dir)
{
	const struct dir *d = dir;

	return ((guint)d->ino ^ (guint)d->dev << 16);
}

static gboolean
dir_same(gconstpointer a, gconstpointer b)
{
	const struct dir *d = a, *e = b;

	return (d->ino == e->ino && d->dev == e->dev);
}

static struct dir *
find(const struct sandbox *s, const struct stat *st)
{
	const struct dir key = { .dev = st->st_dev, .ino = st->st_ino };

	return (s->dirs != NULL ? g_hash_table_lookup(s->dirs, &key) : NULL);
}

/* Adds each directory once: a configuration names the same root in many blocks. */
static void
remember(struct sandbox *s, const struct stat *st, unsigned rights)
{
	const struct dir one = { .dev = st->st_dev, .ino = st->st_ino, .rights = rights };
	struct dir *d = find(s, st);

	if (s->dirs == NULL)
		s->dirs = g_hash_table_new_full(dir_hash, dir_same, g_free, NULL);
	if (d != NULL)
		d->rights |= rights;
	else
		g_hash_table_add(s->dirs, g_memdup2(&one, sizeof(one)));
}

static int
allow(int ruleset, struct sandbox *s, const char *path, unsigned rights)
{
	struct beneath b = { .allowed = rights_of(rights) & rights_known(s->landlock),
		.dir = open(path, O_PATH | O_CLOEXEC) };
	struct stat st;
	int err = 0;

	if (b.dir < 0)
		return (-errno);
	if (fstat(b.dir, &st) != 0)
		err = -errno;
	else if (!S_ISDIR(st.st_mode))
		b.allowed &= OF_FILES;
	if (err == 0 && rights & (SANDBOX_READ | SANDBOX_SPOOL))
		remember(s, &st, rights);
	if (err == 0 && syscall(SYS_landlock_add_rule, ruleset, RULE_BENEATH, &b, 0) != 0)
		err = -errno;
	close(b.dir);
	return (err);
}

/* The directory of the name, and of its target: /dev/stderr is a link. */
static int
allow_beside(int ruleset, struct sandbox *s, const struct sandbox_path *p)
{
	char *real = realpath(p->path, NULL), *dir = g_path_get_dirname(p->path);
	int err = allow(ruleset, s, dir, p->rights);

	g_free(dir);
	if (err == 0 && real != NULL) {
		dir = g_path_get_dirname(real);
		err = allow(ruleset, s, dir, p->rights);
		g_free(dir);
	}
	free(real);
	return (err);
}

static int
add_rules(int ruleset, struct sandbox *s, const struct sandbox_path *p, char *why, size_t size)
{
	int err = 0;

	for (; err == 0 && p->path != NULL; p++) {
		err = p->rights & SANDBOX_BESIDE ? allow_beside(ruleset, s, p)
						 : allow(ruleset, s, p->path, p->rights);
		if (err == -ENOENT && (p->rights & SANDBOX_OPTIONAL))
			err = 0;
		if (err != 0)
			snprintf(why, size, "Landlock: %s: %s", p->path, g_strerror(-err));
	}
	return (err);
}

/* Only a process without new privileges may confine itself. */
static int
restrict_self(int ruleset, char *why, size_t size)
{
	int err = syscall(SYS_landlock_restrict_self, ruleset, 0) != 0 ? -errno : 0;

	if (err != 0)
		snprintf(why, size, "Landlock: %s", g_strerror(-err));
	return (err);
}

static int
confine_names(unsigned programs, const struct sandbox_path *paths, struct sandbox *s, char *why,
    size_t size)
{
	static const struct sandbox_path sanitizers[] = { { "/proc", SANDBOX_READ },
		{ "/usr/lib", SANDBOX_READ }, { "/proc/self/exe", SANDBOX_READ }, { NULL } };
	int ruleset, err, abi = abi_of_kernel();

	/* EPERM: the filter of a container does not know the call */
	if (abi == -ENOSYS || abi == -EOPNOTSUPP || abi == -EPERM)
		return (0);
	s->landlock = abi;
	ruleset = abi < 0 ? abi : ruleset_new(programs, abi);
	if (ruleset < 0) {
		snprintf(why, size, "Landlock: %s", g_strerror(-ruleset));
		return (ruleset);
	}
	err = add_rules(ruleset, s, paths, why, size);
	if (err == 0 && SANITIZED)
		err = add_rules(ruleset, s, sanitizers, why, size);
	if (err == 0)
		err = restrict_self(ruleset, why, size);
	close(ruleset);
	return (err);
}

int
sandbox_enter(unsigned programs, const struct sandbox_path *paths, struct sandbox *got, char *why,
    size_t size)
{
	int err;

	*got = (struct sandbox){ 0 };
	mounts_open();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		err = -errno;
		snprintf(why, size, "no_new_privs: %s", g_strerror(-err));
		return (err);
	}
	err = paths != NULL ? confine_names(programs, paths, got, why, size) : 0;
	if (err != 0)
		return (err);
	err = sandbox_filter(programs);
	got->seccomp = err == 0;
	if (err == 0 || err == -ENOSYS)
		return (0);
	snprintf(why, size, "seccomp: %s", g_strerror(-err));
	return (err);
}

static bool
is_listed(const struct sandbox *s, unsigned right, const struct stat *st)
{
	const struct dir *d = find(s, st);

	return (d != NULL && (d->rights & right) != 0);
}

static bool
allows_file(const struct sandbox *s, unsigned right, const char *path)
{
	struct stat st;
	char *dir;
	bool found;

	if (stat(path, &st) != 0 || is_listed(s, right, &st))
		return (true);
	dir = g_path_get_dirname(path);
	found = sandbox_allows(s, right, dir);
	g_free(dir);
	return (found);
}

/* Walks upwards, as the kernel does; O_PATH needs no right of the sandbox. */
bool
sandbox_allows(const struct sandbox *s, unsigned right, const char *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), up;
	struct stat st, below = { 0 };
	bool found = s->landlock == 0 || (fd < 0 && errno != ENOTDIR);

	if (fd < 0 && !found)
		return (allows_file(s, right, dir));

	while (!found && fd >= 0 && fstat(fd, &st) == 0 &&
	       (st.st_ino != below.st_ino || st.st_dev != below.st_dev)) {
		found = is_listed(s, right, &st);
		below = st;
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
	}
	if (fd >= 0)
		close(fd);
	return (found);
}

void
sandbox_log(const struct sandbox *s, bool wanted)
{
	const char *names = s->landlock > 0 ? "landlock"
			    : wanted        ? "this kernel has no Landlock"
					    : "not confined";
	const char *calls = s->seccomp ? "seccomp" : "this kernel has no seccomp filters";
	bool lacks = (wanted && s->landlock == 0) || !s->seccomp;

	if (lacks || wanted)
		log_event(lacks ? LOG_WARN : LOG_INFO, NULL,
		    lacks ? "sandbox.partial" : "sandbox.entered", LF_STR("names", names),
		    LF_I64("abi", s->landlock), LF_STR("calls", calls));
}
