/* io/proof.h -- inside io/ only: a file that grows while it is sent is the one that was begun.
 *
 * A log that is written to has another size and other times at each look.  That is not a mixture of
 * two versions as long as the bytes that were sent are the first bytes of the file now.  A reply
 * keeps hashes of two samples of what was sent, from the buffers on their way; the file must have
 * both when it is found longer:
 *
 *      |####|............................|####|- - - - - - - - - - -|+++++++++++|
 *      first                             last  ^ next piece         ^ promised  ^ now
 *
 *   allowed    The file is longer than promised, and not shorter than at the look before.  Its
 *              modification time did not go back, and the samples are equal.
 *   writing    A write(2) sets the time first, and the size after its bytes are copied.  A file
 *              with a new time and its old size is looked at again, for some milliseconds; if it
 *              does not grow, other bytes were written.
 *   lost       A thread that sends by sendfile(2) never sees the bytes.  It reads its samples, if
 *              the file was written to in the last hour; otherwise nothing proves what was sent.
 *
 * Not detected: a write in place to bytes outside the samples, of a file that also grows.
 *
 * Thread   the loop's; a thread has a copy.
 */
#ifndef IO_PROOF_H
#define IO_PROOF_H

#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>

struct io;
struct io_file;
struct io_version;

#define PROOF_SAMPLE   1024u
#define PROOF_WRITE_MS 20u

struct io_sample {
	uint64_t off, hash;
	uint32_t n; /* 0: none */
};

struct io_proof {
	struct io_sample first, last;
	uint64_t size; /* when it was last found longer; 0: it was not */
	uint64_t now;  /* at the last look */
	bool writing;  /* it had a new time then, and its old size */
	bool lost;
};

/* These bytes of the file were sent, or will be sent next, and bytes after them may follow. */
void io_proof_note(struct io_proof *, const struct io_file *, uint64_t off, const char *p,
    size_t n);
/* ... by a thread, which has not seen them. */
void io_proof_note_file(struct io_proof *, const struct io_file *, uint64_t off, size_t n);
/* io_file_look() for more bytes of a reply.  -EAGAIN: the file may have grown; the caller compares
 * the samples with what is there now, and calls io_proof_grew() if they are equal. */
int io_proof_look(struct io_proof *, struct io_file *);
bool io_sample_is(const struct io_sample *, const char *p, size_t n);
void io_proof_grew(struct io_proof *, struct io *);
/* As io_proof_look(), with samples from the page cache.  -EAGAIN: a thread must read them. */
int io_proof_look_warm(struct io_proof *, struct io_file *);
/* As io_proof_look(), in a thread, which may wait.  *grew: the file has grown, and io_proof_grew()
 * is due on the loop. */
int io_proof_look_in_thread(struct io_proof *, const struct io_version *then, int fd, bool *grew);

#endif
