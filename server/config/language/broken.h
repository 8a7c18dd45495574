/* server/config/language/broken.h -- finds the running server if its configuration does not load.
 *
 * A reload or an upgrade is requested through its socket and its pid file.  So the server itself
 * refuses it, with a line in its log, in its status and its metrics.
 */
#ifndef SERVER_CONFIG_BROKEN_H
#define SERVER_CONFIG_BROKEN_H

/* Both live as long as the program; NULL: not set, or not found. */
struct broken_names {
	const char *control; /* as of control_name() */
	const char *pid_file;
};

/* Reads the values in front of the mistake; if there are none, lines of the main file that look
 * like them.  May block. */
void broken_names(const char *file, struct broken_names *);

#endif
