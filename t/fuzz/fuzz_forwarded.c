/* t/fuzz/fuzz_forwarded.c -- any bytes as X-Forwarded-For or Forwarded: bytes in front of the last
 * member of a proxy cannot change it, and hops are bounded. */
#include <stdlib.h>
#include "base/must.h"
#include "wire/forwarded.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("203.0.113.7, 10.1.1.1"),
	SEED("[2001:db8::1]:4711, ::ffff:10.0.0.1, unknown"),
	SEED("for=\"[2001:db8::1]:4711\";proto=https;by=_x, for=10.1.1.1"),
	SEED("for=\"a\\\"b,c\";host=\"x;y\", for=_hidden:_p"),
	{ NULL, 0 },
};

static unsigned asked;

static bool
trusts(const void *arg, const struct ip *ip)
{
	asked++;
	return (ip_is_v4(ip) && ip->b[12] == 10);
}

static bool
never(const void *arg, const struct ip *ip)
{
	return (false);
}

typedef void reader(struct forwarded_walk *, struct text);

/* The member of a proxy follows the bytes. */
static void
check_last(reader *read, struct text in, const char *member)
{
	size_t n = strlen(member);
	char *all = malloc(in.n + n);
	struct forwarded_walk w = { .trusts = never };

	must(all != NULL);
	memcpy(all, in.p, in.n);
	memcpy(all + in.n, member, n);
	read(&w, (struct text){ all, in.n + n });
	must(w.over && w.found.has_addr && w.found.port == 80 && w.found.addr.b[15] == 7);
	free(all);
}

static void
check_walk(reader *read, struct text in)
{
	struct forwarded_walk w = { .trusts = trusts };

	asked = 0;
	read(&w, in);
	must(asked <= FORWARDED_HOPS && w.hops <= FORWARDED_HOPS + 1);
	must(w.found.has_addr == (asked > 0));
	read(&w, in);
	must(asked <= FORWARDED_HOPS);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n };

	check_walk(forwarded_addresses, in);
	check_walk(forwarded_elements, in);
	check_last(forwarded_addresses, in, ", [2001:db8::7]:80");
	check_last(forwarded_elements, in, ", for=\"[2001:db8::7]:80\";host=\"a,b\"");
	must(forwarded_proto(in) <= SCHEME_HTTPS);
	return (0);
}
