/* t/unit/io/sandbox_calls.c -- each system call of a confined process: a child enters the filter
 * of one program and tries it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/start/sandbox.h"
#include "io/start/sandbox_impl.h"
#include "t/unit/test.h"

#define DIES       (-SIGSYS)
#define UNEXPECTED 255
#define TRY(name, call)                          \
	static int name(void)                    \
	{                                        \
		errno = 0;                       \
		return ((call) < 0 ? errno : 0); \
	}

static const unsigned server = SANDBOX_SERVER, accelerator = SANDBOX_ACCELERATOR;

/* ---- what is tried: 0 or errno */

static char *const no_words[] = { NULL };

TRY(executes, execve("/bin/true", no_words, no_words))
TRY(executes_at, syscall(SYS_execveat, AT_FDCWD, "/bin/true", no_words, no_words, 0))
TRY(traces, ptrace(PTRACE_TRACEME, 0, NULL, NULL))
TRY(reads_others, syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0))
TRY(writes_others, syscall(SYS_process_vm_writev, 1, NULL, 0, NULL, 0, 0))
TRY(loads_bpf, syscall(SYS_bpf, 0, NULL, 0))
TRY(mounts, mount("none", "/mnt", "tmpfs", 0, NULL))
TRY(unmounts, umount2("/mnt", 0))
TRY(changes_root, chroot("/"))
TRY(becomes_root, syscall(SYS_setuid, 0))
TRY(becomes_group, syscall(SYS_setresgid, 0, 0, 0))
TRY(uses_keys, syscall(SYS_keyctl, 0, 0, 0, 0, 0))
TRY(loads_module, syscall(SYS_finit_module, -1, "", 0))
TRY(loads_kernel, syscall(SYS_kexec_load, 0, 0, NULL, 0))
TRY(enters_namespace, setns(-1, 0))
TRY(makes_namespace, unshare(CLONE_NEWUSER))
TRY(faults_in_user, syscall(SYS_userfaultfd, 0))
TRY(counts_events, syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0))
TRY(opens_by_handle, syscall(SYS_open_by_handle_at, -1, NULL, 0))
TRY(packet_socket, socket(AF_PACKET, SOCK_RAW, 0))
TRY(crypto_socket, socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0))
TRY(vm_socket, socket(40 /* AF_VSOCK */, SOCK_STREAM, 0))
TRY(hidden_family, syscall(SYS_socket, (1ull << 32) | AF_UNIX, SOCK_STREAM, 0))
TRY(netlink_socket, socket(AF_NETLINK, SOCK_RAW, 0))
TRY(unix_socket, socket(AF_UNIX, SOCK_STREAM, 0))
TRY(inet_socket, socket(AF_INET, SOCK_STREAM, 0))
TRY(inet6_socket, socket(AF_INET6, SOCK_STREAM, 0))
TRY(connects, connect(-1, NULL, 0))
TRY(binds, bind(-1, NULL, 0))
TRY(changes_mode, syscall(SYS_fchmodat, AT_FDCWD, "/nonexistent", 0))
TRY(links, syscall(SYS_linkat, AT_FDCWD, "/nonexistent", AT_FDCWD, "/nonexistent2", 0))
TRY(renames, syscall(SYS_renameat2, AT_FDCWD, "/nonexistent", AT_FDCWD, "/nonexistent2", 0))
TRY(asks_tty, syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */, "x"))
TRY(clone3_fails, syscall(SYS_clone3, NULL, 0))
TRY(unknown_call, syscall(9999))
TRY(kills_others, kill(1, 0))
TRY(signals_others, syscall(SYS_tgkill, getppid(), getppid(), 0))
TRY(dumps_no_more, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
TRY(names_thread, prctl(PR_SET_NAME, "x", 0, 0, 0))
TRY(makes_itself_nice, setpriority(PRIO_PROCESS, 0, 19))
TRY(makes_others_nice, setpriority(PRIO_PROCESS, (id_t)getppid(), 19))
TRY(makes_all_nice, setpriority(PRIO_USER, 0, 19))
TRY(sets_up_ring, syscall(SYS_io_uring_setup, 0, NULL))
TRY(sets_up_aio, syscall(SYS_io_setup, 0, NULL))
TRY(submits_aio, syscall(SYS_io_submit, 0, 0, NULL))
TRY(asks_aio, syscall(SYS_io_getevents, 0, 0, 0, NULL, NULL))

static int
forks(void)
{
	return (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) < 0 ? errno : 0);
}

