/* io/sandbox.h -- what this process may ask of the kernel from now on: which names it opens, which calls it makes.
 *
 *   names   Landlock: a table of paths, each with what may be done there.  All other names fail with EACCES; nothing can
 *           be executed.  Names can still be looked up anywhere: stat() is not confined.  TCP ports are not confined here.
 *   calls   seccomp: io/sandbox_calls.def lists what a program needs.  What only an intruder asks for kills the process;
 *           the rest fails with ENOSYS.
 *
 * Both end the gain of privileges by execve(2) (no_new_privs).
 *
 * Owner    the caller; all is copied.
 * Thread   the first one, before it starts others: those inherit it.  There is no way back.
 */
#ifndef IO_SANDBOX_H
#define IO_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whose calls are allowed. */
enum sandbox_program {
	SANDBOX_SERVER = 1,	 /* accel-server */
	SANDBOX_ACCELERATOR = 2, /* fcgi-stat-accel: connects nowhere, maps nothing to execute */
	SANDBOX_URING = 4,	 /* with SANDBOX_SERVER: io_uring, whose operations seccomp does not see */
};

/* What may be done with a path, or below it when it is a directory. */
enum sandbox_right {
	SANDBOX_READ = 1,	/* files are read, directories listed */
	SANDBOX_APPEND = 2,	/* files are made and written, not read: a directory of logs */
	SANDBOX_SPOOL = 4,	/* files are made, written, read, and removed */
	SANDBOX_REMOVE = 8,	/* files are removed: the directory of a socket */
	SANDBOX_WRITE = 16,	/* a file that is there is written: /dev/null */
	SANDBOX_BESIDE = 32,	/* the rights are for the directory that holds this path */
	SANDBOX_OPTIONAL = 64,	/* the path may be missing */
};

struct sandbox_path {
	const char *path;
	unsigned rights;	/* enum sandbox_right */
};

#define SANDBOX_DIRS_MAX 8192	/* different directories to read or to spool to; with more the sandbox cannot be entered */

struct sandbox {
	int  landlock;		/* version of the kernel's interface, 1 or more; 0: names are not confined */
	bool seccomp;		/* calls are filtered */
	size_t n;
	struct {
		uint64_t dev, ino;
		unsigned rights; /* SANDBOX_READ, SANDBOX_SPOOL */
	} dir[SANDBOX_DIRS_MAX];
};

/* Paths: NULL path at the end; NULL: names are not confined.  0: *got says what this kernel has; what it does not have at all is
 * left out.  -errno: *why says what failed, at which path; the process may be confined in part, and has to end. */
int sandbox_enter(unsigned programs, const struct sandbox_path *paths, struct sandbox *got, char *why, size_t size);

/* SANDBOX_READ or SANDBOX_SPOOL holds in this directory, or it is not there: it is one of those that were named at the start, or
 * lies below one.  As the kernel sees it: by the directories themselves, not by their names. */
bool sandbox_allows(const struct sandbox *, unsigned right, const char *dir);

/* One line: what was entered, or what the kernel lacks.  wanted: names were to be confined. */
void sandbox_log(const struct sandbox *, bool wanted);

#endif
