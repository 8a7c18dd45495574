/* server/request/fault.c -- see fault.h */
#include "server/request/fault.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "files/hold/hold.h"
#include "io/disk/pools_status.h"
#include "io/mounts.h"
#include "server/request/client.h"
#include "server/request/request.h"
#include "server/request/counters.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

enum fault_cause {
	FAULT_NONE,
	FAULT_APPLICATION,
	FAULT_FILE,
	FAULT_DESCRIPTORS,
	FAULT_MEMORY,
	FAULT_OTHER
};

struct fault {
	int err; /* of its look-up; 0: none failed */
	bool started, opened, told;
	/* Why the server answers with 5xx; it stays if an error handler answers. */
	enum fault_cause cause;
};
static REQUEST_SLOT(struct fault, mine);

/* Links that are not followed have their line, link.refused.  Sockets and devices are -EACCES, too.
 */
static bool
is_denied(int err)
{
	return (err == -EACCES || err == -EPERM);
}

static void
tell_denied(struct request *r, int err)
{
	char mount[IO_MOUNT_NAME];

	log_limited(10, LOG_WARN, conn_id(r), "file.denied", conn_client(r),
	    LF_TEXT("path", r->path != NULL ? request_path(r) : r->http.target),
	    LF_TEXT("file", r->lookup), LF_STR("device", fault_device(r, mount)),
	    LF_U64("uid", geteuid()), LF_ERR("error", err),
	    LF_STR("do", "let this user read the file and enter its directories (namei -l shows "
			 "the modes); sockets and devices are not sent"));
}

void
fault_note(struct request *r, const struct file_entry *e)
{
	struct fault *m = request_slot(r, mine);

	if (is_denied(e->err))
		tell_denied(r, e->err);
	if (http1_status_of_errno(e->err) < 500)
		return;
	m->err = e->err;
	m->started = e->open.start != 0;
	m->opened = e->open.opened != 0;
}

void
fault_is(struct request *r, int err)
{
	request_slot(r, mine)->err = err;
}

void
fault_told(struct request *r)
{
	request_slot(r, mine)->told = true;
}

static enum fault_cause
cause_of(const struct request *r)
{
	const struct fault *m = request_slot(r, mine);

	switch (-m->err) {
	case 0:
		if (r->proxied)
			return (FAULT_APPLICATION);
		return (m->told ? FAULT_OTHER : FAULT_MEMORY);
	case EMFILE:
	case ENFILE: return (FAULT_DESCRIPTORS);
	case ENOMEM: return (FAULT_MEMORY);
	default: return (FAULT_FILE);
	}
}

void
fault_own(struct request *r, int status)
{
	struct fault *m = request_slot(r, mine);

	if (status >= 500 && m->cause == FAULT_NONE)
		m->cause = cause_of(r);
}

void
fault_count(const struct request *r)
{
	struct request_counters *c = r->worker->counts.request;

	switch (request_slot(r, mine)->cause) {
	case FAULT_NONE: break; /* the application's own */
	case FAULT_APPLICATION: count(c, own_5xx_application); break;
	case FAULT_FILE: count(c, own_5xx_file); break;
	case FAULT_DESCRIPTORS: count(c, own_5xx_descriptors); break;
	case FAULT_MEMORY: count(c, own_5xx_memory); break;
	case FAULT_OTHER: count(c, own_5xx_other); break;
	}
}

static uint64_t
waited_ms(const struct request *r)
{
	return ((clock_mono_ns() - r->started_ns) / NS_PER_MS);
}

/* The mount point of its device.  The look-up was a third of the cost of a refusal, so it is done
 * only for a line that is written. */
const char *
fault_device(const struct request *r, char mount[IO_MOUNT_NAME])
{
	io_mount_of(r->scope->root, r->lookup.p, mount, IO_MOUNT_NAME);
	return (mount);
}

/* A device refuses jobs at once while it hangs, and while its queue is full. */
static bool
is_stuck(const struct request *r)
{
	char mount[IO_MOUNT_NAME];
	struct io_pools_status s;
	size_t i;

	fault_device(r, mount);
	io_pools_status_take(&s, r->worker->conf.io.pools);
	for (i = 0; i < s.ndevices; i++)
		if (s.device[i].stuck && strcmp(s.device[i].mount, mount) == 0)
			return (true);
	return (false);
}

static const char *
why_of(const struct request *r)
{
	switch (-request_slot(r, mine)->err) {
	case ETIMEDOUT: return ("the device did not answer within server.max-open-idle");
	case EAGAIN:
		return (is_stuck(r)
			    ? "the device hangs: requests for it are refused until it answers"
			    : "server.max-blocking-queue is reached for the device, or another "
			      "program holds a lease of the file");
	case EMFILE:
	case ENFILE: return ("no descriptors are left; raise server.max-fds");
	case ENOMEM: return ("no memory");
	default: return ("the file cannot be opened");
	}
}

/* Refused at once: the look-up did not begin. */
static const char *
stage_of(const struct request *r)
{
	const struct fault *m = request_slot(r, mine);

	if (m->err == -EAGAIN || !m->started)
		return ("look-up");
	return (m->opened ? "read" : "open");
}

static void
tell_file(struct request *r)
{
	char mount[IO_MOUNT_NAME];
	struct text path = request_path(r);

	log_limited(10, LOG_WARN, conn_id(r), "reply.failed", LF_U64("status", r->status),
	    LF_TEXT("path", path), LF_TEXT("file", r->lookup),
	    LF_STR("device", fault_device(r, mount)), LF_STR("stage", stage_of(r)),
	    LF_U64("waited-ms", waited_ms(r)), LF_ERR("error", request_slot(r, mine)->err),
	    LF_STR("why", why_of(r)), conn_client(r));
}

void
fault_tell(struct request *r)
{
	const struct fault *m = request_slot(r, mine);

	if (m->err != 0 && r->scope != NULL)
		tell_file(r);
	else if (!m->told && !r->proxied)
		log_limited(10, LOG_WARN, conn_id(r), "reply.failed", LF_U64("status", r->status),
		    LF_TEXT("path", r->path != NULL ? request_path(r) : TEXT("-")),
		    LF_STR("stage", "server"), LF_U64("waited-ms", waited_ms(r)),
		    LF_STR("why", "no memory, or too many jobs wait"), conn_client(r));
}

bool
fault_tell_read(struct request *r)
{
	char mount[IO_MOUNT_NAME];

	if (r->scope == NULL || !sender_waited_for_disk(&r->sender))
		return (false);
	log_limited(10, LOG_WARN, conn_id(r), "file.stalled", LF_TEXT("path", request_path(r)),
	    LF_TEXT("file", r->lookup), LF_STR("device", fault_device(r, mount)),
	    LF_STR("stage", "read"), LF_U64("waited-ms", waited_ms(r)), LF_U64("sent", r->sent),
	    LF_STR("why", "the device gave no bytes for server.max-write-idle"),
	    LF_STR("then", "connection cut"), conn_client(r));
	return (true);
}
