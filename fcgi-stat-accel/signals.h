/* fcgi-stat-accel/signals.h -- signals as bytes on a socket, so that the loop receives them like anything else.
 *
 * Thread   the first one; those started later must block them, as the pools of io/ do.
 */
#ifndef FCGI_STAT_ACCEL_SIGNALS_H
#define FCGI_STAT_ACCEL_SIGNALS_H

/* TERM INT QUIT USR1 HUP USR2: from now on each is one byte, its number, to be received from *fdp.  0 or -errno. */
int  signals_open(int *fdp);
void signals_close(int fd);	/* they are ignored from now on */

#endif
