/* server/helper/cgi_run.c -- the runner of one CGI program: bytes between the worker's socket and
 * the program's pipes, and the end of both; see cgi.h.
 *
 *   stage       ends when
 *   request     the variables are there
 *   running     standard output is closed, and the program has ended or HOLD_MS have passed
 *   replied     the program has ended: its reply is complete, it may go on with other work
 *   ending      no process of its group is left
 *
 * Each direction waits for room: at most ROOM bytes are kept in each.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/helper/cgi.h"
#include "server/helper/impl.h"
#include "wire/codec/cgi_request.h"

#define ROOM    (64u << 10)
#define PIECE   (32u << 10) /* of one read; below the most that a record holds */
#define HOLD_MS 200u        /* a program that closes its output usually ends at once */
#define STEP_MS 20          /* between looks at a group that ends */
#define NEVER   UINT64_MAX

enum stage { RUN_REQUEST, RUN_RUNNING, RUN_REPLIED, RUN_ENDING };

struct run {
	enum stage stage;
	struct cgi_request req;
	struct cgi_job job;
	struct buf body, reply; /* bytes for the program; for the worker */
	bool body_ends;
	int sock, signals;
	int in, out, err; /* ends of the program's pipes; -1: closed */
	pid_t pid;        /* 0: none; also its group */
	bool exited;      /* it is a zombie, so its number stays in use */
	int status;
	uint64_t until_ns;   /* deadline of the stage */
	uint64_t over_ns;    /* the program's time is over */
	uint64_t written_ns; /* the last byte of the body was taken */
	uint64_t closed_ns;  /* standard output was closed; NEVER: not yet */
};

static uint64_t
after_ms(uint64_t ms)
{
	return (clock_mono_ns() + ms * NS_PER_MS);
}

static void
shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---------------------------------------------------------------- records for the worker */

static void
put_record(struct run *r, enum fcgi_type type, const char *p, size_t n)
{
	uint8_t head[FCGI_HEAD];

	fcgi_head(head, type, 1, n);
	buf_add(&r->reply, head, sizeof(head));
	buf_add(&r->reply, p, n);
}

static void
put_str(struct run *r, enum fcgi_type type, const char *s)
{
	put_record(r, type, s, strlen(s));
}

static void
put_end(struct run *r)
{
	static const char complete[8] = { 0 };

	put_record(r, END_REQUEST, complete, sizeof(complete));
}

/* A line of the error log. */
static void
note(struct run *r, const char *script, const char *why)
{
	char *line = g_strdup_printf("cgi: \"%s\": %s\n", script, why);

	put_record(r, STDERR, line, MIN(strlen(line), PIECE));
	g_free(line);
}

static void
refuse(struct run *r, int status, const char *why)
{
	char head[128];

	note(r, r->job.script != NULL ? r->job.script : "", why);
	snprintf(head, sizeof(head),
	    "Status: %d\r\nContent-Type: text/plain\r\n\r\nThe program cannot run (%d).\n", status,
	    status);
	put_str(r, STDOUT, head);
	put_end(r);
	r->stage = RUN_REPLIED;
}

/* ---------------------------------------------------------------- the end of the program */

static void
signal_group(const struct run *r, int sig)
{
	if (r->pid > 0)
		(void)kill(-r->pid, sig);
}

static void
begin_end(struct run *r)
{
	if (r->stage == RUN_ENDING)
		return;
	r->stage = RUN_ENDING;
	r->until_ns = after_ms(CGI_GRACE_MS);
	shut(&r->sock);
	shut(&r->in);
	signal_group(r, r->job.signal);
	signal_group(r, SIGCONT); /* a stopped process does not see SIGTERM */
}

/* The number of a process that was waited for may become that of another group: the first process
 * stays a zombie until its group has got its last signal. */
static bool
group_is_over(struct run *r)
{
	if (r->pid <= 0)
		return (true);
	if (!r->exited)
		return (false);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return (kill(-r->pid, 0) != 0);
}

static _Noreturn void
end_step(struct run *r)
{
	while (!group_is_over(r)) {
		if (clock_mono_ns() >= r->until_ns)
			signal_group(r, SIGKILL);
		(void)poll(NULL, 0, STEP_MS);
		if (!r->exited) {
			siginfo_t si = { .si_pid = 0 };

			r->exited =
			    waitid(P_PID, (id_t)r->pid, &si, WEXITED | WNOWAIT | WNOHANG) == 0 &&
			    si.si_pid != 0;
		}
	}
	_exit(0);
}

/* ---------------------------------------------------------------- the start of the program */

