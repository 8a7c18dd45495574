/* t/bench/fload/request.h -- what a web server sends for an ordinary request from a browser. */
#ifndef FLOAD_REQUEST_H
#define FLOAD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_PATH_MAX 4096
#define REQUEST_MAX      (4 * REQUEST_PATH_MAX)

enum { RESPONDER = 1, AUTHORIZER = 2 };

struct request {
	char *path;
	int status;  /* the one that is expected */
	char *bytes; /* all records, with id 0 */
	size_t len;
	size_t ids[5]; /* where the id of each record stands; 0 behind the last */
};

/* 0, -ENAMETOOLONG or -ENOMEM. */
int request_make(struct request *, const char *path, int status, unsigned role, bool keep);

/* The bytes with this id, at most REQUEST_MAX. */
void request_write(const struct request *, uint16_t id, char *out);

#endif
