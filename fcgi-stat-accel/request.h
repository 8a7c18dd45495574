/* fcgi-stat-accel/request.h -- libfcgi, on the loop, where it can neither wait nor be surprised.
 *
 *   record_take() --> file "in"  --read()---> FCGX_Accept_r() --> variables
 *   bytes to send <-- file "out" <--write()-- FCGX_PutStr(), FCGX_Finish_r() <-- reply
 *
 * Two files in memory (memfd_create(2)) are what libfcgi takes for its connection.  Why that is the simplest
 * construction with the properties we want:
 *
 *   - All bytes of a request lie in "in" before libfcgi looks, and a read of a file does not wait.  A write does not
 *     either, however long the answer; between a pair of sockets a long one would stop the loop for ever.
 *   - So libfcgi needs no thread, kept connections hold none, and neither do requests whose disk hangs: the loop
 *     answers them when their deadline comes.
 *   - It reads only what record.c wrote.  The lengths on which it aborts cannot come by.
 *   - Nothing of libfcgi outlives a call into this file: one FCGX_Request serves all connections.  A request that has
 *     to wait for its file is dropped, and read again (2 us) when the file is there, from the same few hundred
 *     bytes; the streams of an FCGX_Request would be 17 KiB for each that waits.
 *
 * A request costs three system calls here: lseek, read, write; both files are mapped for our side of them.
 *
 * Thread   the loop's.
 */
#ifndef FCGI_STAT_ACCEL_REQUEST_H
#define FCGI_STAT_ACCEL_REQUEST_H

#include <glib.h>
#include <stdbool.h>

struct request_reader;

int  request_reader_new(struct request_reader **);	/* -errno */
void request_reader_free(struct request_reader **);

/* The variables of one whole request, NAME=VALUE, NULL at the end: valid until request_answer() or request_drop(), one of
 * which must follow.  NULL when libfcgi did not like it; nothing must follow then. */
char **request_read(struct request_reader *, const GString *bytes);

/* Appends what is to be sent.  False when libfcgi could not write it; out is as it was then. */
bool request_answer(struct request_reader *, const GString *reply, GString *out);
void request_drop(struct request_reader *);

#endif
