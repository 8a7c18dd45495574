#include "t/bench/fload/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options opt = { .conns = 1, .role = RESPONDER, .timeout = 10, .status = 200 };

static void
usage(FILE *to)
{
	fputs("usage: fload [options] unix:SOCKET|127.0.0.1:PORT [PATH]\n"
	      "  -c, --connections N  (1) kept, asked in turn\n"
	      "  -d, --seconds S      at most this long (5; with -n or --idle 60), never over "
	      "3600\n"
	      "  -n, --requests N     at most this many\n"
	      "      --close          a connection for each request\n"
	      "  -u, --urls FILE      \"PATH [STATUS]\", one a line, instead of PATH; in turn\n"
	      "  -t, --timeout S      for one request (10)\n"
	      "      --role ROLE      responder (default) or authorizer\n"
	      "      --status N       the status expected (200)\n"
	      "      --expect NAME    this header of an answer 200 must be the path that was asked "
	      "for\n"
	      "      --idle           asks once on each connection, prints `held=N answered=N "
	      "errors=N` and keeps\n"
	      "                       them; again for each line on standard input, until that "
	      "ends\n"
	      "Prints one line of KEY=VALUE: errors by kind, never (connections without any "
	      "answer), least (answers of the\n"
	      "connection that got fewest).  Exit status 0 without errors, 1 with errors, 64 for "
	      "wrong options.\n",
	    to);
}

static void
ask_for(const char *path, int status)
{
	static size_t room;
	int err;

	if (opt.n_asked == room) {
		room = room == 0 ? 64 : 2 * room;
		if ((opt.asked = realloc(opt.asked, room * sizeof(*opt.asked))) == NULL)
			die("memory", strerror(errno));
	}
	err = request_make(&opt.asked[opt.n_asked++], path, status, opt.role, !opt.close);
	if (err != 0)
		die(path, strerror(-err));
}

static void
target(const char *s)
{
	char host[32];
	int port, used = 0;

	if (strncmp(s, "unix:", 5) == 0) {
		if (strlen(s + 5) >= sizeof(opt.addr.un.sun_path))
			die(s, "too long");
		opt.addr.un.sun_family = AF_UNIX;
		strcpy(opt.addr.un.sun_path, s + 5);
		opt.addr_len = sizeof(opt.addr.un);
		return;
	}
	if (sscanf(s, "%31[0-9.]:%d%n", host, &port, &used) != 2 || s[used] != '\0' || port < 1 ||
	    port > 65535 || inet_pton(AF_INET, host, &opt.addr.in.sin_addr) != 1 ||
	    ntohl(opt.addr.in.sin_addr.s_addr) >> 24 != 127)
		die(s, "neither unix:SOCKET nor 127.0.0.1:PORT");
	opt.addr.in.sin_family = AF_INET;
	opt.addr.in.sin_port = htons((uint16_t)port);
	opt.addr_len = sizeof(opt.addr.in);
}

static void
list_read(const char *name)
{
	FILE *f = fopen(name, "r");
	char line[REQUEST_PATH_MAX + 8];
	int status, n;

	if (f == NULL)
		die(name, strerror(errno));
	while (fgets(line, sizeof(line), f) != NULL) {
		n = (int)strcspn(line, " \r\n");
		status = line[n] == ' ' ? atoi(line + n) : opt.status;
		line[n] = '\0';
		ask_for(line, status);
	}
	fclose(f);
	if (opt.n_asked == 0)
		die(name, "no path in it");
}

void
options_read(int argc, char **argv)
{
	enum { CLOSE = 256, ROLE, STATUS, EXPECT, IDLE };
	static const struct option longs[] = {
		{ "connections", 1, NULL, 'c' },
		{ "seconds", 1, NULL, 'd' },
		{ "requests", 1, NULL, 'n' },
		{ "close", 0, NULL, CLOSE },
		{ "urls", 1, NULL, 'u' },
		{ "timeout", 1, NULL, 't' },
		{ "role", 1, NULL, ROLE },
		{ "status", 1, NULL, STATUS },
		{ "expect", 1, NULL, EXPECT },
		{ "idle", 0, NULL, IDLE },
		{ "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:d:n:u:t:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c': opt.conns = (unsigned)number("-c", optarg, 1, 65000); break;
		case 'd': opt.seconds = number("-d", optarg, 0.01, 3600); break;
		case 'n': opt.requests = (uint64_t)number("-n", optarg, 1, 1e12); break;
		case 'u': opt.list = optarg; break;
		case 't': opt.timeout = number("-t", optarg, 0.001, 3600); break;
		case CLOSE: opt.close = true; break;
		case ROLE:
			opt.role = strcmp(optarg, "authorizer") == 0 ? AUTHORIZER : RESPONDER;
			if (opt.role == RESPONDER && strcmp(optarg, "responder") != 0)
				die("--role", "expected responder or authorizer");
			break;
		case STATUS: opt.status = (int)number("--status", optarg, 100, 599); break;
		case EXPECT: opt.expect = optarg; break;
		case IDLE: opt.idle = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(64);
		}
	}
	if (argc - optind != (opt.list != NULL ? 1 : 2) ||
	    (opt.idle && (opt.close || opt.requests > 0))) {
		usage(stderr);
		exit(64);
	}
	if (opt.seconds <= 0)
		opt.seconds = opt.requests > 0 || opt.idle ? 60 : 5;
	target(argv[optind]);
	if (opt.list != NULL)
		list_read(opt.list);
	else
		ask_for(argv[optind + 1], opt.status);
}
