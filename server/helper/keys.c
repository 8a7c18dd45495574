/* server/helper/keys.c -- the process that keeps private keys and signs with them.
 *
 *   guardian --fork, when the first key comes--> accel-keys
 *   child that reads the files -----a key------> the feed: one socket, held by the guardian
 *   server ------a socket for each thread------> a thread for each socket: digest in, signature out
 *
 * It has the user who started the server, so the server's user can neither trace nor end it, and no
 * rights of that user: no capability, no file, no new socket, and only the calls that it needs.
 * Its memory is in no core file and not for /proc/PID/mem, and is locked if the limit allows that.
 *
 * A process that died has left its keys in their files, so the next one reads them first.  The
 * server's threads notice, and reach the next one through the same socket.
 */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/start/lock_memory.h"
#include "io/start/sandbox.h"
#include "io/tls/keys.h"
#include "server/helper/impl.h"
#include "server/helper/kept.h"

/* Threads of handshakes in all generations of the server; one that asks for more gets none. */
#define THREADS_MAX 512u
#define STACK       (256u << 10)
#define FEED_MS     5000 /* a process that does not take a key is hung */

struct key_keeper {
	const struct helper_of *of;
	struct tls_keys *keys;
	pthread_mutex_t feed; /* held while a key is received and added */
	atomic_uint threads;
};

/* ---------------------------------------------------------------- the server's side */

int
helper_keys_connect(void *helper)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return (-errno);
	err = helper_send(helper_keys_fd(helper), "k", 1, pair[1]);
	close(pair[1]);
	if (err == 0)
		return (pair[0]);
	close(pair[0]);
	return (err);
}

/* ---------------------------------------------------------------- the reader of the files */

int
helper_keys_feed(int pair[2])
{
	const struct timeval limit = { .tv_sec = FEED_MS / 1000 };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return (-errno);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return (0);
}

/* A process that hangs is waited for once, not for each of a thousand keys. */
static int
tell(void *arg, const void *told, size_t n)
{
	struct helper_hiding *h = arg;

	if (h->err == 0 && send(h->of->feed[0], told, n, MSG_NOSIGNAL) < 0)
		h->err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	return (h->err);
}

/* A file of which a record gets what remains. */
static int
hide(const struct helper_hiding *h, struct text *file, tls_keys_tell *tell_fn, void *arg)
{
	struct buf out;
	int err;

	buf_init(&out, 0);
	err = tls_keys_hide(*file, h->use, &out, tell_fn, arg);
	explicit_bzero((char *)(uintptr_t)file->p, file->n);
	free((char *)(uintptr_t)file->p);
	*file = buf_as_text(&out);
	if (err == 0)
		return (0);
	buf_free(&out);
	*file = TEXT_NONE;
	return (err);
}

int
helper_hide_keys(void *hiding, struct text *file)
{
	if (file->n == 0)
		return (0);
	return (hide(hiding, file, tell, hiding));
}

/* ---------------------------------------------------------------- what it keeps */

static int
keep(void *keys, const void *told, size_t n)
{
	(void)tls_keys_add(keys, told, n);
	return (0);
}

static void
keep_file(struct key_keeper *k, const struct helper_name *n)
{
	const struct helper_hiding h = { .use = n->keys };
	struct source is = source_read(SOURCE_FILE, n->name, NULL);

	if (is.err == 0 && is.bytes.n != 0)
		(void)hide(&h, &is.bytes, keep, k->keys);
	source_free(&is);
}

/* All names, not those of the last list only: the server may have refused that one.  A file may be
 * in many lists. */
static void
keep_files(struct key_keeper *k, const struct helper_kept *kept)
{
	GHashTable *done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	const struct helper_name *n;
	guint i;

	for (i = 0; i < kept->names->len; i++) {
		n = g_ptr_array_index(kept->names, i);
		if (n->kind == HELPER_CERTIFICATE && n->keys != 0 &&
		    g_hash_table_add(done, g_strdup_printf("%u %s", n->keys, n->name)))
			keep_file(k, n);
	}
	g_hash_table_destroy(done);
}

static void
feed_take(struct key_keeper *k)
{
	unsigned char told[TLS_KEY_TOLD];
	ssize_t n;

	pthread_mutex_lock(&k->feed);
	while ((n = recv(k->of->feed[1], told, sizeof(told), MSG_DONTWAIT)) > 0)
		(void)tls_keys_add(k->keys, told, (size_t)n);
	pthread_mutex_unlock(&k->feed);
	explicit_bzero(told, sizeof(told));
}

