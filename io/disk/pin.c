/* io/disk/pin.c -- see pin.h */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/list.h"
#include "io/counters.h"
#include "io/disk/pin.h"

#define ROWS 1024u
/* After this time a server has probably sent a file: with 8 MiB at 130 MB/s windows make room after
 * 65 ms, and nginx read no byte itself. */
#define SENT_NS   (50 * NS_PER_MS)
#define PIN_FACTS (STATX_INO | STATX_SIZE | STATX_MTIME)

struct pin {
	struct list row;  /* of its file's hash */
	struct list age;  /* outside of all lists while a thread locks it */
	struct statx stx; /* of its file */
	uint64_t off, len;
	void *at;
	uint64_t since_ns;
};

static struct {
	pthread_mutex_t lock; /* for all other fields and counters; not held while a thread waits */
	struct io_pins_conf conf;
	uint64_t page; /* bytes */
	uint64_t bytes, windows;
	struct list age; /* oldest first */
	struct list rows[ROWS];
} pins = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
io_pins_start(const struct io_pins_conf *conf)
{
	pins.conf = *conf;
	pins.page = (uint64_t)sysconf(_SC_PAGESIZE);
	pins.bytes = pins.windows = 0;
	list_init(&pins.age);
	for (size_t i = 0; i < ROWS; i++)
		list_init(&pins.rows[i]);
}

bool
io_pins_on(void)
{
	return (pins.conf.bytes != 0);
}

uint64_t
io_pins_file_max(void)
{
	return (pins.conf.bytes / 2);
}

void
io_pins_status(struct io_pins_status *s)
{
	pthread_mutex_lock(&pins.lock);
	*s = (struct io_pins_status){ pins.bytes, pins.conf.bytes, pins.windows };
	pthread_mutex_unlock(&pins.lock);
}

/* ---------------------------------------------------------------- the table, with the lock */

static struct list *
row_of(const struct statx *stx)
{
	uint64_t dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);

	return (&pins.rows[((dev ^ stx->stx_ino) * 0x9E3779B97F4A7C15ull) >> 54]);
}

static bool
is_of(const struct pin *p, const struct statx *stx)
{
	return (p->stx.stx_ino == stx->stx_ino && p->stx.stx_dev_minor == stx->stx_dev_minor &&
		p->stx.stx_dev_major == stx->stx_dev_major);
}

/* A file that was made shorter and written again has other pages, which no older window locks. */
static bool
is_of_version(const struct pin *p, const struct statx *stx)
{
	return (is_of(p, stx) && p->stx.stx_size == stx->stx_size &&
		p->stx.stx_mtime.tv_sec == stx->stx_mtime.tv_sec &&
		p->stx.stx_mtime.tv_nsec == stx->stx_mtime.tv_nsec);
}

static void
renew(struct pin *p, uint64_t now)
{
	p->since_ns = now;
	if (!list_linked(&p->age))
		return;
	list_del(&p->age);
	list_add_tail(&pins.age, &p->age);
}

static struct pin *
oldest(void)
{
	return (list_empty(&pins.age) ? NULL : list_entry(pins.age.next, struct pin, age));
}

/* Call it with the lock, which is released meanwhile.  The bytes count until they are unlocked, so
 * that the limit of the system is not reached before ours. */
static void
unpin(struct pin *p)
{
	list_del(&p->age);
	list_del(&p->row);
	pthread_mutex_unlock(&pins.lock);
	munmap(p->at, p->len);
	pthread_mutex_lock(&pins.lock);
	pins.bytes -= p->len;
	pins.windows--;
	free(p);
}

/* True: a window with these bytes exists, or is being locked.  *of_file: bytes of the file in all
 * windows.  *stale: a window of its earlier contents. */
static bool
is_there(const struct pin *new, uint64_t *of_file, struct pin **stale)
{
	struct pin *p;

	*of_file = 0;
	*stale = NULL;
	list_each(p, row_of(&new->stx), row) {
		if (!is_of(p, &new->stx))
			continue;
		if (!is_of_version(p, &new->stx)) {
			*stale = list_linked(&p->age) ? p : *stale;
			continue;
		}
		if (p->off <= new->off && p->off + p->len >= new->off + new->len) {
			renew(p, new->since_ns);
			return (true);
		}
		*of_file += p->len;
	}
	return (false);
}

static bool
refuse(void)
{
	count(pins.conf.counters, refused);
	return (false);
}

static bool
fits(const struct pin *p)
{
	return (pins.bytes + p->len <= pins.conf.bytes && pins.windows < PINS_MAX);
}

/* The lock is released meanwhile.  True: its bytes are reserved.  False: they are there, or there
 * is no room. */
