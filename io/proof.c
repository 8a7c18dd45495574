/* io/proof.c -- see proof.h */
#include "io/proof.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/text.h"
#include "io/disk/job.h"
#include "io/engine.h"

/* ---------------------------------------------------------------- samples */

static void
take(struct io_sample *s, uint64_t off, const char *p, size_t n)
{
	*s = (struct io_sample){ off, text_hash((struct text){ p, n }), (uint32_t)n };
}

static bool
is_needed(const struct io_proof *proof, const struct io_file *f, uint64_t end)
{
	return (f->watched && !proof->lost && end < f->size);
}

void
io_proof_note(struct io_proof *proof, const struct io_file *f, uint64_t off, const char *p,
    size_t n)
{
	size_t k = n < PROOF_SAMPLE ? n : PROOF_SAMPLE;

	if (!is_needed(proof, f, off + n))
		return;
	if (proof->first.n == 0)
		take(&proof->first, off, p, k);
	if (k >= proof->last.n) /* a hash of few bytes would prove less */
		take(&proof->last, off + n - k, p + n - k, k);
}

void
io_proof_note_file(struct io_proof *proof, const struct io_file *f, uint64_t off, size_t n)
{
	size_t k = n < PROOF_SAMPLE ? n : PROOF_SAMPLE;
	char buf[PROOF_SAMPLE];

	if (!is_needed(proof, f, off + n))
		return;
	if (proof->first.n == 0 && pread(f->fd, buf, k, (off_t)off) == (ssize_t)k)
		take(&proof->first, off, buf, k);
	if (pread(f->fd, buf, k, (off_t)(off + n - k)) == (ssize_t)k)
		take(&proof->last, off + n - k, buf, k);
	else
		proof->lost = true;
}

/* ---------------------------------------------------------------- looks */

static bool
may_have_grown(const struct io_proof *proof, const struct io_version *then,
    const struct io_version *now)
{
	if (now->size < then->size || now->size < proof->size)
		return (false);
	if (now->mtime_s < then->mtime_s ||
	    (now->mtime_s == then->mtime_s && now->mtime_ns < then->mtime_ns))
		return (false);
	return (!proof->lost && proof->last.n != 0);
}

static int
judge(struct io_proof *proof, int err, const struct io_version *then, const struct io_version *now)
{
	if (err != -ETXTBSY || !may_have_grown(proof, then, now))
		return (err);
	proof->now = now->size;
	proof->writing = now->size == then->size;
	return (-EAGAIN);
}

bool
io_sample_is(const struct io_sample *s, const char *p, size_t n)
{
	return (n == s->n && text_hash((struct text){ p, n }) == s->hash);
}

void
io_proof_grew(struct io_proof *proof, struct io *io)
{
	proof->size = proof->now;
	count(io->counters, file_grew);
}

int
io_proof_look(struct io_proof *proof, struct io_file *f)
{
	struct io_version now;

	return (judge(proof, io_file_look_now(f, &now), &f->version, &now));
}

static int
look_at(const struct io_sample *s, struct io_file *f)
{
	char buf[PROOF_SAMPLE];
	int64_t n = io_look_for(f, buf, s->n, s->off);

	if (n < s->n)
		return (-EAGAIN);
	return (io_sample_is(s, buf, (size_t)n) ? 0 : -ETXTBSY);
}

int
io_proof_look_warm(struct io_proof *proof, struct io_file *f)
{
	int err = io_proof_look(proof, f);

	if (err != -EAGAIN || proof->writing)
		return (err);
	err = look_at(&proof->last, f);
	if (err == 0)
		err = look_at(&proof->first, f);
	if (err == 0)
		io_proof_grew(proof, f->io);
	return (err);
}

static bool
is_still_there(const struct io_sample *s, int fd)
{
	char buf[PROOF_SAMPLE];
	ssize_t n = pread(fd, buf, s->n, (off_t)s->off);

	return (n >= 0 && io_sample_is(s, buf, (size_t)n));
}

int
io_proof_look_in_thread(struct io_proof *proof, const struct io_version *then, int fd, bool *grew)
{
	const struct timespec nap = { .tv_nsec = NS_PER_MS };
	unsigned naps = PROOF_WRITE_MS;
	struct io_version now;
	int err;

	while ((err = judge(proof, io_version_look(then, fd, 0, &now), then, &now)) == -EAGAIN &&
	       proof->writing && naps-- > 0)
		nanosleep(&nap, NULL);
	if (err != -EAGAIN)
		return (err);
	if (proof->writing)
		return (-ETXTBSY);
	*grew = is_still_there(&proof->last, fd) && is_still_there(&proof->first, fd);
	return (*grew ? 0 : -ETXTBSY);
}
