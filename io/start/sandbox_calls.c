/* io/start/sandbox_calls.c -- the filter of system calls, made by libseccomp from
 * sandbox_calls.def.
 *
 * Hot calls are allowed with any arguments, so the kernel (5.11 and newer) decides them with a
 * bitmap.
 */
#include <errno.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "io/engine.h"
#include "io/start/sandbox.h"
#include "io/start/sandbox_impl.h"

#define S      SANDBOX_SERVER
#define A      SANDBOX_ACCELERATOR
#define U      SANDBOX_URING
#define P      SANDBOX_KEYS
#define THREAD 0x10000 /* CLONE_THREAD */

struct call {
	const char *name;
	int number;        /* if libseccomp does not know the name; -1: none */
	unsigned programs; /* 0: kills the process */
};

static const struct call calls[] = {
#define C(name, programs)         { #name, -1, programs },
#define N(name, number, programs) { #name, number, programs },
#define K(name)                   { #name, -1, 0 },
#include "io/start/sandbox_calls.def"
#undef C
#undef N
#undef K
};

/* The threads and the leak check of a sanitizer, in its builds only. */
static const char *const sanitizer_calls[] = { "ptrace", "clone", "fork", "wait4", "prctl", "kill",
	"tgkill", "mmap", "mprotect", "personality", "readlink", "pipe", "pipe2",
	"sched_setaffinity", "process_vm_readv", "dup", "dup2", "dup3", "access", "getdents",
	"getdents64", "getcwd", "ioctl", "mlock", "munlock", "socket", "sigaltstack" };

static bool
is_sanitizers(const char *name)
{
	size_t i;

	for (i = 0; SANITIZED && i < NELEM(sanitizer_calls); i++)
		if (strcmp(sanitizer_calls[i], name) == 0)
			return (true);
	return (false);
}

static int
number_of(const char *name, int fallback)
{
	int nr = seccomp_syscall_resolve_name(name);

	return (nr != __NR_SCMP_ERROR ? nr : fallback);
}

/* A call that this architecture lacks needs no rule. */
static int
rule(scmp_filter_ctx ctx, uint32_t action, const char *name, int fallback)
{
	int nr = number_of(name, fallback);

	return (nr < 0 ? 0 : seccomp_rule_add(ctx, action, nr, 0));
}

static int
add_rows(scmp_filter_ctx ctx, unsigned programs)
{
	size_t i;
	int err = 0;

	for (i = 0; i < NELEM(calls) && err == 0; i++) {
		if (calls[i].programs == 0 && !is_sanitizers(calls[i].name))
			err = rule(ctx, SCMP_ACT_KILL_PROCESS, calls[i].name, -1);
		else if ((calls[i].programs & programs) && !is_sanitizers(calls[i].name))
			err = rule(ctx, SCMP_ACT_ALLOW, calls[i].name, calls[i].number);
	}
	for (i = 0; SANITIZED && i < NELEM(sanitizer_calls) && err == 0; i++)
		err = rule(ctx, SCMP_ACT_ALLOW, sanitizer_calls[i], -1);
	return (err);
}

static int
when(scmp_filter_ctx ctx, uint32_t action, const char *name, struct scmp_arg_cmp cmp)
{
	return (is_sanitizers(name)
		    ? 0
		    : seccomp_rule_add_array(ctx, action, number_of(name, -1), 1, &cmp));
}

/* Families other than TCP and unix sockets.  The C library asks netlink for the machine's
 * addresses, and works without. */
static int
add_socket(scmp_filter_ctx ctx, unsigned programs)
{
	int family, err = 0;
	uint32_t action;

	for (family = AF_UNSPEC; family <= AF_NETLINK && err == 0; family++) {
		action = SCMP_ACT_KILL_PROCESS;
		if (family == AF_NETLINK)
			action = SCMP_ACT_ERRNO(EAFNOSUPPORT);
		else if ((programs & S) &&
			 (family == AF_UNIX || family == AF_INET || family == AF_INET6))
			action = SCMP_ACT_ALLOW;
		err = when(ctx, action, "socket", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family));
	}
	return (err != 0
		    ? err
		    : when(ctx, SCMP_ACT_KILL_PROCESS, "socket", SCMP_A0(SCMP_CMP_GT, AF_NETLINK)));
}

/* accel-server compiles regular expressions to machine code; fcgi-stat-accel has none. */
static int
add_mmap(scmp_filter_ctx ctx, unsigned programs)
{
	const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int err;

	if (programs & S) {
		err = rule(ctx, SCMP_ACT_ALLOW, "mmap", -1);
		return (err != 0 ? err : rule(ctx, SCMP_ACT_ALLOW, "mprotect", -1));
	}
	err = when(ctx, SCMP_ACT_ALLOW, "mmap", no_code);
	return (err != 0 ? err : when(ctx, SCMP_ACT_ALLOW, "mprotect", no_code));
}

/* clone3 passes its flags by pointer.  It fails with ENOSYS, and the C library uses clone for
 * its threads. */
static int
add_arguments(scmp_filter_ctx ctx, unsigned programs)
{
	int err = when(ctx, SCMP_ACT_ALLOW, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, THREAD, THREAD));

	if (err == 0)
		err = when(ctx, SCMP_ACT_KILL_PROCESS, "clone",
		    SCMP_A0(SCMP_CMP_MASKED_EQ, THREAD, 0));
	if (err == 0 && (programs & S)) /* io_sock_was_read() */
		err = when(ctx, SCMP_ACT_ALLOW, "ioctl", SCMP_A1(SCMP_CMP_EQ, SIOCOUTQ));
	if (err == 0)
		err = when(ctx, SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	if (err == 0)
		err = when(ctx, SCMP_ACT_ALLOW, "tgkill",
		    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	if (err == 0 && (programs & S)) /* threads that compute are nice; nobody else is made so */
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number_of("setpriority", -1), 2,
		    SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS), SCMP_A1(SCMP_CMP_EQ, 0));
	if (err == 0)
		err = add_socket(ctx, programs);
	return (err == 0 ? add_mmap(ctx, programs) : err);
}

/* Kernels before 5.16 slow down a filtered process against speculative execution, which protects
 * programs that run foreign code.  This filter asks for full speed.  Returns errors of the kernel.
 */
static int
set_attributes(scmp_filter_ctx ctx)
{
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (err == 0)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (err == 0)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	if (err == 0)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return (err);
}

int
sandbox_filter(unsigned programs)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int err;

	if (ctx == NULL)
		return (-ENOMEM);
	err = set_attributes(ctx);
	if (err == 0)
		err = add_rows(ctx, programs);
	if (err == 0)
		err = add_arguments(ctx, programs);
	if (err == 0)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return (err);
}
