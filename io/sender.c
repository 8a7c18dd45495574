/* io/sender.c -- sends a body to a socket, one op at a time (and one read ahead).
 *
 *   sender_next() --> memory in front, windows held after it:
 *                                               IO_SEND            --> sent()     --> sender_next()
 *                     file, backend sends:      IO_SEND_FILE       --> sent()     --> sender_next()
 *                     file, backend reads:      window, or IO_READ --> read_done()--> sender_next()
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include "base/rate.h"
#include "io/disk/job.h"
#include "io/engine.h"
#include "io/hotset.h"
#include "io/sender.h"

#define LONG_RANGE (60u << 10)

enum {
	S_SENDING = 1, /* s->op in flight */
	S_READING = 2, /* s->read in flight */
	S_CANCELLED = 4,
	S_ENDING = 8,    /* s->res is final; waits for the ops in flight */
	S_WINDOW = 16,   /* s->op sends from the window */
	S_CORKED = 32,   /* the socket holds back partial segments */
	S_UNWANTED = 64, /* s->read brings bytes after a window that was given back */
	S_PROVING = 128, /* s->read brings a sample, and s->ahead is not sent before it is equal */
};

static void sender_next(struct sender *);

void
sender_init(struct sender *s, struct io *io, struct io_sock *sock)
{
	memset(s, 0, sizeof(*s));
	s->io = io;
	s->sock = sock;
	op_init(&s->op, IO_SEND, NULL);
	op_init(&s->read, IO_READ, NULL);
}

/* A hot reply would read the clock four times, so it uses the time of the loop.  Compared with a
 * wait for a disk, reading the clock costs nothing, and stamps of a thread must not be in the
 * future. */
static uint64_t
stamp(const struct sender *s)
{
	if (s->times == NULL)
		return (0);
	return (s->exact || !s->times->hot ? clock_mono_ns() : io_now(s->io));
}

/* ---------------------------------------------------------------- the end */

static void
window_free(struct sender *s, char **window)
{
	if (*window == NULL)
		return;
	s->io->held -= s->io->window;
	io_give_back(s->io, *window);
	*window = NULL;
}

static void
windows_free(struct sender *s)
{
	window_free(s, &s->window);
	window_free(s, &s->ahead);
}

