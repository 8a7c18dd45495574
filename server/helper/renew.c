/* server/helper/renew.c -- waits until the files of certificates change, and reads them.
 *
 *   names of the server's list --> record in memory --differs--> reply
 *            '------<-- io/watch_set.h <--equal--'
 *
 * The server has no right to read private keys, nor to look into their directories.  It compares
 * nothing but the digest of its last record, so no change is lost between two requests, nor by the
 * death of a helper.  It names the list of the configuration that it uses: the one that was read
 * last may be refused.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/watch_set.h"
#include "server/config/record.h"
#include "server/helper/impl.h"
#include "server/helper/kept.h"

/* Certificate and key are two files, and a client of ACME may have hundreds of them. */
#define SETTLE_MS     1000
#define SETTLE_MAX_MS 10000

/* ---- the files */

/* By name: so the record of equal files is equal. */
static GPtrArray *
paths_of(const struct helper_kept *k, uint64_t list, struct helper_hiding *h)
{
	GPtrArray *v = helper_kept_certificates(k, list);
	const struct helper_name *n;
	guint i;

	for (i = 0; i < v->len; i++) {
		n = g_ptr_array_index(v, i);
		h->use = n->keys; /* the same for all */
		v->pdata[i] = (char *)(uintptr_t)n->name;
	}
	return (v);
}

/* ---- a record */

/* False: there is none.  One that lacks keys which the process with the keys did not take would be
 * known to the server, and not be made again when that process is well. */
static bool
record(struct helper_hiding *h, const GPtrArray *paths, int fd)
{
	struct sources *s = sources_record(fd);
	struct source is;
	guint i;

	if (lseek(fd, 0, SEEK_SET) != 0 || ftruncate(fd, 0) != 0)
		return (false);
	if (h->use != 0)
		sources_hide(s, helper_hide_keys, h);
	for (i = 0; i < paths->len && h->err == 0; i++) {
		is = sources_get(s, SOURCE_FILE, g_ptr_array_index(paths, i), NULL);
		source_free(&is);
	}
	sources_end(s, 1);
	sources_free(s);
	return (h->err == 0);
}

/* True: it is not the one with this digest. */
static bool
differs(int fd, const char *digest)
{
	size_t n = (size_t)lseek(fd, 0, SEEK_CUR);
	void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	char *now;
	bool same;

	if (p == MAP_FAILED)
		return (false);
	now = g_compute_checksum_for_data(G_CHECKSUM_SHA256, p, n);
	same = strcmp(now, digest) == 0;
	g_free(now);
	munmap(p, n);
	return (!same);
}

/* Waits for the server, which takes it at once. */
static int
hand_over(int fd, int reply)
{
	off_t at = 0, end = lseek(fd, 0, SEEK_CUR);

	while (at < end)
		if (sendfile(reply, fd, &at, (size_t)(end - at)) <= 0 && errno != EINTR)
			return (2);
	return (0);
}

/* ---- waiting */

/* False: the server does not wait any more.  *event: something has happened to a file of ours.  In
 * a directory in which others are busy most events tell nothing. */
static bool
wait_for(struct watch_set *w, int reply, int ms, bool *event)
{
	struct pollfd p[2] = { { .fd = reply }, { .fd = watch_set_fd(w), .events = POLLIN } };
	int n = poll(p, 2, ms);

	*event = n > 0 && p[1].revents != 0 && watch_set_events(w);
	if (n > 0 && p[0].revents == 0 && !*event)
		n = poll(p, 1, WATCH_BUSY_MS);
	return (n <= 0 || p[0].revents == 0);
}

/* The files have changed: waits until no change follows for SETTLE_MS. */
static bool
settle(struct watch_set *w, int reply)
{
	uint64_t until = clock_mono_ns() + SETTLE_MAX_MS * NS_PER_MS;
	uint64_t quiet = clock_mono_ns() + SETTLE_MS * NS_PER_MS, now;
	bool event;

	while ((now = clock_mono_ns()) < until && now < quiet) {
		if (!wait_for(w, reply, (int)((MIN(quiet, until) - now) / NS_PER_MS) + 1, &event))
			return (false);
		if (event)
			quiet = clock_mono_ns() + SETTLE_MS * NS_PER_MS;
	}
	return (true);
}

/* False: nobody waits for the record any more. */
static bool
await_change(struct watch_set *w, int reply)
{
	bool event = false;

	while (!event && !watch_set_changed(w))
		if (!wait_for(w, reply, watch_set_look_ms(w), &event))
			return (false);
	return (settle(w, reply));
}

int
helper_work_renew(const struct helper_of *of, const struct helper_kept *kept, const char *asked,
    int reply)
{
	const char *list = strchr(asked, ' ');
	g_autofree char *digest = list != NULL ? g_strndup(asked, (gsize)(list - asked)) : NULL;
	struct helper_hiding h = { .of = of };
	GPtrArray *paths = paths_of(kept, list != NULL ? strtoull(list + 1, NULL, 16) : 0, &h);
	struct watch_set *w = watch_set_new((char *const *)paths->pdata, paths->len);
	int fd = memfd_create("certificates", MFD_CLOEXEC);
	bool settled = false;

	if (digest == NULL || paths->len == 0 || w == NULL || fd < 0)
		return (1);
	for (;;) {
		(void)watch_set_changed(w);
		if (!record(&h, paths, fd))
			return (1);
		if (!differs(fd, digest)) {
			if (!await_change(w, reply))
				return (2);
		} else if (settled)
			return (hand_over(fd, reply));
		else if (!settle(w, reply)) /* they may be half replaced now */
			return (2);
		settled = true;
	}
}
