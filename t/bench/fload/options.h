/* t/bench/fload/options.h -- what the command line asks for. */
#ifndef FLOAD_OPTIONS_H
#define FLOAD_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "t/bench/args.h"
#include "t/bench/fload/request.h"

struct options {
	unsigned conns, role;
	uint64_t requests; /* at most; 0 for no limit but the time */
	double seconds, timeout;
	bool close, idle;
	int status;
	const char *list, *expect;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_un un;
	} addr;
	socklen_t addr_len;
	struct request *asked; /* in turn */
	size_t n_asked;
};

extern struct options opt;

/* Ends the program when they are wrong. */
void options_read(int argc, char **argv);

#endif
