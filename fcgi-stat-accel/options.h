/* fcgi-stat-accel/options.h -- the command line and the environment, as the parts of the program want them.
 *
 * Owner    everything in struct options belongs to options.c until options_free().
 */
#ifndef FCGI_STAT_ACCEL_OPTIONS_H
#define FCGI_STAT_ACCEL_OPTIONS_H

#include <glib.h>
#include <stdbool.h>

#include "fcgi-stat-accel/accel.h"
#include "fcgi-stat-accel/timing.h"
#include "fcgi-stat-accel/user.h"
#include "fcgi-stat-accel/warm/warm.h"

#define OPTIONS_RUN (-1)

struct options {
	struct accel_conf accel;
	struct warm_conf  warm;
	unsigned threads;		/* that open files, and as many that read on */
	unsigned per_device, queue;	/* as in io_pools_conf; per_device 0: not limited */
	const char *listen;		/* NULL: an inherited socket */
	bool	    allow_any;		/* a wildcard address may be listened on */
	const char *const *peer_users;	/* who may connect to a unix socket, beside root and ourselves; NULL: who can */
	struct user user;		/* to become; .name NULL: none */
	bool	    sandbox;
	const char *status_path, *ping_path;	/* NULL: none */
	const char *log;		/* NULL: standard error */
	enum timing_format timing;
};

/* OPTIONS_RUN, or the exit status: after --help, --version, --manual and --check, or a mistake, which has been reported. */
int  options_read(char **argv, struct options *);
void options_free(void);

/* One line on standard error, with the program's name before it. */
void complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

#endif
