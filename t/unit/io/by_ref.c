/* t/unit/io/by_ref.c -- memory sent by reference: all bytes and no others arrive, and what a socket
 * still refers to keeps its bytes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "io/loop/by_ref.h"
#include "t/unit/test.h"

#define PART (32u << 10)

static struct by_ref ref;

static char *
memory(char fill, size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	g_assert_true(p != MAP_FAILED);
	memset(p, fill, n);
	return (p);
}

static void
pair(int s[2], int room)
{
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), ==, 0);
	g_assert_cmpint(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), ==, 0);
}

/* The bytes that the peer has, as runs of equal bytes. */
static size_t
take(int fd, char want)
{
	static char buf[1 << 20];
	size_t sum = 0;
	ssize_t n, i;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (i = 0; i < n; i++)
			g_assert_cmpint(buf[i], ==, want);
		sum += (size_t)n;
	}
	return (sum);
}

TEST("/by-ref/parts")
{
	char *p = memory('a', 24 * PART);
	struct iovec iov[24];
	int64_t k, sum = 0;
	bool full = true;
	int s[2], i;

	by_ref_init(&ref);
	pair(s, 4 << 20);
	for (i = 0; i < 24; i++) /* at odd places, so that a part takes one page more */
		iov[i] = (struct iovec){ p + i * PART + 7, PART - 7 };
	while (sum < 24 * (PART - 7)) {
		k = by_ref_send(&ref, s[0], iov, 24, false, &full);
		g_assert_cmpint(k, >, 0);
		g_assert_cmpint(take(s[1], 'a'), ==, k);
		sum += k;
		if (!full)
			break;
		for (i = 0; i < 24; i++) /* the rest, for another try */
			if (k >= (int64_t)iov[i].iov_len) {
				k -= (int64_t)iov[i].iov_len;
				iov[i].iov_len = 0;
			} else {
				iov[i].iov_base = (char *)iov[i].iov_base + k;
				iov[i].iov_len -= (size_t)k;
				k = 0;
			}
	}
	g_assert_cmpint(sum, ==, 24 * (PART - 7));
	g_assert_cmpint(by_ref_send(&ref, s[0], iov, BY_REF_PARTS + 1, false, &full), ==, -ENOSYS);
	close(s[0]);
	close(s[1]);
	by_ref_fini(&ref);
	munmap(p, 24 * PART);
}

/* A full socket leaves bytes in the pipe: they never reach another one. */
TEST("/by-ref/left-over")
{
	char *a = memory('a', 24 * PART), *b = memory('b', 4 * PART);
	struct iovec long_one = { a, 24 * PART }, short_one = { b, 4 * PART };
	int s[2], other[2], i;
	bool full = false;
	int64_t k;

	by_ref_init(&ref);
	for (i = 0; i < 20; i++) {
		pair(s, 8192);
		pair(other, 4 << 20);
		k = by_ref_send(&ref, s[0], &long_one, 1, true, &full);
		g_assert_cmpint(k, >, 0);
		g_assert_cmpint(k, <, 24 * PART);
		g_assert_true(full);
		g_assert_cmpint(by_ref_send(&ref, s[0], &long_one, 1, true, &full), ==, -EAGAIN);
		g_assert_cmpint(by_ref_send(&ref, other[0], &short_one, 1, false, &full), ==,
		    4 * PART);
		g_assert_false(full);
		g_assert_cmpuint(take(other[1], 'b'), ==, 4 * PART);
		g_assert_cmpint(take(s[1], 'a'), ==, k);
		close(s[1]);
		k = by_ref_send(&ref, s[0], &long_one, 1, true, &full); /* its peer has left */
		g_assert_cmpint(k, ==, -EPIPE);
		close(s[0]);
		close(other[0]);
		close(other[1]);
	}
	by_ref_fini(&ref);
	munmap(a, 24 * PART);
	munmap(b, 4 * PART);
}

/* The pages are given back and the memory is filled anew, before the peer has read. */
TEST("/by-ref/pages-stay")
{
	char *p = memory('a', 4 * PART);
	struct iovec iov = { p, 4 * PART };
	bool full;
	int s[2];

	by_ref_init(&ref);
	pair(s, 4 << 20);
	g_assert_cmpint(by_ref_send(&ref, s[0], &iov, 1, false, &full), ==, 4 * PART);
	g_assert_cmpint(madvise(p, 4 * PART, MADV_DONTNEED), ==, 0);
	memset(p, 'b', 4 * PART);
	g_assert_cmpuint(take(s[1], 'a'), ==, 4 * PART);
	close(s[0]);
	close(s[1]);
	by_ref_fini(&ref);
	munmap(p, 4 * PART);
}

/* Refused once because a resource is missing, or always: the caller copies. */
TEST("/by-ref/refused")
{
	char *p = memory('a', PART);
	struct iovec iov = { p, PART };
	bool full = true;
	int s[2];

	by_ref_init(&ref);
	pair(s, 4 << 20);
	munmap(p, PART); /* vmsplice(2) fails */
	g_assert_cmpint(by_ref_send(&ref, s[0], &iov, 1, false, &full), ==, -ENOSYS);
	g_assert_false(full);
	iov.iov_base = memory('b', PART);
	g_assert_cmpint(by_ref_send(&ref, s[0], &iov, 1, false, &full), ==, PART);
	g_assert_cmpuint(take(s[1], 'b'), ==, PART);
	by_ref_fini(&ref);
	g_assert_cmpint(by_ref_send(&ref, s[0], &iov, 1, false, &full), ==, -ENOSYS);
	g_assert_false(full);
	munmap(iov.iov_base, PART);
	close(s[0]);
	close(s[1]);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	signal(SIGPIPE, SIG_IGN);
	return (tests_run());
}
