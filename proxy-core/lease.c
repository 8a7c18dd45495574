/* proxy-core/lease.c -- one socket to an application: its states, receiving, sending, closing; see
 * pool.h. */
#include <stdlib.h>
#include "base/must.h"
#include "proxy-core/pool_impl.h"

/* A body of 1 MiB takes a quarter of the calls. */
#define LARGE_RECV (32 << 10)

/* In this pool, and in all pools of the backend together. */
static void
lease_count(const struct lease *l, unsigned n)
{
	l->pool->n[l->state] += n;
	backend_add(l->pool->backend, sockets[l->state], n);
}

static void
lease_out_of_list(struct lease *l)
{
	lease_count(l, -1u);
	list_del(&l->link);
}

/* The one place a state changes. */
void
lease_set(struct lease *l, enum lease_state s)
{
	struct list *head = &l->pool->leases[s];

	if (list_linked(&l->link))
		lease_out_of_list(l);
	l->state = s;
	l->since_ns = io_now(l->pool->io);
	lease_count(l, 1);
	if (s == LEASE_IDLE)
		list_add_head(head, &l->link); /* taken first, so that the others time out */
	else
		list_add_tail(head, &l->link);
}

static void
lease_free(struct lease *l)
{
	struct pool *p = l->pool;

	lease_out_of_list(l);
	buf_free(&l->out);
	free(l);
	if (pool_sockets(p) == 0)
		p->emptied(p->arg); /* may free the pool */
}

static void
lease_closed(struct io_op *op)
{
	lease_free(list_entry(op, struct lease, ctl));
}

void
lease_close_step(struct lease *l)
{
	if (l->rd_busy || l->wr_busy || l->ctl_busy)
		return;
	if (l->sock.fd < 0) {
		lease_free(l);
		return;
	}
	op_init(&l->ctl, IO_CLOSE, lease_closed);
	l->ctl.sock = &l->sock;
	l->ctl_busy = true;
	op_submit(l->pool->io, &l->ctl);
}

void
lease_close(struct lease *l)
{
	struct io *io = l->pool->io;

	if (l->pool->probe == l)
		l->pool->probe = NULL;
	lease_set(l, LEASE_CLOSING);
	if (l->rd_busy)
		op_cancel(io, &l->rd);
	if (l->wr_busy)
		op_cancel(io, &l->wr);
	if (l->ctl_busy)
		op_cancel(io, &l->ctl);
	lease_close_step(l);
}

/* Measures the wait for a first byte on kept sockets, each of which has a thread. */
static void
lease_measure(struct lease *l)
{
	struct backend *b = l->pool->backend;
	uint64_t now = io_now(l->pool->io);

	if (l->stalled_ns != 0)
		backend_mistook(b, now - l->stalled_ns);
	backend_measure(b, now - l->progress_ns, l->served > 0);
}

static void
lease_rd_done(struct io_op *op)
{
	struct lease *l = list_entry(op, struct lease, rd);

	l->rd_busy = false;
	l->large = op->res >= LARGE_RECV;
	if (l->state == LEASE_CLOSING) {
		lease_close_step(l);
	} else if (l->state != LEASE_BUSY) {
		/* No request was sent, so these bytes do not belong to the next one. */
		lease_close(l);
	} else {
		if (op->res > 0 && !l->heard) {
			l->heard = true;
			backend_times_add(l->pool->times, BACKEND_first_byte, l->since_ns,
			    io_now(l->pool->io));
			lease_measure(l);
			if (l == l->pool->probe) {
				pool_set_up(l->pool);
				pool_feed(l->pool);
			}
		}
		l->user->on_recv(l->arg, op); /* may give the lease away */
	}
}

void
lease_recv(struct lease *l)
{
	if (l->rd_busy)
		return;
	op_init(&l->rd, IO_RECV, lease_rd_done);
	l->rd.sock = &l->sock;
	l->rd.large = l->large;
	l->rd_busy = true;
	op_submit(l->pool->io, &l->rd);
}

static void lease_submit_send(struct lease *l);

static void
lease_wr_done(struct io_op *op)
{
	struct lease *l = list_entry(op, struct lease, wr);
	int err = op->res < 0 ? (int)op->res : 0;

	l->wr_busy = false;
	if (l->state == LEASE_CLOSING) {
		lease_close_step(l);
		return;
	}
	if (err == 0) {
		l->progress_ns = io_now(l->pool->io);
		l->sent += (size_t)op->res;
		if (l->sent < l->out.n) {
			lease_submit_send(l);
			return;
		}
	}
	l->out.n = l->sent = 0;
	l->user->on_sent(l->arg, err); /* may give the lease away */
}

static void
lease_submit_send(struct lease *l)
{
	l->iov = (struct iovec){ l->out.p + l->sent, l->out.n - l->sent };
	op_init(&l->wr, IO_SEND, lease_wr_done);
	l->wr.sock = &l->sock;
	l->wr.send.iov = &l->iov;
	l->wr.send.n = 1;
	l->wr_busy = true;
	op_submit(l->pool->io, &l->wr);
}

void
lease_send(struct lease *l)
{
	must(!l->wr_busy && l->out.n > 0 && !l->out.failed);
	lease_submit_send(l);
}

void
lease_use(struct lease *l, const struct lease_user *user, void *arg)
{
	l->user = user;
	l->arg = arg;
}

struct buf *
lease_out(struct lease *l)
{
	must(!l->wr_busy);
	return (&l->out);
}

bool
lease_sending(const struct lease *l)
{
	return (l->wr_busy);
}

void
lease_replied(struct lease *l)
{
	struct pool *p = l->pool;

	backend_times_add(p->times, BACKEND_reply, l->since_ns, io_now(p->io));
}

void
lease_shutdown(struct lease *l)
{
	must(!l->wr_busy);
	io_sock_shutdown(&l->sock);
}

void
lease_asked(struct lease *l)
{
	l->asked = true;
}

unsigned
lease_served(const struct lease *l)
{
	return (l->served);
}

bool
lease_heard(const struct lease *l)
{
	return (l->heard);
}

uint64_t
lease_progress_ns(const struct lease *l)
{
	return (l->progress_ns);
}

bool
lease_will_keep(const struct lease *l)
{
	struct pool *p = l->pool;

	return (!p->closed && l->moves == p->moves &&
		l->served + 1 < p->conf.max_keep_alive_requests &&
		!backend_crowded(p->backend, io_now(p->io)));
}
