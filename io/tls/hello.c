/* io/tls/hello.c -- see hello.h */
#include "io/tls/hello.h"

#include <stdint.h>
#include <stdlib.h>
#include "io/tls/flight.h"

enum {
	EXTENSION_NAME = 0,
	EXTENSION_PROTOCOLS = 16,
	EXTENSION_TICKET = 35,
	EXTENSION_SESSION = 41,
	EXTENSION_KEYS = 51
};
enum { NAME_HOST = 0 };
/* Groups: those of older numbers that are slow are below the last one of finite fields. */
enum { GROUP_P256 = 23, GROUP_X25519 = 29, GROUP_OLD_LAST = 260 };
#define MESSAGE_HEAD   4u
#define VERSION_RANDOM 34u

/* Bytes that are still to be read; failed: one was asked for more than there are. */
struct part {
	const uint8_t *p;
	size_t n;
	bool failed;
};

static struct part
take(struct part *from, size_t n)
{
	struct part t = { from->p, n, false };

	if (n > from->n) {
		from->failed = true;
		from->n = 0;
		return ((struct part){ .failed = true });
	}
	if (n != 0) /* p may be NULL */
		from->p += n;
	from->n -= n;
	return (t);
}

/* A number of this many bytes, the highest first. */
static size_t
number(struct part *from, size_t bytes)
{
	struct part t = take(from, bytes);
	size_t v = 0, i;

	for (i = 0; i < t.n; i++)
		v = v << 8 | t.p[i];
	return (v);
}

/* What follows its length, a number of this many bytes. */
static struct part
counted(struct part *from, size_t bytes)
{
	return (take(from, number(from, bytes)));
}

/* The bytes of the message, without the heads of its records; all: a buffer of n bytes. */
static struct part
message(const uint8_t *p, size_t n, uint8_t *all)
{
	struct part in = { p, n, false }, m = { all, 0, false }, record;

	while (in.n > 0) {
		(void)take(&in, TLS_HEAD - 2);
		record = counted(&in, 2);
		if (in.failed || record.failed)
			break; /* bytes after the hello */
		memcpy(all + m.n, record.p, record.n);
		m.n += record.n;
	}
	return (m);
}

static struct part
extensions(struct part m)
{
	(void)take(&m, MESSAGE_HEAD);
	(void)take(&m, VERSION_RANDOM);
	(void)counted(&m, 1);
	(void)counted(&m, 2);
	(void)counted(&m, 1);
	return (counted(&m, 2));
}

static struct part
extension(struct part all, unsigned type)
{
	struct part one;
	size_t is;

	while (all.n > 0 && !all.failed) {
		is = number(&all, 2);
		one = counted(&all, 2);
		if (is == type && !all.failed)
			return (one);
	}
	return ((struct part){ .failed = true });
}

static struct text
host_of(struct part e, char buf[TLS_NAME_MAX + 1])
{
	struct part list = counted(&e, 2), name;
	size_t kind = number(&list, 1), i;

	name = counted(&list, 2);
	if (list.failed || kind != NAME_HOST || name.n == 0 || name.n > TLS_NAME_MAX)
		return (TEXT_NONE);
	for (i = 0; i < name.n; i++) {
		if (name.p[i] <= ' ' || name.p[i] >= 0x7f)
			return (TEXT_NONE);
		buf[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] + 'a' - 'A')
							      : (char)name.p[i];
	}
	buf[name.n] = '\0';
	return ((struct text){ buf, name.n });
}

struct text
tls_hello_name(const void *p, size_t n, char buf[TLS_NAME_MAX + 1])
{
	uint8_t *all = malloc(n + 1);
	struct text name;

	if (all == NULL)
		return (TEXT_NONE);
	name = host_of(extension(extensions(message(p, n, all)), EXTENSION_NAME), buf);
	free(all);
	return (name);
}

/* ---- sessions */

static bool
has_slow_key(struct part e)
{
	struct part keys = counted(&e, 2);
	size_t group;

	while (keys.n > 0 && !keys.failed) {
		group = number(&keys, 2);
		(void)counted(&keys, 2);
		if (group <= GROUP_OLD_LAST && group != GROUP_P256 && group != GROUP_X25519)
			return (true);
	}
	return (false);
}

static bool
resumes(struct part all)
{
	if (extension(all, EXTENSION_SESSION).n != 0)
		return (!has_slow_key(extension(all, EXTENSION_KEYS)));
	return (extension(all, EXTENSION_TICKET).n != 0);
}

bool
tls_hello_resumes(const void *p, size_t n)
{
	uint8_t *all = malloc(n + 1);
	bool found;

	if (all == NULL)
		return (false);
	found = resumes(extensions(message(p, n, all)));
	free(all);
	return (found);
}

/* ---- protocols */

static bool
wants_challenge(struct part e)
{
	static const char name[] = TLS_CHALLENGE;
	struct part list = counted(&e, 2), first = counted(&list, 1);

	return (!list.failed && first.n == sizeof(name) - 1 && memcmp(first.p, name, first.n) == 0);
}

bool
tls_hello_wants_challenge(const void *p, size_t n)
{
	uint8_t *all = malloc(n + 1);
	bool found;

	if (all == NULL)
		return (false);
	found = wants_challenge(extension(extensions(message(p, n, all)), EXTENSION_PROTOCOLS));
	free(all);
	return (found);
}
