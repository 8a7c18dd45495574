/* t/fuzz/fuzz_bans.c -- any bytes as a server.ban-file: each line is an entry, nothing, or named as
 * broken, and no line changes what another one says. */
#include <stdlib.h>
#include <string.h>
#include "base/ban_list.h"
#include "base/must.h"
#include "t/fuzz/fuzz.h"

#define NOW 1800000000u

const struct fuzz_seed fuzz_seeds[] = {
	SEED("# of the operator\n\n192.0.2.7\n10.0.0.0/8\t# all\r\n2001:db8:1::/48\n::/0\n"),
	SEED("192.0.2.1 1800000001\n192.0.2.1 1\n192.0.2.1 2027-01-15T09:00:01+01:00\n"),
	SEED("192.0.2.1 9999-12-31\n::1 2027-01-15t08:01Z # x\n::1 2027-01-15T08:01:60-0130"),
	SEED("localhost\n192.0.2.1/33\n192.0.2.1 x\n192.0.2.1 1 2\n1.2.3.4\0 5\n[::1]/128\n"
	     "fe80::1%eth0"),
	{ NULL, 0 },
};

struct faults {
	unsigned n, last;
};

static void
fault(void *arg, unsigned line, struct text text, const char *why)
{
	struct faults *f = arg;

	must(why != NULL && line > f->last && memchr(text.p, '\n', text.n) == NULL);
	f->last = line;
	f->n++;
}

/* A network that a line alone bans, the whole file bans, too. */
static size_t
check_line(struct text line, const struct ban_list *all, struct faults *alone)
{
	struct text name, rest = line;
	struct ban_list *one;
	struct ip_net net;
	size_t n;

	alone->last = 0;
	one = ban_list_read(line, NOW, fault, alone);
	must(one != NULL);
	n = ban_list_size(one);
	must(n <= 1);
	if (n == 1 && text_next(&rest, ' ', &name) && ip_net_read(name, &net))
		must(ban_list_has(one, &net.ip, NOW) && ban_list_has(all, &net.ip, NOW));
	ban_list_free(one);
	return (n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n }, rest = in, line;
	struct faults whole = { 0 }, alone = { 0 };
	struct ban_list *l = ban_list_read(in, NOW, fault, &whole);
	size_t entries = 0;

	must(l != NULL);
	while (text_next(&rest, '\n', &line))
		entries += check_line(line, l, &alone);
	must(ban_list_size(l) <= entries && (entries == 0) == (ban_list_size(l) == 0));
	must(alone.n == whole.n);
	ban_list_free(l);
	return (0);
}
