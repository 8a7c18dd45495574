/* fcgi-stat-accel/request.h -- libfcgi on the loop, where it cannot wait.
 *
 *   record_take() --> file "in"  --read()---> FCGX_Accept_r() --> variables
 *   bytes to send <-- file "out" <--write()-- FCGX_PutStr(), FCGX_Finish_r() <-- reply
 *
 * libfcgi takes two files in memory (memfd_create(2)) for its connection.  This is the simplest
 * construction with the wanted properties:
 *
 *   - All bytes of a request are in "in" before libfcgi reads, and reading a file in memory does
 *     not wait.  Writing does not wait either, for an answer of any length.  With a pair of sockets
 *     a long answer would stop the loop for ever.
 *   - So libfcgi needs no thread.  Kept connections hold no thread.  Requests whose disk hangs hold
 *     none either: the loop answers them at their deadline.
 *   - libfcgi reads only bytes that record_take() wrote, so it never gets a length on which it
 *     aborts.
 *   - Nothing of libfcgi outlives a call into this file: one FCGX_Request serves all connections.
 *     A request that waits for its file is dropped, and read again (2 us) when the file is there,
 *     from the same few hundred bytes.  The streams of an FCGX_Request would cost 17 KiB for each
 *     waiting request.
 *
 * A request costs three system calls here: lseek, read, write; both files are mapped into this
 * process.
 *
 * Thread   the loop's.
 */
#ifndef FCGI_STAT_ACCEL_REQUEST_H
#define FCGI_STAT_ACCEL_REQUEST_H

#include <glib.h>
#include <stdbool.h>

struct request_reader;

int request_reader_new(struct request_reader **); /* -errno */
void request_reader_free(struct request_reader **);

/* The variables of one whole request, NAME=VALUE, NULL at the end; valid until request_answer()
 * or request_drop(), one of which must follow.  NULL if libfcgi refuses the request; then
 * neither may follow. */
char **request_read(struct request_reader *, const GString *bytes);

/* Appends the bytes to send.  False if libfcgi could not write them; out is unchanged then. */
bool request_answer(struct request_reader *, const GString *reply, GString *out);
void request_drop(struct request_reader *);

#endif
