/* refuse -- runs a command on a kernel that seems to lack some system calls.
 *
 *   refuse CALL=ERROR... -- COMMAND [ARG]...
 *   refuse io_uring_setup=EPERM -- accel-server -f FILE
 *
 * The named system calls fail with that error from here on, for all processes that come of this
 * one: a seccomp filter, so no other process notices, and any user may do it.
 *
 *     number of the call --> equal to one of ours? --yes--> its error
 *                                `--no--> allowed
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 16
#define EX_USAGE  64

struct named {
	const char *name;
	int value;
};

static const struct named calls[] = {
	{ "io_uring_setup", SYS_io_uring_setup },
	{ "io_setup", SYS_io_setup },
	{ "openat2", SYS_openat2 },
	{ "landlock_create_ruleset", SYS_landlock_create_ruleset },
	{ "io_submit", SYS_io_submit },
	{ "mount", SYS_mount },
	{ "memfd_create", SYS_memfd_create },
	{ "ftruncate", SYS_ftruncate },
	{ "fallocate", SYS_fallocate },
	{ NULL, 0 },
};

static const struct named errors[] = {
	{ "EPERM", EPERM },
	{ "ENOSYS", ENOSYS },
	{ "EAGAIN", EAGAIN },
	{ "ENOSPC", ENOSPC },
	{ "ENOMEM", ENOMEM },
	{ NULL, 0 },
};

/* -1: not there. */
static int
value_of(const struct named *n, const char *name, size_t len)
{
	for (; n->name != NULL; n++) {
		if (strlen(n->name) == len && memcmp(n->name, name, len) == 0)
			return (n->value);
	}
	return (-1);
}

static int
usage(const char *what)
{
	fprintf(stderr, "refuse: %s\nusage: refuse CALL=ERROR... -- COMMAND [ARG]...\n", what);
	return (EX_USAGE);
}

/* Two steps of the filter for each call; 0, or -1 when it is not known. */
static int
refusal(struct sock_filter *at, const char *arg)
{
	size_t len = strcspn(arg, "=");
	int nr = value_of(calls, arg, len), err = -1;

	if (arg[len] == '=')
		err = value_of(errors, arg + len + 1, strlen(arg + len + 1));
	if (nr < 0 || err < 0)
		return (-1);
	at[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1);
	at[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err);
	return (0);
}

int
main(int argc, char **argv)
{
	struct sock_filter step[2 + 2 * CALLS_MAX] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr)) };
	struct sock_fprog filter = { .len = 1, .filter = step };
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++, filter.len += 2) {
		if (i > CALLS_MAX || refusal(step + filter.len, argv[i]) != 0)
			return (usage(argv[i]));
	}
	if (i == 1 || i + 1 >= argc)
		return (usage("nothing to refuse, or no command"));
	step[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
		perror("refuse: seccomp");
		return (71);
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return (127);
}