/* Both ends close at exec; ours does not wait. */
static bool
pipe_open(int fds[2], int ours)
{
	return (pipe2(fds, O_CLOEXEC) == 0 && fcntl(fds[ours], F_SETFL, O_NONBLOCK) == 0);
}

/* True if exec succeeded.  Waits for exec, which may wait for a disk. */
static bool
was_executed(int report, int *err)
{
	ssize_t n;

	while ((n = read(report, err, sizeof(*err))) < 0 && errno == EINTR)
		;
	close(report);
	return (n == 0);
}

static void
program_start(struct run *r)
{
	int in[2], out[2], err[2], report[2], failed, status;
	pid_t runner = getpid();
	const char *why;

	if (!pipe_open(in, 1) || !pipe_open(out, 0) || !pipe_open(err, 0) ||
	    pipe2(report, O_CLOEXEC) != 0 || (r->pid = fork()) < 0) {
		r->pid = 0;
		refuse(r, 503, "too many processes or descriptors; lower cgi.max-programs");
		return;
	}
	if (r->pid == 0) {
		(void)setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != runner)
			_exit(1);
		cgi_job_exec(&r->job, (int[3]){ in[0], out[1], err[1] }, report[1]);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	close(report[1]);
	r->in = in[1];
	r->out = out[0];
	r->err = err[0];
	r->stage = RUN_RUNNING;
	r->until_ns = NEVER;
	if (r->job.run_ms != 0)
		r->over_ns = after_ms(r->job.run_ms);
	if (was_executed(report[0], &failed))
		return;
	status = cgi_exec_failed(&r->job, failed, &why);
	refuse(r, status, why);
}

static void
request_complete(struct run *r, const struct cgi_allowed *allowed)
{
	const char *why = "the server sent a malformed request";
	int status = 500;

	if (cgi_job_read(buf_as_text(&r->req.params), allowed->names, &r->job) == 0)
		status = cgi_job_check(&r->job, allowed->names, &why);
	if (status != 0)
		refuse(r, status, why);
	else
		program_start(r);
	r->written_ns = clock_mono_ns();
}

/* ---------------------------------------------------------------- bytes */

static void
from_worker(struct run *r, const struct cgi_allowed *allowed)
{
	char bytes[PIECE];
	ssize_t n = recv(r->sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct text in = { bytes, n > 0 ? (size_t)n : 0 }, body;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		begin_end(r);
		return;
	}
	for (;;) {
		switch (cgi_request_feed(&r->req, &in, &body)) {
		case CGI_MORE: return;
		case CGI_PARAMS: request_complete(r, allowed); break;
		case CGI_BODY:
			if (r->in >= 0)
				buf_text(&r->body, body);
			break;
		case CGI_END: r->body_ends = true; break;
		case CGI_BAD: begin_end(r); return;
		}
	}
}

