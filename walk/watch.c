#include "walk/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "walk/report.h"

#define TICK_MS    250
#define VERBOSE_NS (10 * NS_PER_S)

struct walk_progress
watch_measure(struct watch *w)
{
	struct walk_progress p = { .total = 0 };
	uint64_t now = clock_mono_ns();

	w->measure(w->arg, &p);
	p.seconds = (double)(now - w->start_ns) / NS_PER_S;
	rate_note(&w->rate, now, p.counters.finished);
	p.rate = p.seconds > RATE_SECONDS + 1 ? rate_read(&w->rate, now)
					      : (double)p.counters.finished / MAX(p.seconds, 1e-6);
	return (p);
}

static unsigned
columns(void)
{
	struct winsize size;

	return (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u
										: 79);
}

static void
tell(struct watch *w, bool in_a_line)
{
	struct walk_progress p = watch_measure(w);
	GString *s = g_string_new(NULL);

	walk_progress_line(&p, in_a_line ? 0 : columns(), s);
	if (in_a_line)
		walk_message("%s", s->str);
	else
		walk_status_line(s->str);
	g_string_free(s, TRUE);
}

void
watch_summary(struct watch *w, const GString *s)
{
	walk_status_line(NULL);
	fputs(s->str, stdout);
	fflush(stdout);
}

static void
tick(struct watch *w)
{
	uint64_t now = clock_mono_ns();

	if (w->tick != NULL)
		w->tick(w->arg);
	if (w->bar)
		tell(w, false);
	if (w->verbose && !w->bar && now >= w->verbose_ns) {
		tell(w, true);
		w->verbose_ns = now + VERBOSE_NS;
	}
}

/* The signal that ends the program, or 0. */
static int
take_signal(struct watch *w)
{
	struct signalfd_siginfo si;

	if (read(w->signal_fd, &si, sizeof(si)) != sizeof(si))
		return (0);
	if (si.ssi_signo != SIGUSR1)
		return ((int)si.ssi_signo);
	tell(w, true);
	return (0);
}

int
watch_wait(struct watch *w)
{
	struct pollfd fds[] = { { .fd = w->over_fd, .events = POLLIN },
		{ .fd = w->signal_fd, .events = POLLIN } };
	int signo = 0;

	while (signo == 0 && !(fds[0].revents & POLLIN)) {
		if (poll(fds, G_N_ELEMENTS(fds), TICK_MS) < 0)
			continue; /* revents are unchanged */
		if (fds[1].revents & POLLIN)
			signo = take_signal(w);
		tick(w);
	}
	return (fds[0].revents & POLLIN ? 0 : signo);
}

static void
ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
}

static int
catch_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int
watch_open(struct watch *w)
{
	w->over_fd = eventfd(0, EFD_CLOEXEC);
	w->signal_fd = catch_signals();
	if (w->over_fd < 0 || w->signal_fd < 0)
		return (-errno);
	w->start_ns = clock_mono_ns();
	w->verbose_ns = w->start_ns + VERBOSE_NS;
	w->bar = !w->quiet && isatty(STDERR_FILENO);
	return (0);
}

/* A SIGUSR1 that comes too late must not end the program. */
void
watch_close(struct watch *w)
{
	sigset_t set;

	close(w->over_fd);
	close(w->signal_fd);
	ending_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
