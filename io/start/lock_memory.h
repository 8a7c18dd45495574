/* io/start/lock_memory.h -- keeps the program in memory, so that its loops never read it from a
 * disk.
 *
 *   program file, libraries   code, constants, data: read now, and never dropped; not the libraries
 *                             that only threads run (compression, passwords), nor OpenSSL without
 *                             TLS
 *   all the rest              heap, stacks, tables: pages that are touched never go to swap
 *
 * The kernel drops pages of files that a busy cgroup has not used for a while, and pages of a
 * program are among them.  A loop that comes there next waits for the disk of the program file.
 * Measured in a cgroup of 48 MB, beside 20 clients of 1000 files of 100 kB, with the program on a
 * disk of 8 ms: of 3.9 MB of its pages 0.6 were left, and two loops waited 12 to 35 times in 6 s, 8
 * to 16 ms each; a round of a loop took up to 55 ms.  Locked, they wait for no disk.
 *
 * Locks hold for this process only: neither a child nor an executed program inherits them.
 *
 * Errors   the result says what could not be locked and why; the program works without.
 * Thread   the first of the process, before others start.
 */
#ifndef IO_LOCK_MEMORY_H
#define IO_LOCK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define LOCK_MEMORY_NO_LIMIT UINT64_MAX

struct lock_memory {
	uint64_t program;  /* bytes of the program and its libraries that are locked */
	uint64_t left;     /* bytes of them that are not */
	uint64_t limit;    /* of locked memory, RLIMIT_MEMLOCK, or LOCK_MEMORY_NO_LIMIT */
	bool rest;         /* all the rest, now and later, is locked, too */
	int err, rest_err; /* why not: -errno of the first failure, or 0 */
};

/* As root, before it becomes another user: raises the limit as far as that user may, then reads and
 * locks the program; tls: with OpenSSL, 5.4 MB.  Waits for the disk. */
void lock_memory_program(struct lock_memory *, bool tls);
/* As the final user of the process, because root's right to lock more ends when it becomes this
 * user. */
void lock_memory_rest(struct lock_memory *);
/* The machine has swap, so the heap may leave memory, too. */
bool lock_memory_may_swap(void);

#endif
