/* fcgi-stat-accel/options.h -- the command line and the environment, in the form that the parts of
 * the program need.
 */
#ifndef FCGI_STAT_ACCEL_OPTIONS_H
#define FCGI_STAT_ACCEL_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"
#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/timing.h"
#include "fcgi-stat-accel/user.h"
#include "files/warm/warm.h"

extern const struct command accel_command;
void accel_manual(struct manpage *);

struct options {
	struct accel_conf accel;
	struct warm_conf warm;
	unsigned threads;           /* threads that open files, and as many that read ahead */
	unsigned per_device, queue; /* see io_pools_conf; per_device 0: no limit */
	const char *listen;         /* NULL: an inherited socket */
	bool replace;               /* takes the place of the process that listens there */
	bool allow_any;             /* a wildcard address is allowed */
	/* Users that may connect to a unix socket, besides root and the user of this process;
	 * NULL: all. */
	const char *const *peer_users;
	struct user user; /* user to become; .name NULL: none */
	bool sandbox;
	uint64_t pin;       /* bytes locked in memory at a time */
	unsigned advice_ms; /* 0: no advice */
	bool prove_order;
	const char *status_path, *ping_path; /* NULL: none */
	const char *log;                     /* NULL: standard error */
	unsigned log_json;                   /* each line of the log is an object */
	enum timing_format timing;
};

/* OPTIONS_RUN, or the exit status after --help, --version, --manual, --check or a mistake, which
 * has been reported. */
int accel_options_read(char **argv, struct options *);

/* "fcgi-stat-accel: ..." on standard error */
#define print_error(...) options_wrong(&accel_command, __VA_ARGS__)

#endif
