/* io/start/sandbox.h -- the sandbox: the paths that this process may open and the system calls that
 * it may make from now on.
 *
 *   names   Landlock: a table of paths with their rights.  All other paths fail with EACCES, and
 *           nothing can be executed.  stat() is not confined, nor are TCP ports.
 *   calls   seccomp: io/start/sandbox_calls.def lists the calls of each program.  A call that only
 * an
 *           intruder makes kills the process; all others fail with ENOSYS.
 *
 * Both require that execve(2) cannot gain privileges (no_new_privs).
 *
 * Owner    the caller; everything is copied.
 * Thread   the first one, before it starts others, which inherit the sandbox.  It is permanent.
 */
#ifndef IO_SANDBOX_H
#define IO_SANDBOX_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The programs whose calls are allowed. */
enum sandbox_program {
	SANDBOX_SERVER = 1,      /* accel-server */
	SANDBOX_ACCELERATOR = 2, /* fcgi-stat-accel: cannot connect, or map memory to execute */
	/* With SANDBOX_SERVER: io_uring, whose operations seccomp does not see. */
	SANDBOX_URING = 4,
	SANDBOX_KEYS = 8, /* the process with private keys: no file, no new socket */
};

/* Rights to a path, or to everything below a directory. */
enum sandbox_right {
	SANDBOX_READ = 1,      /* read files, list directories */
	SANDBOX_APPEND = 2,    /* make and write files, not read them: a directory of logs */
	SANDBOX_SPOOL = 4,     /* make, write, read and remove files */
	SANDBOX_REMOVE = 8,    /* remove files: the directory of a socket */
	SANDBOX_WRITE = 16,    /* write an existing file: /dev/null */
	SANDBOX_BESIDE = 32,   /* the rights are for the directory of this path */
	SANDBOX_OPTIONAL = 64, /* the path may be missing */
};

struct sandbox_path {
	const char *path;
	unsigned rights; /* enum sandbox_right */
};

struct sandbox {
	/* version of the kernel's interface, from 1 on; 0: paths are not confined */
	int landlock;
	bool seccomp;     /* system calls are filtered */
	GHashTable *dirs; /* to read or to spool to; NULL: none */
};

/* paths: NULL path at the end; NULL: paths are not confined.  0: *got has the sandbox in force;
 * parts that this kernel lacks are left out. -errno: *why names the failed step and path.  The
 * process may then be confined in part and has to exit. */
int sandbox_enter(unsigned programs, const struct sandbox_path *paths, struct sandbox *got,
    char *why, size_t size);

/* True if the right applies to this directory or file, or if it does not exist: it was named at the
 * start, or is below a directory that was.  Like the kernel, compares directories, not their
 * names. */
bool sandbox_allows(const struct sandbox *, unsigned right, const char *dir);

/* Logs one line: what is confined, or what the kernel lacks.  wanted: paths should be confined. */
void sandbox_log(const struct sandbox *, bool wanted);

#endif