/* Partial segments wait (at most 200 ms) until off.  A unix socket has no such option. */
static void
sock_cork(struct io_sock *s, bool on)
{
	int value = on;

	if (s->fd >= 0 && (s->hints & SOCK_SIM) == 0)
		(void)setsockopt(s->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

/* The part of a turn that a client has not used goes to the next clients. */
static void
give_turns_back(struct sender *s)
{
	struct sender_turn *t;

	for (t = s->turns; t < s->turns + SENDER_TURNS; t++) {
		if (t->of != NULL && t->left != 0)
			pace_give_back(t->of, t->left);
		t->left = 0;
	}
}

/* The backend sends from the file; otherwise windows are read, and sent as memory. */
static bool
sends_files(const struct sender *s)
{
	return (io_backend(s->io)->send_file && s->sock->transport == NULL);
}

static void
held_put(struct sender *s)
{
	while (s->nheld > 0)
		hotset_put(s->held[--s->nheld]);
}

static void
sender_end(struct sender *s, int res)
{
	if ((s->flags & S_ENDING) == 0) {
		s->flags |= S_ENDING;
		s->res = res;
	}
	if (s->flags & S_SENDING)
		op_cancel(s->io, &s->op);
	if (s->flags & S_READING)
		op_cancel(s->io, &s->read);
	if (s->flags & (S_SENDING | S_READING))
		return; /* their callbacks come here again */
	windows_free(s);
	held_put(s);
	give_turns_back(s);
	if (s->flags & S_CORKED)
		sock_cork(s->sock, false);
	s->flags = 0;
	s->body = NULL;
	s->done(s, s->res); /* may free *s */
}

/* ---------------------------------------------------------------- sending */

/* Time of a SEND_FILE that needed a thread, by part. */
static void
times_of_thread(struct sender_times *t, const struct io_stamps *at, uint64_t send_start,
    uint64_t now)
{
	t->write += at->submit - send_start; /* the socket was full before that */
	t->read_queue += at->start - at->submit;
	t->read += at->end - at->start;
	t->handover += at->handed - at->end;
	t->write += now - at->handed;
}

/* ---------------------------------------------------------------- the rate of a reply */

static void
windows_give_up(struct sender *s)
{
	windows_free(s);
	if (s->flags & S_READING)
		s->flags |= S_UNWANTED;
}

static void
pause_over(struct io_op *op)
{
	struct sender *s = container_of(op, struct sender, op);

	s->flags &= (uint8_t)~S_SENDING;
	if (s->times != NULL)
		s->idle_since = stamp(s);
	if (op->res == -ETIMEDOUT || (s->flags & S_CANCELLED))
		sender_next(s);
	else
		sender_end(s, op->res < 0 ? (int)op->res : -ECONNRESET);
}

bool
sender_is_paced(const struct sender *s)
{
	size_t i;

	for (i = 0; i < SENDER_TURNS; i++)
		if (s->turns[i].of != NULL)
			return (true);
	return (s->limit != 0);
}

/* Bytes that one call may send. */
static uint64_t
most_bytes(const struct sender *s)
{
	uint64_t n = pace_bytes(s->limit);
	size_t i;

	for (i = 0; i < SENDER_TURNS; i++)
		if (s->turns[i].of != NULL && s->turns[i].left < n)
			n = s->turns[i].left;
	return (n);
}

/* A short body takes a short turn: the rest would be lost for others. */
static void
take_turn(const struct sender *s, struct sender_turn *t, uint64_t now)
{
	if (t->left != 0)
		return;
	t->left = pace_turn_bytes(t->of->limit);
	if (t->left > s->body->left)
		t->left = s->body->left;
	t->at_ns = pace_turn(t->of, now, t->left);
}

/* When the next bytes may be sent. */
static uint64_t
due(struct sender *s, uint64_t now)
{
	uint64_t at = s->limit != 0 ? s->due_ns : 0;
	struct sender_turn *t;

	for (t = s->turns; t < s->turns + SENDER_TURNS; t++) {
		if (t->of == NULL)
			continue;
		take_turn(s, t, now);
		if (t->at_ns > at)
			at = t->at_ns;
	}
	return (at);
}

static void
note_sent(struct sender *s, uint64_t n)
{
	size_t i;

	s->sent += n;
	pace_note(&s->due_ns, io_now(s->io), n, s->limit);
	for (i = 0; i < SENDER_TURNS; i++)
		s->turns[i].left -= s->turns[i].left < n ? s->turns[i].left : n;
}

/* True: the bytes sent so far have not had their time; sending goes on then. */
static bool
pace(struct sender *s)
{
	uint64_t now, at;

	if (!sender_is_paced(s))
		return (false);
	now = io_now(s->io);
	at = due(s, now);
	if (at <= now)
		return (false);
	count(s->io->counters, rate_pauses);
	if (s->io->held > s->io->held_max)
		windows_give_up(s);
	s->op.kind = IO_PAUSE;
	s->op.sock = s->sock;
	s->op.done = pause_over;
	s->op.deadline_ms = (uint32_t)((at - now + NS_PER_MS - 1) / NS_PER_MS);
	s->flags |= S_SENDING;
	op_submit(s->io, &s->op);
	return (true);
}

/* ---------------------------------------------------------------- sending, what was sent */

static void
times_of_send(struct sender *s, const struct io_op *op)
{
	struct io_stamps at = op->at;
	uint64_t now;

	if (at.handed == 0 && op->threaded)
		at.handed = at.end; /* given up before its thread had finished */
	s->times->hot = s->times->hot && at.handed == 0;
	now = s->idle_since = stamp(s);
	if (at.handed != 0)
		times_of_thread(s->times, &at, s->send_start, now);
	else
		s->times->write += now - s->send_start;
}

/* Notes a file whose bytes may have been sent: later bytes must be of the same version. */
static void
note_begun(struct sender *s, const struct io_op *op)
{
	const struct io_file *f = body_front(s->body)->file;
	bool held = op->kind == IO_SEND && s->follows != NULL;

	if (held)
		f = s->follows;
	if (f == NULL)
		return;
	if (f != s->begun)
		s->was_read = false;
	if (f != s->begun && held)
		s->proof = (struct io_proof){ 0 };
	s->begun = f;
	s->was_read |= !held;
}

/* Notes the held bytes of the last window as sent. */
static void
note_held(struct sender *s, const struct io_op *op, uint64_t n)
{
	const struct iovec *v = op->send.iov;
	const struct body_piece *p = body_front(s->body);
	uint64_t k = n;

	while (k > v->iov_len)
		k -= v++->iov_len;
	if (v < op->send.iov + op->send.first || p == NULL || p->file != s->begun || p->off < k)
		return;
	io_proof_note(&s->proof, p->file, p->off - k, v->iov_base, (size_t)k);
}

static void
sent(struct io_op *op)
{
	struct sender *s = container_of(op, struct sender, op);

	s->flags &= (uint8_t)~S_SENDING;
	if (s->rate != 0)
		debt_note(&s->debt_ns, io_now(s->io) - s->asked_ns, op->res, s->rate);
	if (s->times != NULL && op->kind != IO_TIMER)
		times_of_send(s, op);
	if (op->res > 0) {
		note_sent(s, (uint64_t)op->res);
		note_begun(s, op);
		body_sent(s->body, (uint64_t)op->res);
		if (s->nheld > 0)
			note_held(s, op, (uint64_t)op->res);
		if (s->flags & S_WINDOW)
			s->window_pos += (uint32_t)op->res;
		s->flags &= (uint8_t)~S_WINDOW;
	} else if (op->kind == IO_SEND && op->pages && op->res == -EAGAIN) {
		op->pages = 0; /* the socket is full: no window is held while it is */
	} else if (op->kind != IO_TIMER && (op->kind != IO_WRITABLE || op->res < 0)) {
		sender_end(s, op->res < 0 ? (int)op->res : -ENODATA);
		return;
	}
	held_put(s);
	sender_next(s);
}

static void
submit_send(struct sender *s, enum io_kind kind, bool more)
{
	s->op.kind = kind;
	s->op.done = sent;
	s->op.sock = s->sock;
	s->op.client = s->client;
	s->op.more = more;
	s->op.deadline_ms = s->idle_ms != 0 ? debt_patience_ms(s->debt_ns, s->idle_ms) : 0;
	s->asked_ns = io_now(s->io);
	s->flags |= S_SENDING;
	s->send_start = stamp(s);
	op_submit(s->io, &s->op);
}

/* Leaves the first max bytes of n parts; returns the number of parts. */
static int
iov_cut(struct iovec *iov, int n, uint64_t max)
{
	int i;

	for (i = 0; i < n && max != 0; i++) {
		if (iov[i].iov_len > max)
			iov[i].iov_len = (size_t)max;
		max -= iov[i].iov_len;
	}
	return (i);
}

/* The window of these bytes; it is wanted.  NULL: it is not held, or bytes that were read from the
 * file may have been of another version. */
static struct held *
held_window(const struct sender *s, struct io_file *f, uint64_t off)
{
	if (!io_backend(s->io)->holds || (f == s->begun && s->was_read && io_file_look(f) != 0))
		return (NULL);
	return (io_file_held(f, off));
}

/* Adds the window of these bytes to the iov, if it is held.  Bytes; 0: it is not, or there is no
 * place for it. */
static uint64_t
add_window(struct sender *s, struct io_file *f, uint64_t off, uint64_t len)
{
	struct iovec *at = s->iov + s->op.send.n;
	struct held *w;
	uint64_t sum = 0;
	int i, n;

	if (s->nheld == SENDER_HELD || s->op.send.n == NELEM(s->iov))
		return (0);
	w = held_window(s, f, off);
	if (w == NULL)
		return (0);
	s->held[s->nheld++] = w;
	n = held_iov(w, (uint32_t)(off % IO_WINDOW), at, (int)NELEM(s->iov) - s->op.send.n);
	n = iov_cut(at, n, len);
	for (i = 0; i < n; i++)
		sum += at[i].iov_len;
	s->op.send.n += n;
	io_count_read(s->io, false);
	count(s->io->counters, hotset_sent);
	return (sum);
}

/* Adds the windows after the first i pieces, which are memory. */
static void
add_windows(struct sender *s, unsigned i)
{
	const struct body *b = s->body;
	const struct body_piece *p;
	uint64_t done, n, sum = 0;

	for (; i < b->n; i++) {
		p = &b->piece[(b->first + i) % b->cap];
		if (p->file == NULL || (s->follows != NULL && s->follows != p->file))
			return; /* of one file at a time */
		for (done = 0; done < p->len && sum < IO_SEND_FILE_MAX; done += n, sum += n) {
			n = add_window(s, p->file, p->off + done, p->len - done);
			if (n == 0)
				return;
			s->follows = p->file;
		}
		if (done < p->len)
			return;
	}
}

/* Bytes that were read for the file in front are sent first. */
static bool
window_is_empty(const struct sender *s)
{
	return (s->ahead == NULL && (s->flags & S_READING) == 0 &&
		(s->window == NULL || s->window_pos == s->window_len));
}

static bool
may_hold(const struct sender *s)
{
	return (io_backend(s->io)->holds && (s->sock->hints & SOCK_WRITABLE) && window_is_empty(s));
}

/* The window of these bytes is in memory, so no thread need read it; it is wanted. */
static bool
is_held(const struct sender *s, struct io_file *f, uint64_t off)
{
	struct held *w = held_window(s, f, off);

	if (w != NULL)
		hotset_put(w);
	return (w != NULL);
}

/* False: a file is in front, and it is not held.
 *
 * With a limit a pause may follow: no partial segment waits in the socket for more bytes.
 *
 * Windows are held only while they are sent, not while the socket is full: slow clients own
 * none. */
static bool
send_memory(struct sender *s)
{
	uint64_t sum = 0;
	bool more;
	int i;

	s->op.send.n = s->op.send.first = body_iov(s->body, s->iov, NELEM(s->iov), &more);
	if (more && may_hold(s))
		add_windows(s, (unsigned)s->op.send.n);
	if (s->op.send.n == 0)
		return (false);
	if (s->nheld > 0)
		window_free(s, &s->window);
	for (i = 0; i < s->op.send.n; i++)
		sum += s->iov[i].iov_len;
	s->op.send.n = iov_cut(s->iov, s->op.send.n, most_bytes(s));
	s->op.send.iov = s->iov;
	s->op.pages = s->op.send.n > s->op.send.first; /* the last ones are windows */
	submit_send(s, IO_SEND, (sum < s->body->left || s->ends) && !sender_is_paced(s));
	return (true);
}

/* A file that takes several calls.  Without the cork each call ends with a partial segment that
 * is sent at once, whose acknowledgement then competes for the socket's lock with the next call.
 * Measured with 10 MB files: 1.07 ms of CPU each without, 0.95 with.  For a single call the two
 * setsockopt would cost more than they save. */
static void
cork(struct sender *s, const struct body_piece *p)
{
	if (p->len <= IO_SEND_FILE_MAX || (s->flags & S_CORKED) || sender_is_paced(s))
		return;
	sock_cork(s->sock, true);
	s->flags |= S_CORKED;
}

/* A long range that begins inside a page: first up to the end of that page.  This is one more call,
 * but the following pages are sent whole.  Measured, CPU of a range of 64 KiB at an odd offset: 32
 * us in one call (as other servers do), 16 with this extra call; of 100 kB 32 and 22. */
static uint64_t
file_step(const struct sender *s, const struct body_piece *p)
{
	uint64_t max = most_bytes(s);

	if (p->off % PAGE != 0 && p->len >= LONG_RANGE && PAGE <= max)
		return (PAGE - p->off % PAGE);
	max = max < IO_SEND_FILE_MAX ? max : IO_SEND_FILE_MAX;
	return (p->len < max ? p->len : max);
}

static void
send_file(struct sender *s, const struct body_piece *p)
{
	if (io_backend(s->io)->holds && (s->sock->hints & SOCK_WRITABLE) == 0) {
		submit_send(s, IO_WRITABLE, false); /* it may be held then */
		return;
	}
	cork(s, p);
	s->op.file.file = p->file;
	s->op.file.off = p->off;
	s->op.file.len = (uint32_t)file_step(s, p);
	s->op.file.goes_on = p->file == s->begun;
	s->op.file.proof = &s->proof;
	if (!s->op.file.goes_on)
		s->proof = (struct io_proof){ 0 };
	submit_send(s, IO_SEND_FILE, s->body->left > p->len && !sender_is_paced(s));
}

/* ---------------------------------------------------------------- reading windows */

static void
times_of_read(struct sender *s, const struct io_op *op)
{
	struct sender_times *t = s->times;

	t->read_queue += op->at.start - op->at.submit;
	t->read += op->at.end - op->at.start;
	t->hot = t->hot && !op->threaded;
	s->ahead_end = op->at.end;
}

/* The client is slow, and slow clients hold enough windows, so this window is dropped and read
 * again when the socket has room. */
static bool
keeps_none(const struct sender *s)
{
	return (s->io->held > s->io->held_max && (s->sock->hints & SOCK_WRITABLE) == 0);
}

/* The bytes that were read are in s->ahead, or op->res says why not. */
static void
read_over(struct sender *s, const struct io_op *op)
{
	if (s->flags & S_SENDING)
		/* reading ahead failed; the error comes again when the window has its turn */
		return;
	if (op->res <= 0)
		sender_end(s, op->res < 0 ? (int)op->res : -ENODATA);
	else
		sender_next(s);
}

/* True: the bytes that were read are no longer wanted. */
static bool
read_in_vain(struct sender *s)
{
	s->flags &= (uint8_t)~S_READING;
	if (s->flags & S_ENDING) {
		sender_end(s, s->res);
		return (true);
	}
	if ((s->flags & S_UNWANTED) == 0 && !((s->flags & S_SENDING) && keeps_none(s)))
		return (false);
	s->flags &= (uint8_t) ~(S_UNWANTED | S_PROVING);
	window_free(s, &s->ahead);
	if ((s->flags & S_SENDING) == 0)
		sender_next(s); /* there is room now: reads the window again */
	return (true);
}

static void prove(struct sender *, const struct io_sample *);

/* The file was longer after a window was read: the window may be sent if the samples of what was
 * sent are still there. */
static void
proved(struct io_op *op)
{
	struct sender *s = container_of(op, struct sender, read);
	const struct io_sample *last = &s->proof.last, *first = &s->proof.first;

	if (read_in_vain(s))
		return;
	if (op->res > 0 &&
	    !io_sample_is(op->file.off == last->off ? last : first, op->buf, (size_t)op->res))
		op->res = -ETXTBSY;
	if (op->res > 0 && op->file.off != first->off) {
		prove(s, first);
		return;
	}
	s->flags &= (uint8_t)~S_PROVING;
	if (op->res > 0) {
		io_proof_grew(&s->proof, s->io);
		io_proof_note(&s->proof, op->file.file, s->ahead_off, s->ahead, s->ahead_len);
	} else {
		window_free(s, &s->ahead);
	}
	read_over(s, op);
}

static void
prove(struct sender *s, const struct io_sample *sample)
{
	s->read.done = proved;
	s->read.file.off = sample->off;
	s->read.file.len = sample->n;
	s->read.deadline_ms = s->idle_ms;
	s->flags |= S_READING | S_PROVING;
	op_submit(s->io, &s->read);
}

/* A write that was under way has ended by now. */
static void
written(struct io_op *op)
{
	struct sender *s = container_of(op, struct sender, read);

	op->kind = IO_READ;
	if (read_in_vain(s))
		return;
	if (io_proof_look(&s->proof, op->file.file) == -EAGAIN && !s->proof.writing) {
		prove(s, &s->proof.last);
		return;
	}
	s->flags &= (uint8_t)~S_PROVING;
	window_free(s, &s->ahead);
	op->res = -ETXTBSY;
	read_over(s, op);
}

static void
wait_for_writer(struct sender *s)
{
	s->read.kind = IO_TIMER;
	s->read.done = written;
	s->read.deadline_ms = PROOF_WRITE_MS;
	s->flags |= S_READING | S_PROVING;
	op_submit(s->io, &s->read);
}

static void
read_done(struct io_op *op)
{
	struct sender *s = container_of(op, struct sender, read);
	int err = 0;

	if (read_in_vain(s))
		return;
	if (op->res > 0 && op->file.goes_on)
		err = io_proof_look(&s->proof, op->file.file);
	if (err != 0 && err != -EAGAIN)
		op->res = err; /* no byte of it was sent yet */
	if (op->res > 0) {
		s->ahead = io_keep(op);
		s->io->held += s->io->window;
		s->ahead_len = (uint32_t)op->res;
		s->ahead_off = op->file.off;
	}
	if (s->times != NULL && (op->res > 0 || op->threaded))
		times_of_read(s, op);
	if (err == -EAGAIN) {
		if (s->proof.writing)
			wait_for_writer(s);
		else
			prove(s, &s->proof.last);
		return;
	}
	if (op->res > 0)
		io_proof_note(&s->proof, op->file.file, op->file.off, s->ahead, s->ahead_len);
	read_over(s, op);
}

/* The first file of the body; it may be after a head that is still being sent. */
static struct body_piece *
next_file(struct body *b)
{
	unsigned i;

	for (i = 0; i < b->n; i++) {
		if (b->piece[(b->first + i) % b->cap].file != NULL)
			return (&b->piece[(b->first + i) % b->cap]);
	}
	return (NULL);
}

/* Reads the bytes after the current window, unless a read is in flight. */
static void
read_ahead(struct sender *s)
{
	struct body_piece *p = next_file(s->body);
	uint32_t have = s->window != NULL ? s->window_len - s->window_pos : 0;
	uint32_t chunk = io_chunk(s->io);

	if (s->io->held > s->io->held_max && chunk > IO_HELD_CHUNK)
		chunk = IO_HELD_CHUNK;
	if (have != 0 && s->io->held > s->io->held_max)
		return;
	if (p == NULL || p->len <= have || s->ahead != NULL || (s->flags & S_READING))
		return;
	if (have != 0 && is_held(s, p->file, p->off + have))
		return;
	s->read.done = read_done;
	s->read.client = s->client;
	s->read.file.file = p->file;
	s->read.file.off = p->off + have;
	s->read.file.len = (uint32_t)(p->len - have < chunk ? p->len - have : chunk);
	s->read.file.goes_on = have != 0 || p->file == s->begun;
	if (!s->read.file.goes_on)
		s->proof = (struct io_proof){ 0 };
	s->read.deadline_ms = s->idle_ms;
	s->flags |= S_READING;
	op_submit(s->io, &s->read);
}

static void
window_take(struct sender *s)
{
	uint64_t now, since;

	window_free(s, &s->window);
	if (s->flags & S_PROVING)
		return;
	s->window = s->ahead;
	s->window_len = s->ahead_len;
	s->window_pos = 0;
	s->ahead = NULL;
	if (s->times == NULL || s->window == NULL)
		return;
	now = stamp(s);
	/* this window did not wait while the last one was still being sent */
	since = s->ahead_end > s->idle_since ? s->ahead_end : s->idle_since;
	s->times->handover += now > since ? now - since : 0;
}

static void
send_window(struct sender *s, const struct body_piece *p)
{
	uint32_t rest;

	if (window_is_empty(s) && is_held(s, p->file, p->off)) {
		submit_send(s, IO_WRITABLE, false);
		return;
	}
	if (s->window == NULL || s->window_pos == s->window_len)
		window_take(s);
	if (s->window != NULL && keeps_none(s)) {
		windows_give_up(s);
		submit_send(s, IO_WRITABLE, false);
		return;
	}
	read_ahead(s);
	if (s->window == NULL)
		return; /* read_done() goes on, proved() or written() */
	rest = s->window_len - s->window_pos;
	rest = rest < most_bytes(s) ? rest : (uint32_t)most_bytes(s);
	s->iov[0] = (struct iovec){ s->window + s->window_pos, rest };
	s->op.send.iov = s->iov;
	s->op.send.n = 1;
	s->op.pages = 0;
	s->flags |= S_WINDOW;
	/* corked only if the next bytes are available: a partial segment must not wait for a
	 * disk */
	submit_send(s, IO_SEND,
	    !sender_is_paced(s) && (rest < p->len ? s->ahead != NULL : s->body->left > p->len));
}

/* ---------------------------------------------------------------- next step */

static void
sender_next(struct sender *s)
{
	struct body_piece *p = body_front(s->body);

	s->follows = NULL;
	if (s->flags & S_ENDING)
		sender_end(s, s->res);
	else if (s->flags & S_CANCELLED)
		sender_end(s, -ECANCELED);
	else if (p == NULL)
		sender_end(s, 0);
	else if (pace(s))
		return; /* pause_over() goes on */
	else if (send_memory(s))
		return;
	else if (sends_files(s))
		send_file(s, p);
	else
		send_window(s, p);
}

static void
first_step(struct sender *s)
{
	struct body_piece *p = body_front(s->body), *f;

	if (p == NULL) { /* done() must not run inside this call */
		s->asked_ns = io_now(s->io);
		s->flags |= S_SENDING;
		op_soon(s->io, &s->op, sent);
		return;
	}
	sender_next(s);
	if (p->file != NULL || s->nheld != 0 || sends_files(s))
		return;
	f = next_file(s->body);
	if (f != NULL && !is_held(s, f->file, f->off))
		read_ahead(s); /* the disk works while the head is sent */
}

void
sender_start(struct sender *s, struct body *b, uint32_t idle_ms, void (*done)(struct sender *, int))
{
	must(s->body == NULL);
	s->body = b;
	s->idle_ms = idle_ms;
	s->done = done;
	s->sent = 0;
	s->begun = NULL;
	s->was_read = false;
	s->flags = 0;
	if (s->times != NULL) {
		*s->times =
		    (struct sender_times){ .write_start_wall = s->exact ? clock_wall_ns() : 0,
			    .hot = true };
		s->idle_since = stamp(s);
	}
	first_step(s);
}

void
sender_cancel(struct sender *s)
{
	if (s->body == NULL || (s->flags & S_ENDING))
		return;
	s->flags |= S_CANCELLED;
	if (s->flags & S_SENDING)
		op_cancel(s->io, &s->op);
	if (s->flags & S_READING)
		op_cancel(s->io, &s->read);
}

bool
sender_waited_for_disk(const struct sender *s)
{
	return (s->op.kind == IO_SEND_FILE ? s->op.threaded : s->read.res == -ETIMEDOUT);
}
