/* t/bench/hload/options.c -- the command line. */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "t/bench/hload/hload.h"

struct options opt = { .conns = 1, .pipeline = 1, .timeout = 10, .seed = 1, .method = "GET" };

static void
usage(FILE *to)
{
	fputs("usage: hload [options] http://127.0.0.1:PORT/PATH\n"
	      "  -c, --connections N  (1)\n"
	      "  -d, --seconds S      at most this long (5; with -n 60), never over 3600\n"
	      "  -n, --requests N     at most this many\n"
	      "  -r, --rate R         open loop: R requests per second in all, by the clock\n"
	      "  -p, --pipeline N     N requests in one send, then N answers (1, at most 64)\n"
	      "      --close          a connection for each request\n"
	      "  -u, --urls FILE      paths or URLs, one a line, instead of PATH; in turn\n"
	      "      --random         ... at random; --seed N for another order\n"
	      "  -t, --timeout S      for one request (10)\n"
	      "  -H, --header LINE    added to each request; may be repeated\n"
	      "      --from ADDRESS   source address, 127.x.x.x\n"
	      "      --head           HEAD instead of GET\n"
	      "      --status N       the status expected; else any 2xx\n"
	      "      --check DIR      compares each body with the file DIR/PATH\n"
	      "      --abort PCT      this share of requests is left in the middle of the body\n"
	      "      --hold           one request on each connection, prints `held N`, then keeps "
	      "them\n"
	      "                       open and silent until standard input ends or -d is over\n"
	      "      --json           the report as one JSON object\n"
	      "Exit status 0 without errors, 1 with errors, 64 for wrong options.\n",
	    to);
}

/* Returns the PATH of http://ADDRESS:PORT/PATH. */
static const char *
target(const char *url)
{
	const char *path = loopback_url(url, &opt.addr, opt.host);

	return (*path == '/' ? path : "/");
}

enum { CLOSE = 256, RANDOM, SEED, HEADM, STATUS, CHECK, ABORT, HOLD, JSON, FROM };

static const struct option longs[] = {
	{ "connections", 1, NULL, 'c' },
	{ "seconds", 1, NULL, 'd' },
	{ "requests", 1, NULL, 'n' },
	{ "rate", 1, NULL, 'r' },
	{ "pipeline", 1, NULL, 'p' },
	{ "close", 0, NULL, CLOSE },
	{ "urls", 1, NULL, 'u' },
	{ "random", 0, NULL, RANDOM },
	{ "seed", 1, NULL, SEED },
	{ "timeout", 1, NULL, 't' },
	{ "header", 1, NULL, 'H' },
	{ "head", 0, NULL, HEADM },
	{ "status", 1, NULL, STATUS },
	{ "check", 1, NULL, CHECK },
	{ "abort", 1, NULL, ABORT },
	{ "hold", 0, NULL, HOLD },
	{ "json", 0, NULL, JSON },
	{ "from", 1, NULL, FROM },
	{ "help", 0, NULL, 'h' },
	{ "version", 0, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void
header_add(const char *line)
{
	size_t used = strlen(opt.headers);

	snprintf(opt.headers + used, sizeof(opt.headers) - used, "%s\r\n", line);
}

static void
source(const char *address)
{
	opt.from.sin_family = AF_INET;
	if (inet_pton(AF_INET, address, &opt.from.sin_addr) != 1)
		die("--from", "not an address");
}

static void
option(int c)
{
	switch (c) {
	case 'c': opt.conns = (unsigned)number("-c", optarg, 1, 19000); break;
	case 'd': opt.seconds = number("-d", optarg, 0.01, 3600); break;
	case 'n': opt.requests = (uint64_t)number("-n", optarg, 1, 1e12); break;
	case 'r': opt.rate = number("--rate", optarg, 0.001, 1e6); break;
	case 'p': opt.pipeline = (unsigned)number("--pipeline", optarg, 1, PIPELINE_MAX); break;
	case 'u': opt.list = optarg; break;
	case 't': opt.timeout = number("-t", optarg, 0.001, 3600); break;
	case 'H': header_add(optarg); break;
	case CLOSE: opt.close = true; break;
	case RANDOM: opt.random = true; break;
	case SEED: opt.seed = (uint64_t)number("--seed", optarg, 0, 1e15); break;
	case HEADM: opt.method = "HEAD"; break;
	case STATUS: opt.status = (int)number("--status", optarg, 100, 599); break;
	case CHECK: opt.check = optarg; break;
	case ABORT: opt.abort_pct = number("--abort", optarg, 0, 100); break;
	case HOLD: opt.hold = true; break;
	case JSON: opt.json = true; break;
	case FROM: source(optarg); break;
	case 'h': usage(stdout); exit(0);
	case 'V': puts("hload " STAT_ACCEL_VERSION); exit(0);
	default: usage(stderr); exit(64);
	}
}

const char *
options_read(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "c:d:n:r:p:u:t:H:hV", longs, NULL)) != -1)
		option(c);
	if (argc - optind != 1) {
		usage(stderr);
		exit(64);
	}
	if (opt.seconds <= 0)
		opt.seconds = opt.requests > 0 || opt.hold ? 60 : 5;
	if ((opt.close || opt.rate > 0 || opt.hold) && opt.pipeline > 1)
		die("--pipeline", "only for the closed loop with keep-alive");
	return (target(argv[optind]));
}