static int
locks(void)
{
	static char page[4096];

	return (syscall(SYS_mlock, page, sizeof(page)) == 0 ? 0 : errno);
}

static int
maps_code(void)
{
	return (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			MAP_FAILED
		    ? errno
		    : 0);
}

static int
makes_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return (UNEXPECTED);
	return (mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? errno : 0);
}

static int
aborts(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void *
nothing(void *arg)
{
	return (arg);
}

/* Calls that both programs make all the time. */
static int
works(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), wake = eventfd(1, EFD_CLOEXEC),
	    mem = memfd_create("x", MFD_CLOEXEC), fd;
	pthread_t thread;
	struct statx stx;
	struct rlimit lim;
	char bytes[8];

	if (ep < 0 || wake < 0 || mem < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, wake, &ev) != 0 ||
	    epoll_wait(ep, &ev, 1, 0) != 1)
		return (1);
	if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return (2);
	if (ftruncate(mem, 100) != 0 || write(mem, "12345678", 8) != 8 ||
	    pread(mem, bytes, 8, 0) != 8)
		return (3);
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &stx) != 0 || close(fd) != 0)
		return (4);
	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || malloc(1 << 20) == NULL || usleep(1) != 0)
		return (5);
	return (0);
}

/* The C library checks that a name with a slash at its end is a directory. */
static int
resolves(void)
{
	char *real = realpath("/proc/", NULL);

	return (real != NULL && strcmp(real, "/proc") == 0 ? 0 : errno);
}

/* ---- a child that enters and tries */

static int
outcome(unsigned programs, int (*what)(void))
{
	struct sandbox got;
	char why[256];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		if (sandbox_enter(programs, NULL, &got, why, sizeof(why)) != 0 || !got.seccomp)
			_exit(UNEXPECTED);
		_exit(what());
	}
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	return (WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
}

struct
try {
	const char *name;
	int (*what)(void);
	int in_server, in_accelerator; /* errno, 0: it may; DIES */
	bool sanitizers;               /* builds with a sanitizer may do it */
};

#define T(what, s, a)                    \
	{                                \
#what, what, s, a, false \
	}
#define T_SAN(what, s, a)               \
	{                               \
#what, what, s, a, true \
	}

