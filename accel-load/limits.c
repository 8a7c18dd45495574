/* accel-load/limits.c -- see limits.h */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include "accel-load/limits.h"

#define FILES_OURS   32 /* standard ones, and some for each run */
#define FILES_THREAD 4
#define PORT_RANGE   "/proc/sys/net/ipv4/ip_local_port_range"

static rlim_t
raise_files(rlim_t need)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return (RLIM_INFINITY);
	if (r.rlim_cur < need) {
		r.rlim_cur = need < r.rlim_max ? need : r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
		getrlimit(RLIMIT_NOFILE, &r);
	}
	return (r.rlim_cur);
}

/* Ports of one address of this host; 0: unknown. */
static unsigned
ports(void)
{
	FILE *f = fopen(PORT_RANGE, "re");
	unsigned first, last, n = 0;

	if (f == NULL)
		return (0);
	if (fscanf(f, "%u %u", &first, &last) == 2 && last >= first)
		n = last - first + 1;
	fclose(f);
	return (n);
}

static int
check_ports(const struct load_conf *conf, const struct urls *urls)
{
	unsigned n = ports();

	if (n == 0 || conf->connections <= n || urls->targets->sa.sa_family == AF_UNIX)
		return (0);
	load_message("--parallel %u: this host has %u ports for connections to one address; more "
		     "are in " PORT_RANGE ", or in other processes with --from and --merge",
	    conf->connections, n);
	return (EX_USAGE);
}

int
limits_raise(const struct load_conf *conf, const struct urls *urls)
{
	rlim_t need = (rlim_t)conf->connections + FILES_OURS + FILES_THREAD * conf->threads;
	int code = check_ports(conf, urls);
	rlim_t have;

	if (code != 0)
		return (code);
	have = raise_files(need);
	if (have >= need)
		return (0);
	load_message("--parallel %u: only %llu files may be open, and %llu are needed; raise the "
		     "limit (ulimit -Hn) or use at most %llu connections",
	    conf->connections, (unsigned long long)have, (unsigned long long)need,
	    (unsigned long long)(have > need - conf->connections ? have - (need - conf->connections)
								 : 1));
	return (EX_OSERR);
}

void
limits_explain(int err)
{
	if (err == 0)
		return;
	load_message("connect: %s%s", strerror(err),
	    err == EADDRNOTAVAIL
		? ": no port is free (those of closed connections wait in TIME_WAIT), or --from is "
		  "not an address of this host; use keep-alive, a lower rate or another --from"
		: "");
}
