/* job.h -- a request of the kernel on its way through the disks.
 *
 *     job_submit() --> [ waiting ] --> spindle: [ serving ] --> answer
 *                                                    |
 *                                       a rule says "hang", or stays with its spindle
 *                                                    v
 *     job_submit_free() ---------------------->  [ hung ] --> jobs_go(): answer
 *
 * A job belongs to this file from its submission; the request is answered once, and the job freed.
 * Submissions come from the thread that receives requests, everything else from any thread.
 */
#ifndef SLOWFS_JOB_H
#define SLOWFS_JOB_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "node.h"
#include "rule.h"

enum kind { LOOKUP, GETATTR, OPEN, READ, WRITE, FLUSH, KINDS };

TAILQ_HEAD(job_list, job);

struct job {
	TAILQ_ENTRY(job) link;
	struct job_list *in;
	uint64_t id;
	enum kind kind;
	void (*answer)(struct job *);
	/* NULL: answered early; the fields below are not valid then */
	fuse_req_t req;
	pid_t caller, caller_group; /* see caller.h; the group is known of hung ones only */
	bool signalled;             /* the kernel says that the caller got a signal */
	bool on_spindle;            /* hung, and a spindle with it */
	struct node *node;          /* the parent of a look-up, else the file itself */
	double ms;
	struct fuse_file_info fi;
	size_t size;
	off_t off;
	void *data; /* of a write; freed with the job */
	char name[];
};

/* A job for the request.  NULL, and the request answered, when there is no memory. */
struct job *job_new(fuse_req_t, fuse_ino_t, enum kind, double ms, void (*answer)(struct job *),
    const char *name);
void job_submit(struct job *);      /* to the spindles */
void job_submit_free(struct job *); /* costs no time and needs no spindle */

int spindles_start(
    int count); /* and the thread that ends requests of killed callers; 0 or -errno */

int jobs_rule(const struct outcome *, off_t from, const char *pattern); /* as rule_add() */
/* no rules any more; what hung has been answered on return */
void jobs_go(void);
void jobs_stop(void);     /* all are answered with EIO, and those to come */
bool jobs_can_hang(void); /* a request hangs, or a rule would let one */

/* "lookups=1 opens=1 ..." of those that reached the disks; `now` adds what is waiting, served,
 * hanging. */
void jobs_counters(char *buf, size_t size, bool now);

#endif