/* ---------------------------------------------------------------- a thread of the server */

struct asker {
	struct key_keeper *k;
	int fd;
};

/* A key was sent before the server could hear of it, so one that is unknown may be in the feed. */
static size_t
answer(struct key_keeper *k, const void *q, size_t n, unsigned char out[TLS_KEY_ANSWER])
{
	size_t done = tls_keys_answer(k->keys, q, n, out);
	int32_t res;

	memcpy(&res, out, sizeof(res));
	if (res != -ENOENT)
		return (done);
	feed_take(k);
	return (tls_keys_answer(k->keys, q, n, out));
}

static void *
serve(void *asker)
{
	struct asker a = *(struct asker *)asker;
	unsigned char q[sizeof(struct tls_key_question) + 1], out[TLS_KEY_ANSWER];
	ssize_t n;

	free(asker);
	while ((n = recv(a.fd, q, sizeof(q), 0)) > 0) {
		n = (ssize_t)answer(a.k, q, (size_t)n, out);
		if (send(a.fd, out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	close(a.fd);
	atomic_fetch_sub(&a.k->threads, 1);
	return (NULL);
}

/* Takes the descriptor. */
static void
serve_start(struct key_keeper *k, int fd)
{
	struct asker *a = malloc(sizeof(*a));
	pthread_attr_t attr;
	pthread_t thread;
	bool ok = false;

	if (a != NULL && atomic_fetch_add(&k->threads, 1) < THREADS_MAX) {
		*a = (struct asker){ k, fd };
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		pthread_attr_setstacksize(&attr, STACK);
		ok = pthread_create(&thread, &attr, serve, a) == 0;
		pthread_attr_destroy(&attr);
	}
	if (ok)
		return;
	if (a != NULL)
		atomic_fetch_sub(&k->threads, 1);
	free(a);
	close(fd);
}

/* ---------------------------------------------------------------- the process */

/* root without capabilities owns files still, which Landlock closes. */
static bool
drop_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return (syscall(SYS_capset, &head, none) == 0);
}

/* As far as the rights that are left allow it: root's to lock more than the limit is dropped. */
static void
lock(void)
{
	struct lock_memory lm = { .limit = LOCK_MEMORY_NO_LIMIT };
	struct rlimit rl;

	if (getrlimit(RLIMIT_MEMLOCK, &rl) == 0 && rl.rlim_cur != RLIM_INFINITY)
		lm.limit = rl.rlim_cur;
	lock_memory_rest(&lm);
}

/* Parts that the kernel lacks are left out; a part that fails ends the process. */
static bool
confine(void)
{
	static const struct sandbox_path none[] = { { NULL, 0 } };
	const struct rlimit no_core = { 0, 0 }, no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct sandbox got;
	char why[512];

	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)setrlimit(RLIMIT_MEMLOCK, &no_limit);
	if (!drop_rights())
		return (false);
	lock();
	return (sandbox_enter(SANDBOX_KEYS, none, &got, why, sizeof(why)) == 0);
}

/* False: the server has ended. */
static bool
take_asker(struct key_keeper *k)
{
	char byte = 0; /* cppcheck: recvmsg() fills it */
	int fd;
	ssize_t n = helper_recv(k->of->keys, &byte, sizeof(byte), &fd);

	if (n > 0 && fd >= 0)
		serve_start(k, fd);
	else if (fd >= 0)
		close(fd);
	return (n > 0 || n == -EAGAIN || n == -EINTR || n == -EINVAL || n == -EMSGSIZE);
}

static _Noreturn void
loop(struct key_keeper *k)
{
	struct pollfd p[2] = { { .fd = k->of->keys, .events = POLLIN },
		{ .fd = k->of->feed[1], .events = POLLIN } };

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p[1].revents != 0)
			feed_take(k);
		if (p[0].revents != 0 && !take_asker(k))
			_exit(0);
	}
}

_Noreturn void
helper_keys_process(const struct helper_of *of, const struct helper_kept *kept, pid_t guardian)
{
	static struct key_keeper k;

	prctl(PR_SET_NAME, "accel-keys");
	(void)prctl(PR_SET_DUMPABLE, 0);
	k.of = of;
	pthread_mutex_init(&k.feed, NULL);
	k.keys = tls_keys_new();
	if (k.keys == NULL)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a confined process may not ask for it */
	if (getppid() != guardian)
		_exit(1);
	keep_files(&k, kept);
	if (!confine())
		_exit(HELPER_KEYS_UNCONFINED);
	loop(&k);
}
