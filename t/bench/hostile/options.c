/* t/bench/hostile/options.c -- the command line: bounds are checked here, and only here. */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "t/bench/hostile/hostile.h"

struct options opt = { .seconds = 5,
	.file = "/",
	.big = "/",
	.app = "/",
	.app_big = "/",
	.stream = "/",
	.stale = "/",
	.cold = "/",
	.ncold = 1 };

static void
list(FILE *to, const struct attack *a)
{
	for (; a->name != NULL; a++)
		fprintf(to, "  %-15s %s (%u connections)\n", a->name, a->doc, a->conns);
}

static void
usage(FILE *to)
{
	fputs("usage: hostile [options] http://127.0.0.1:PORT "
	      "ATTACK[,conns=N][,rate=N][,pause=MS][,from=127.0.1.1-250]...\n"
	      "  -d, --seconds S      how long (5, at most 3600)\n"
	      "      --file PATH      a small file that exists (/)\n"
	      "      --big PATH       a file that does not fit into socket buffers (/)\n"
	      "      --app PATH       what an application answers, also to POST (/)\n"
	      "      --app-big PATH   an answer of an application that does not fit into socket "
	      "buffers (/)\n"
	      "      --stream PATH    an application that gets bodies while they arrive (/)\n"
	      "      --stale PATH     an application names a file that is missing (/)\n"
	      "      --cold PREFIX:N  files PREFIX0 to PREFIX(N-1), on a slow disk\n"
	      "Prints \"running\" when it is under way, one JSON object at the end.  INT and TERM "
	      "end it early.\n"
	      "rate is new connections per second, pause the time between two pieces of a "
	      "connection.  from is a range of source addresses within 127.0.0.0/8 (127.0.0.1).\n"
	      "Attacks:\n",
	    to);
	list(to, attacks);
	fputs("Attacks in HTTP/2, in clear with prior knowledge:\n", to);
	list(to, h2_attacks);
}

/* 127.0.1.1 or 127.0.1.1-250 */
static void
sources(struct run *r, char *s)
{
	char *dash = strchr(s, '-');
	uint32_t first;

	if (dash != NULL)
		*dash++ = '\0';
	if (inet_pton(AF_INET, s, &r->from) != 1 || (first = ntohl(r->from.s_addr)) >> 24 != 127)
		die(s, "expected an address of 127.0.0.0/8");
	r->nfrom =
	    dash == NULL ? 1 : (unsigned)number("from", dash, first & 255, 254) - (first & 255) + 1;
}

static void
attack_read(char *words)
{
	struct run *r = &opt.runs[opt.nruns];
	char *word = strsep(&words, ",");
	const struct attack *a;

	if ((a = attack_named(word)) == NULL)
		die(word, "no such attack; see --help");
	if (opt.nruns++ == ATTACKS_MAX)
		die(word, "too many attacks");
	*r = (struct run){ .attack = a,
		.conns = a->conns,
		.rate = a->rate,
		.pause_ms = a->pause_ms,
		.from.s_addr = htonl(INADDR_LOOPBACK),
		.nfrom = 1 };
	while ((word = strsep(&words, ",")) != NULL)
		if (strncmp(word, "conns=", 6) == 0)
			r->conns = (unsigned)number("conns", word + 6, 1, CONNS_MAX);
		else if (strncmp(word, "rate=", 5) == 0)
			r->rate = (unsigned)number("rate", word + 5, 1, RATE_MAX);
		else if (strncmp(word, "pause=", 6) == 0)
			r->pause_ms = (unsigned)number("pause", word + 6, 0, 60000);
		else if (strncmp(word, "from=", 5) == 0)
			sources(r, word + 5);
		else
			die(word, "expected conns=, rate=, pause= or from=");
}

static void
target(const char *url)
{
	const char *path = loopback_url(url, &opt.addr, opt.host);

	if (*path != '\0' && strcmp(path, "/") != 0)
		die(url, "expected http://127.0.0.1:PORT");
}

static const char *
path(const char *what, const char *s)
{
	if (s[0] != '/' || strlen(s) > 200)
		die(what, "expected a path of at most 200 bytes");
	return (s);
}

static void
cold(char *s)
{
	char *colon = strrchr(s, ':');

	if (colon == NULL)
		die("--cold", "expected PREFIX:N");
	*colon = '\0';
	opt.cold = path("--cold", s);
	opt.ncold = (unsigned)number("--cold", colon + 1, 1, 1e6);
}

void
options_read(int argc, char **argv)
{
	enum { FILE_ = 256, BIG, APP, APP_BIG, STREAM, STALE, COLD };
	static const struct option longs[] = {
		{ "seconds", 1, NULL, 'd' },
		{ "file", 1, NULL, FILE_ },
		{ "big", 1, NULL, BIG },
		{ "app", 1, NULL, APP },
		{ "app-big", 1, NULL, APP_BIG },
		{ "stream", 1, NULL, STREAM },
		{ "stale", 1, NULL, STALE },
		{ "cold", 1, NULL, COLD },
		{ "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned all = 0, i;
	int c;

	while ((c = getopt_long(argc, argv, "d:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'd': opt.seconds = number("--seconds", optarg, 0.1, SECONDS_MAX); break;
		case FILE_: opt.file = path("--file", optarg); break;
		case BIG: opt.big = path("--big", optarg); break;
		case APP: opt.app = path("--app", optarg); break;
		case APP_BIG: opt.app_big = path("--app-big", optarg); break;
		case STREAM: opt.stream = path("--stream", optarg); break;
		case STALE: opt.stale = path("--stale", optarg); break;
		case COLD: cold(optarg); break;
		case 'h': usage(stdout); exit(0);
		case 'V': puts("hostile " STAT_ACCEL_VERSION); exit(0);
		default: usage(stderr); exit(64);
		}
	}
	if (argc - optind < 2) {
		usage(stderr);
		exit(64);
	}
	target(argv[optind]);
	for (c = optind + 1; c < argc; c++)
		attack_read(argv[c]);
	for (i = 0; i < opt.nruns; i++)
		all += opt.runs[i].conns;
	if (all > CONNS_MAX)
		die("conns", "all attacks together: at most 20000");
}
