/* io/start/lock_memory.c -- see lock_memory.h */
#include "io/start/lock_memory.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include "base/must.h"

static void
raise_limit(void)
{
	struct rlimit rl, none = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &none) == 0 || getrlimit(RLIMIT_MEMLOCK, &rl) != 0)
		return;
	rl.rlim_cur = rl.rlim_max;
	(void)setrlimit(RLIMIT_MEMLOCK, &rl);
}

static uint64_t
limit_now(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_MEMLOCK, &rl) != 0 || rl.rlim_cur == RLIM_INFINITY)
		return (LOCK_MEMORY_NO_LIMIT);
	return (rl.rlim_cur);
}

/* ---------------------------------------------------------------- the program */

struct pass {
	struct lock_memory *done;
	bool tls;  /* loops speak TLS */
	bool code; /* the segments with code, or the others */
};

/* mlock() reads all pages, even those that MCL_ONFAULT would leave on the disk until they are
 * used. */
static void
lock_range(struct lock_memory *done, uintptr_t from, uintptr_t to)
{
	int err = mlock((const void *)from, to - from) == 0 ? 0 : -errno;

	if (err == 0)
		done->program += to - from;
	else
		done->left += to - from;
	if (done->err == 0)
		done->err = err;
}

static bool
is_one_of(const char *library, const char *const *names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strstr(library, names[i]) != NULL)
			return (true);
	return (false);
}

/* Loops do not run the code of these libraries: threads compress and hash passwords (IO_WORK), and
 * only TLS needs OpenSSL.  They are 1.8 and 5.4 MB of the 8 MiB that the kernel lets any user
 * lock. */
static bool
is_of_others(const char *library, bool tls)
{
	static const char *const threads[] = { "/libbrotli", "/libzstd.", "/libz.", "/libcrypt." },
				 *const openssl[] = { "/libssl.", "/libcrypto." };

	return (is_one_of(library, threads, NELEM(threads)) ||
		(!tls && is_one_of(library, openssl, NELEM(openssl))));
}

/* Called for the program and for each of its libraries. */
static int
lock_object(struct dl_phdr_info *o, size_t size, void *arg)
{
	const struct pass *p = arg;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from, to;
	size_t i;

	(void)size;
	if (is_of_others(o->dlpi_name, p->tls))
		return (0);
	for (i = 0; i < o->dlpi_phnum; i++) {
		if (o->dlpi_phdr[i].p_type != PT_LOAD ||
		    ((o->dlpi_phdr[i].p_flags & PF_X) != 0) != p->code)
			continue;
		from = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
		to = from + o->dlpi_phdr[i].p_memsz;
		lock_range(p->done, from / page * page, (to + page - 1) / page * page);
	}
	return (0);
}

/* Code first: a small limit should reach the code. */
void
lock_memory_program(struct lock_memory *done, bool tls)
{
	struct pass code = { done, tls, true }, rest = { done, tls, false };

	raise_limit();
	*done = (struct lock_memory){ .limit = limit_now() };
	(void)dl_iterate_phdr(lock_object, &code);
	(void)dl_iterate_phdr(lock_object, &rest);
}

/* ---------------------------------------------------------------- the rest */

/* A right to exceed the limit counts only outside of user namespaces, so the kernel is asked by a
 * try. */
static bool
may_exceed(uint64_t limit)
{
	size_t size = (size_t)limit + (1u << 20);
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool may;

	if (p == MAP_FAILED)
		return (false);
	may = mlock2(p, size, MLOCK_ONFAULT) == 0;
	(void)munmap(p, size);
	return (may);
}

/* With a limit in force, each later malloc() of a process that locks all could fail.
 * MCL_ONFAULT: stacks of threads and empty tables take no memory before they are used. */
static int
lock_all(uint64_t limit)
{
	if (limit != LOCK_MEMORY_NO_LIMIT && !may_exceed(limit))
		return (-ENOMEM);
	return (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0 ? 0 : -errno);
}

void
lock_memory_rest(struct lock_memory *done)
{
	done->rest_err = lock_all(done->limit);
	done->rest = done->rest_err == 0;
}

bool
lock_memory_may_swap(void)
{
	struct sysinfo si;

	return (sysinfo(&si) == 0 && si.totalswap != 0);
}