static bool
add(struct pin *new)
{
	struct pin *old;
	uint64_t of_file;

	for (;;) {
		if (is_there(new, &of_file, &old))
			return (false);
		if (old != NULL) {
			unpin(old);
			continue;
		}
		if (of_file + new->len > io_pins_file_max())
			return (refuse());
		if (fits(new))
			break;
		old = oldest();
		if (old == NULL) /* other threads are locking all bytes that may be locked */
			return (refuse());
		if (clock_between(old->since_ns, new->since_ns) < SENT_NS)
			count(pins.conf.counters, early);
		unpin(old);
	}
	pins.bytes += new->len;
	pins.windows++;
	list_add_tail(row_of(&new->stx), &new->row);
	return (true);
}

/* ---------------------------------------------------------------- a window */

/* The pages are in memory, so this waits for no disk; a page that has left memory since is read
 * again.  Sanitizers make mlock() do nothing. */
static bool
lock_pages(struct pin *p, int fd)
{
	p->at = mmap(NULL, p->len, PROT_READ, MAP_SHARED, fd, (off_t)p->off);
	if (p->at == MAP_FAILED)
		return (false);
	if (syscall(SYS_mlock, p->at, p->len) == 0)
		return (true);
	munmap(p->at, p->len);
	return (false);
}

/* Takes the result of lock_pages(). */
static void
settle(struct pin *p, bool locked)
{
	if (locked) {
		list_add_tail(&pins.age, &p->age);
		count(pins.conf.counters, pinned);
		return;
	}
	(void)refuse();
	list_del(&p->row);
	pins.bytes -= p->len;
	pins.windows--;
	free(p);
}

static struct pin *
pin_new(int fd, uint64_t off, uint64_t len)
{
	struct statx stx;
	struct pin *p;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, PIN_FACTS, &stx) < 0)
		return (NULL);
	p = malloc(sizeof(*p));
	if (p == NULL)
		return (NULL);
	*p = (struct pin){ .stx = stx, .since_ns = clock_mono_ns() };
	p->off = off - off % pins.page;
	p->len = (off + len - p->off + pins.page - 1) / pins.page * pins.page;
	list_init(&p->age);
	return (p);
}

void
io_pin_window(int fd, uint64_t off, uint64_t len)
{
	struct pin *p = io_pins_on() && len != 0 ? pin_new(fd, off, len) : NULL;
	bool added, locked;

	if (p == NULL)
		return;
	pthread_mutex_lock(&pins.lock);
	added = add(p);
	pthread_mutex_unlock(&pins.lock);
	if (!added) {
		free(p);
		return;
	}
	locked = lock_pages(p, fd);
	pthread_mutex_lock(&pins.lock);
	settle(p, locked);
	pthread_mutex_unlock(&pins.lock);
}

/* ---------------------------------------------------------------- a file */

bool
io_pin_again(const struct statx *stx)
{
	uint64_t now;
	struct pin *p;
	bool found = false;

	if (!io_pins_on())
		return (false);
	now = clock_mono_ns();
	pthread_mutex_lock(&pins.lock);
	list_each(p, row_of(stx), row) {
		if (!is_of_version(p, stx))
			continue;
		renew(p, now);
		found = true;
	}
	if (found)
		count(pins.conf.counters, again);
	pthread_mutex_unlock(&pins.lock);
	return (found);
}

/* A window that a thread is locking stays. */
static struct pin *
first_of(const struct statx *stx)
{
	struct pin *p;

	list_each(p, row_of(stx), row)
		if (is_of(p, stx) && list_linked(&p->age))
			return (p);
	return (NULL);
}

void
io_pin_drop(const struct statx *stx)
{
	struct pin *p;

	if (!io_pins_on())
		return;
	pthread_mutex_lock(&pins.lock);
	while ((p = first_of(stx)) != NULL)
		unpin(p);
	pthread_mutex_unlock(&pins.lock);
}

/* ---------------------------------------------------------------- the end of its time */

void
io_pins_expire(void)
{
	uint64_t now = clock_mono_ns();
	struct pin *p;

	pthread_mutex_lock(&pins.lock);
	while (
	    (p = oldest()) != NULL && clock_between(p->since_ns, now) >= pins.conf.ms * NS_PER_MS)
		unpin(p);
	pthread_mutex_unlock(&pins.lock);
}

void
io_pins_stop(void)
{
	struct pin *p;

	pthread_mutex_lock(&pins.lock);
	while ((p = oldest()) != NULL)
		unpin(p);
	pins.conf = (struct io_pins_conf){ 0 };
	pthread_mutex_unlock(&pins.lock);
}
