/* fcgi-stat-accel/sandbox.c -- see sandbox.h
 *
 * Rights are asked for by number: the headers of Debian 12 are older than the kernels it runs on, and this interface only
 * grows.
 */

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "fcgi-stat-accel/sandbox.h"

#ifndef SYS_landlock_create_ruleset	/* the same on every architecture */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

#define ASK_VERSION	1u		/* LANDLOCK_CREATE_RULESET_VERSION */
#define RULE_BENEATH	1		/* LANDLOCK_RULE_PATH_BENEATH */

/* LANDLOCK_ACCESS_FS_* */
#define WRITE_FILE	(1ull << 1)
#define READ_FILE	(1ull << 2)
#define READ_DIR	(1ull << 3)
#define REMOVE_FILE	(1ull << 5)
#define MAKE_REG	(1ull << 8)
#define OF_ABI_1	((1ull << 13) - 1)
#define REFER		(1ull << 13)	/* from 2 */
#define TRUNCATE	(1ull << 14)	/* from 3 */
#define IOCTL_DEV	(1ull << 15)	/* from 5 */

/* LANDLOCK_ACCESS_NET_*, from 4 */
#define BIND_TCP	(1ull << 0)
#define CONNECT_TCP	(1ull << 1)

struct ruleset {
	uint64_t fs, net;
};

struct beneath {
	uint64_t allowed;
	int32_t	 dir;
} __attribute__((packed));

static int
abi_of_kernel(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

	return (abi < 0 ? -errno : (int)abi);
}

static int
ruleset_new(int abi)
{
	const struct ruleset r = {
		.fs = OF_ABI_1 | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) | (abi >= 5 ? IOCTL_DEV : 0),
		.net = abi >= 4 ? BIND_TCP | CONNECT_TCP : 0,
	};
	long fd = syscall(SYS_landlock_create_ruleset, &r, sizeof(r), 0);	/* an old kernel takes a longer one, if the rest is 0 */

	return (fd < 0 ? -errno : (int)fd);
}

static int
allow(int ruleset, const char *dir, uint64_t rights)
{
	struct beneath b = { .allowed = rights, .dir = open(dir, O_PATH | O_CLOEXEC) };
	int err = 0;

	if (b.dir < 0)
		return (-errno);
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_BENEATH, &b, 0) != 0)
		err = -errno;
	close(b.dir);
	return (err);
}

static int
allow_beside(int ruleset, const char *file, uint64_t rights)
{
	char *dir;
	int err;

	if (file == NULL)
		return (0);
	dir = g_path_get_dirname(file);
	err = allow(ruleset, dir, rights);
	g_free(dir);
	return (err);
}

/* By its name, and where that leads: /dev/stderr is a link. */
static int
allow_log(int ruleset, const char *log)
{
	char *real = log != NULL ? realpath(log, NULL) : NULL;
	int err = allow_beside(ruleset, log, WRITE_FILE | MAKE_REG);

	if (err == 0)
		err = allow_beside(ruleset, real, WRITE_FILE | MAKE_REG);
	free(real);
	return (err);
}

static int
add_rules(int ruleset, const struct sandbox_conf *conf)
{
	int err = allow(ruleset, "/proc", READ_FILE | READ_DIR);

	if (err == 0)
		err = allow(ruleset, "/dev/null", WRITE_FILE);
	if (err == -ENOENT)
		err = 0;		/* a chroot(2) may lack either; io/ can do without */
	for (const char *const *root = conf->roots; err == 0 && *root != NULL; root++)
		err = allow(ruleset, *root, READ_FILE | READ_DIR);
	if (err == 0)
		err = allow_log(ruleset, conf->log);
	if (err == 0)
		err = allow_beside(ruleset, conf->socket, REMOVE_FILE);
	return (err);
}

/* A process that cannot gain privileges may confine itself. */
static int
restrict_self(int ruleset)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
		return (-errno);
	return (0);
}

int
sandbox_enter(const struct sandbox_conf *conf)
{
	int abi, ruleset, err;

	if (conf->roots == NULL || conf->roots[0] == NULL)
		return (0);
	abi = abi_of_kernel();
	if (abi < 0)
		return (abi);
	ruleset = ruleset_new(abi);
	if (ruleset < 0)
		return (ruleset);
	err = add_rules(ruleset, conf);
	if (err == 0)
		err = restrict_self(ruleset);
	close(ruleset);
	return (err != 0 ? err : abi);
}

void
sandbox_log(int entered)
{
	if (entered > 0)
		log_event(LOG_INFO, NULL, "sandbox.entered", LF_STR("by", "landlock"), LF_I64("abi", entered));
	else if (entered == 0)
		log_event(LOG_DEBUG, NULL, "sandbox.none", LF_STR("why", "no --root was given"));
	else if (entered == -ENOSYS || entered == -EOPNOTSUPP)
		log_event(LOG_INFO, NULL, "sandbox.none", LF_STR("why", "this kernel has no Landlock"));
	else
		log_event(LOG_WARN, NULL, "sandbox.failed", LF_ERR("error", entered), LF_STR("then", "going on without"));
}