static void
to_worker(struct run *r)
{
	ssize_t n = send(r->sock, r->reply.p, r->reply.n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		buf_drop(&r->reply, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR)
		begin_end(r);
}

/* The program reads no more, so it does not need the rest. */
static void
to_program(struct run *r)
{
	ssize_t n = r->body.n != 0 ? write(r->in, r->body.p, r->body.n) : 0;

	if (n > 0) {
		buf_drop(&r->body, (size_t)n);
		r->written_ns = clock_mono_ns();
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		r->body.n = 0;
		shut(&r->in);
	}
}

/* Passes one read of the program's output to the server.  False: there is no more for now. */
static bool
from_program(struct run *r, int *fd, enum fcgi_type type)
{
	char bytes[PIECE];
	ssize_t n = read(*fd, bytes, sizeof(bytes));

	if (n > 0 && r->sock >= 0 && r->stage == RUN_RUNNING)
		put_record(r, type, bytes, (size_t)n);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return (n > 0);
	shut(fd);
	if (type == STDOUT)
		r->closed_ns = clock_mono_ns();
	return (false);
}

/* ---------------------------------------------------------------- stages */

/* If a signal ended the program, its reply may be incomplete. */
static void
reply_complete(struct run *r)
{
	char why[64];

	if (r->err >= 0)
		while (r->reply.n < 2 * ROOM && from_program(r, &r->err, STDERR))
			;
	if (r->exited && WIFSIGNALED(r->status)) {
		snprintf(why, sizeof(why), "it was ended by signal %d", WTERMSIG(r->status));
		note(r, r->job.script, why);
	} else
		put_end(r);
	r->stage = RUN_REPLIED;
}

static void
look_for_exit(struct run *r)
{
	struct signalfd_siginfo s;
	siginfo_t si = { .si_pid = 0 };

	while (read(r->signals, &s, sizeof(s)) > 0)
		if (s.ssi_signo == SIGTERM)
			begin_end(r);
	if (r->pid <= 0 || r->exited ||
	    waitid(P_PID, (id_t)r->pid, &si, WEXITED | WNOWAIT | WNOHANG) != 0 || si.si_pid == 0)
		return;
	r->exited = true;
	r->status = si.si_code == CLD_EXITED ? si.si_status << 8 : si.si_status;
}

static void
advance(struct run *r)
{
	uint64_t now = clock_mono_ns();

	if (r->stage == RUN_RUNNING && r->out < 0 &&
	    (r->exited || now >= r->closed_ns + HOLD_MS * NS_PER_MS))
		reply_complete(r);
	if (r->stage == RUN_REPLIED && r->reply.n == 0)
		shut(&r->sock);
	if (r->in >= 0 && r->body_ends && r->body.n == 0)
		shut(&r->in);
	if (r->in >= 0 && r->body.n != 0 && r->job.write_ms != 0 &&
	    now >= r->written_ns + r->job.write_ms * NS_PER_MS) {
		note(r, r->job.script, "it took no byte of the request body in time");
		to_worker(r);
		begin_end(r);
	}
	if ((r->stage == RUN_REQUEST && now >= r->until_ns) ||
	    (r->stage == RUN_REPLIED && r->sock < 0 && (r->exited || r->pid == 0)) ||
	    now >= r->over_ns)
		begin_end(r);
}

/* If the client has the whole reply, the program is not ended. */
static void
worker_left(struct run *r)
{
	if (r->stage == RUN_REPLIED)
		shut(&r->sock);
	else
		begin_end(r);
}

static int
wait_ms(const struct run *r)
{
	uint64_t now = clock_mono_ns(), next = MIN(r->until_ns, r->over_ns);

	if (r->stage == RUN_RUNNING && r->out < 0)
		next = MIN(next, r->closed_ns + HOLD_MS * NS_PER_MS);
	if (r->in >= 0 && r->body.n != 0 && r->job.write_ms != 0)
		next = MIN(next, r->written_ns + r->job.write_ms * NS_PER_MS);
	if (next == NEVER)
		return (-1);
	return (next <= now ? 0 : (int)MIN((next - now) / NS_PER_MS + 1, 60000u));
}

static void
round_once(struct run *r, const struct cgi_allowed *allowed)
{
	bool room = r->reply.n < ROOM;
	struct pollfd p[5] = {
		{ .fd = r->signals, .events = POLLIN },
		{ .fd = r->sock, .events = POLLRDHUP },
		{ .fd = r->body.n != 0 ? r->in : -1, .events = POLLOUT },
		{ .fd = room ? r->out : -1, .events = POLLIN },
		{ .fd = room ? r->err : -1, .events = POLLIN },
	};

	p[1].events |= (short)(r->body.n < ROOM ? POLLIN : 0);
	p[1].events |= (short)(r->reply.n != 0 ? POLLOUT : 0);
	if (poll(p, 5, wait_ms(r)) < 0 && errno != EINTR)
		_exit(1);
	look_for_exit(r);
	if (r->stage != RUN_ENDING && (p[1].revents & POLLIN) != 0)
		from_worker(r, allowed);
	else if ((p[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
		worker_left(r);
	if (r->sock >= 0 && (p[1].revents & POLLOUT) != 0)
		to_worker(r);
	if (r->in >= 0 && p[2].revents != 0)
		to_program(r);
	if (r->out >= 0 && p[3].revents != 0)
		(void)from_program(r, &r->out, STDOUT);
	if (r->err >= 0 && p[4].revents != 0)
		(void)from_program(r, &r->err, STDERR);
}

/* SIGTERM: the helper or the server has ended. */
static int
signals_take(pid_t helper)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != helper)
		_exit(1);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

_Noreturn void
cgi_run(const struct cgi_allowed *allowed, int sock, pid_t helper)
{
	static struct run r;

	r = (struct run){ .sock = sock,
		.in = -1,
		.out = -1,
		.err = -1,
		.over_ns = NEVER,
		.closed_ns = NEVER,
		.until_ns = after_ms(CGI_REQUEST_MS),
		.job.signal = SIGTERM };
	if (!cgi_become(allowed->names))
		_exit(1);
	r.signals = signals_take(helper);
	prctl(PR_SET_NAME, "accel-cgi");
	cgi_request_init(&r.req);
	buf_init(&r.body, 0);
	buf_init(&r.reply, 0);
	while (r.stage != RUN_ENDING) {
		round_once(&r, allowed);
		advance(&r);
	}
	end_step(&r);
}