static const struct try tries[] = {
	T(executes, DIES, DIES),
	T(executes_at, DIES, DIES),
	T_SAN(forks, DIES, DIES),
	T_SAN(traces, DIES, DIES),
	T_SAN(reads_others, DIES, DIES),
	T(writes_others, DIES, DIES),
	T(loads_bpf, DIES, DIES),
	T(mounts, DIES, DIES),
	T(unmounts, DIES, DIES),
	T(changes_root, DIES, DIES),
	T(becomes_root, DIES, DIES),
	T(becomes_group, DIES, DIES),
	T(uses_keys, DIES, DIES),
	T(loads_module, DIES, DIES),
	T(loads_kernel, DIES, DIES),
	T(enters_namespace, DIES, DIES),
	T(makes_namespace, DIES, DIES),
	T(faults_in_user, DIES, DIES),
	T(counts_events, DIES, DIES),
	T(opens_by_handle, DIES, DIES),
	T_SAN(packet_socket, DIES, DIES),
	T_SAN(crypto_socket, DIES, DIES),
	T_SAN(vm_socket, DIES, DIES),
	T_SAN(hidden_family, DIES, DIES),
	T_SAN(netlink_socket, EAFNOSUPPORT, EAFNOSUPPORT),
	T_SAN(unix_socket, 0, DIES),
	T_SAN(inet_socket, 0, DIES),
	T_SAN(inet6_socket, 0, DIES),
	T(connects, EBADF, ENOSYS),
	T(binds, EBADF, ENOSYS),
	T_SAN(maps_code, 0, ENOSYS),
	T_SAN(locks, ENOSYS, 0),
	T_SAN(makes_code, 0, ENOSYS),
	T(changes_mode, ENOSYS, ENOSYS),
	T(links, ENOSYS, ENOSYS),
	T(renames, ENOENT, ENOSYS),
	T_SAN(asks_tty, ENOSYS, ENOSYS),
	T(clone3_fails, ENOSYS, ENOSYS),
	T(unknown_call, ENOSYS, ENOSYS),
	T_SAN(kills_others, ENOSYS, ENOSYS),
	T_SAN(signals_others, ENOSYS, ENOSYS),
	T_SAN(dumps_no_more, ENOSYS, ENOSYS),
	T(names_thread, 0, 0),
	T(makes_itself_nice, 0, ENOSYS),
	T(makes_others_nice, ENOSYS, ENOSYS),
	T(makes_all_nice, ENOSYS, ENOSYS),
	T(sets_up_ring, ENOSYS, ENOSYS),
	T(sets_up_aio, EFAULT, ENOSYS),
	T(submits_aio, EINVAL, ENOSYS),
	T(asks_aio, EINVAL, ENOSYS),
	T(aborts, -SIGABRT, -SIGABRT),
	T(works, 0, 0),
	T(resolves, 0, 0),
};

static bool
usable(void)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0)
		return (true);
	g_test_skip("this kernel has no seccomp");
	return (false);
}

static void
one(gconstpointer arg)
{
	const struct try *t = arg;

	if (!usable())
		return;
	if (SANITIZED && t->sanitizers) {
		g_test_skip("a sanitizer needs it");
		return;
	}
	g_assert_cmpint(outcome(server, t->what), ==, t->in_server);
	g_assert_cmpint(outcome(accelerator, t->what), ==, t->in_accelerator);
}

/* Only the backend io-uring may use the ring: seccomp does not see what goes through it. */
TEST("/sandbox-calls/ring")
{
	if (usable())
		g_assert_cmpint(outcome(SANDBOX_SERVER | SANDBOX_URING, sets_up_ring), !=, ENOSYS);
}

static int
looks(void)
{
	return (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno);
}

static int
pairs(void)
{
	int v[2];

	return (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, v) == 0 ? 0 : errno);
}

static int
threads(void)
{
	pthread_t thread;

	return (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0
		    ? errno
		    : 0);
}

/* The process with private keys may do less than any other. */
TEST("/sandbox-calls/keys")
{
	size_t i;

	if (!usable())
		return;
	for (i = 0; i < G_N_ELEMENTS(tries); i++)
		if (tries[i].in_accelerator == DIES && !(SANITIZED && tries[i].sanitizers))
			g_assert_cmpint(outcome(SANDBOX_KEYS, tries[i].what), ==, DIES);
	g_assert_cmpint(outcome(SANDBOX_KEYS, looks), ==, ENOSYS);
	g_assert_cmpint(outcome(SANDBOX_KEYS, pairs), ==, ENOSYS);
	g_assert_cmpint(outcome(SANDBOX_KEYS, threads), ==, 0);
}

/* A name that libseccomp does not know would make no rule. */
TEST("/sandbox-calls/names")
{
	static const char *const name[] = {
#define C(name, programs) #name,
#define N(name, number, programs)
#define K(name) #name,
#include "io/start/sandbox_calls.def"
#undef C
#undef N
#undef K
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(name); i++) {
		if (seccomp_syscall_resolve_name(name[i]) == __NR_SCMP_ERROR)
			g_test_fail_printf("no system call has the name %s", name[i]);
	}
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
		char *path =
		    g_strdelimit(g_strdup_printf("/sandbox-calls/%s", tries[i].name), "_", '-');

		g_test_add_data_func(path, &tries[i], one);
		g_free(path);
	}
	return (tests_run());
}
