/* server/conn/bans.c -- see bans.h */
#include "server/conn/bans.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ban_list.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/watch.h"

#define FIRST_S 2 /* a start waits this long for the first list */

struct ban_set {
	unsigned refs; /* atomic */
	struct ban_list *list;
};

struct bans {
	struct file_watch *watch;
	uint32_t version; /* atomic */
	pthread_mutex_t lock;
	pthread_cond_t read;
	char *path; /* the path in force; NULL: none */
	bool known; /* it was read, or could not be */
	bool left;  /* a disk holds the thread of an earlier watch, which may come back */
	struct ban_set *set;
};

/* ---- lists */

static void
drop(struct ban_set *s)
{
	if (s == NULL || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	ban_list_free(s->list);
	free(s);
}

static struct ban_set *
set_of(struct ban_list *l)
{
	struct ban_set *s = l != NULL ? malloc(sizeof(*s)) : NULL;

	if (s == NULL)
		ban_list_free(l);
	else
		*s = (struct ban_set){ 1, l };
	return (s);
}

/* ---- the file, in the thread of its watch */

struct bans_reading {
	const char *path;
	unsigned faults;
};

static void
fault(void *arg, unsigned line, struct text text, const char *why)
{
	struct bans_reading *r = arg;
	char at[4200];

	r->faults++;
	snprintf(at, sizeof(at), "%s:%u", r->path, line);
	if (text.n > 80)
		text.n = 80;
	log_limited(10, LOG_WARN, NULL, "bans.line", LF_STR("at", at), LF_TEXT("text", text),
	    LF_STR("why", why), LF_STR("then", "the line is left out"));
}

static struct ban_list *
read_list(const char *path, struct text bytes)
{
	struct bans_reading r = { path, 0 };
	struct ban_list *l = ban_list_read(bytes, clock_wall_ns() / NS_PER_S, fault, &r);

	if (l != NULL)
		log_limited(1, LOG_INFO, NULL, "bans.read", LF_STR("file", path),
		    LF_U64("entries", ban_list_size(l)), LF_U64("broken", r.faults));
	return (l);
}

/* The list that the file's bytes make; a missing file makes an empty one.  NULL: the last list
 * stays in force. */
static struct ban_list *
list_of(const char *path, struct text bytes, int err)
{
	struct ban_list *l = NULL;

	if (err == 0)
		l = read_list(path, bytes);
	if (err == -ENOENT) {
		log_limited(1, LOG_INFO, NULL, "bans.missing", LF_STR("file", path),
		    LF_STR("then", "nobody is banned until the file is there"));
		l = ban_list_read(TEXT_NONE, 0, fault, NULL);
	} else if (l == NULL) {
		log_limited(1, LOG_WARN, NULL, "bans.unreadable", LF_STR("file", path),
		    LF_ERR("error", err != 0 ? err : -ENOMEM),
		    LF_STR("then", "the last list stays in force"),
		    LF_STR("do", "let server.username read a regular file of at most 16 MiB"));
	}
	return (l);
}

static void
seen(void *arg, const char *path, struct text bytes, int err)
{
	struct bans *b = arg;
	struct ban_set *set = set_of(list_of(path, bytes, err)), *old = set;

	pthread_mutex_lock(&b->lock);
	if (b->path != NULL && strcmp(b->path, path) == 0) {
		if (set != NULL) {
			old = b->set;
			b->set = set;
			__atomic_add_fetch(&b->version, 1, __ATOMIC_RELEASE);
		}
		b->known = true;
		pthread_cond_signal(&b->read);
	}
	pthread_mutex_unlock(&b->lock);
	drop(old);
}

/* ---- the main thread */

struct bans *
bans_new(void)
{
	struct bans *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return (NULL);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->read, NULL);
	return (b);
}

/* A disk may hold the thread that reads the last path, so the next path has another one. */
static void
end_watch(struct bans *b)
{
	if (!file_watch_free(b->watch))
		b->left = true;
	b->watch = NULL;
}

void
bans_free(struct bans *b)
{
	if (b == NULL)
		return;
	end_watch(b);
	if (b->left)
		return; /* a thread may still come back with a list */
	drop(b->set);
	free(b->path);
	pthread_cond_destroy(&b->read);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* Under the lock.  Returns the list that is not in force any more. */
static struct ban_set *
change_path(struct bans *b, const char *path)
{
	struct ban_set *old = path == NULL ? b->set : NULL;

	free(b->path);
	b->path = path != NULL ? strdup(path) : NULL;
	b->known = false;
	if (old != NULL) {
		b->set = NULL;
		__atomic_add_fetch(&b->version, 1, __ATOMIC_RELEASE);
	}
	return (old);
}

static void
await_first(struct bans *b)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FIRST_S;
	pthread_mutex_lock(&b->lock);
	while (
	    !b->known && pthread_cond_clockwait(&b->read, &b->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	if (!b->known)
		log_limited(1, LOG_WARN, NULL, "bans.late", LF_STR("file", b->path),
		    LF_STR("why", "the disk takes more than two seconds to read it"),
		    LF_STR("then", b->set != NULL ? "the last list stays in force until it is read"
						  : "nobody is banned until it is read"));
	pthread_mutex_unlock(&b->lock);
}

void
bans_set(struct bans *b, const char *path)
{
	struct ban_set *old = NULL;
	bool same;

	if (path != NULL && path[0] == '\0')
		path = NULL;
	pthread_mutex_lock(&b->lock);
	same = path == NULL ? b->path == NULL : b->path != NULL && strcmp(path, b->path) == 0;
	if (!same)
		old = change_path(b, path);
	pthread_mutex_unlock(&b->lock);
	drop(old);
	if (same)
		return;
	end_watch(b);
	if (path == NULL)
		return;
	b->watch = file_watch_new(BANS_FILE_MAX, seen, b);
	if (b->watch == NULL) {
		log_limited(1, LOG_ERROR, NULL, "bans.unreadable", LF_STR("file", path),
		    LF_STR("why", "no thread or descriptor is left"),
		    LF_STR("then", "nobody is banned"));
		return;
	}
	file_watch_set(b->watch, path);
	await_first(b);
}

/* ---- workers */

const uint32_t *
bans_version(const struct bans *b)
{
	static const uint32_t never;

	return (b != NULL ? &b->version : &never);
}

static void
renew(struct bans *b, struct bans_view *v)
{
	struct ban_set *old = v->set;

	pthread_mutex_lock(&b->lock);
	v->set = b->set;
	v->version = b->version;
	if (v->set != NULL)
		__atomic_add_fetch(&v->set->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&b->lock);
	drop(old);
}

bool
bans_has(struct bans *b, struct bans_view *v, const union io_addr *a, uint64_t now_s)
{
	struct ip ip;

	if (__atomic_load_n(bans_version(b), __ATOMIC_ACQUIRE) != v->version)
		renew(b, v);
	return (v->set != NULL && ip_of_sockaddr(&a->sa, &ip) &&
		ban_list_has(v->set->list, &ip, now_s));
}

void
bans_view_end(struct bans_view *v)
{
	drop(v->set);
	v->set = NULL;
}
