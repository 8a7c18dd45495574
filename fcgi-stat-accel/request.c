#include "fcgi-stat-accel/request.h"

#include <errno.h>
#include <fcgiapp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/codec/fcgi_record.h"

#define NO_LISTENER (-1)         /* accept() fails at once, so FCGX_Accept_r() cannot wait */
#define IN_SIZE     (128 * 1024) /* of a request: four record heads and RECORD_PARAMS_MAX */
/* Of an answer: a status page, or a name of 64 KiB with %XX for each byte. */
#define OUT_SIZE (1024 * 1024)
/* Bytes that are written before starting again at 0, so that they stay in the processor's cache. */
#define OUT_TURN    (32 * 1024)
#define STREAM_ROOM 8192 /* libfcgi begins a record at least this often */

struct file {
	const char *name;
	size_t size;
	int fd;
	uint8_t *map; /* NULL: not open */
};

struct request_reader {
	FCGX_Request request;
	struct file in, out;
	size_t at; /* out: where libfcgi writes next */
};

/* ---------------------------------------------------------------- files in memory */

static int
file_open(struct file *f)
{
	f->fd = memfd_create(f->name, MFD_CLOEXEC);
	if (f->fd < 0 || ftruncate(f->fd, (off_t)f->size) < 0)
		return (-errno);
	f->map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED) {
		f->map = NULL;
		return (-errno);
	}
	return (0);
}

static void
file_close(struct file *f)
{
	if (f->map != NULL)
		munmap(f->map, f->size);
	if (f->fd >= 0)
		close(f->fd);
	f->map = NULL;
	f->fd = -1;
}

/* After an error libfcgi closes its descriptor.  Another thread may get the same number by now, so
 * the file is made again. */
static bool
file_usable(struct file *f)
{
	if (f->map == NULL && file_open(f) != 0)
		file_close(f);
	return (f->map != NULL);
}

static void
file_was_closed(struct file *f)
{
	f->fd = -1;
	file_close(f);
}

int
request_reader_new(struct request_reader **rp)
{
	struct request_reader *r = g_new0(struct request_reader, 1);
	int err = 0;

	r->in = (struct file){ "request", IN_SIZE, -1, NULL };
	r->out = (struct file){ "answer", OUT_SIZE, -1, NULL };
	if (FCGX_Init() != 0 || FCGX_InitRequest(&r->request, NO_LISTENER, 0) != 0)
		err = -ENOMEM;
	if (err == 0)
		err = file_open(&r->in);
	if (err == 0)
		err = file_open(&r->out);
	if (err == 0)
		*rp = r;
	else
		request_reader_free(&r);
	return (err);
}

void
request_reader_free(struct request_reader **rp)
{
	struct request_reader *r = *rp;

	if (r == NULL)
		return;
	file_close(&r->in);
	file_close(&r->out);
	g_free(r);
	*rp = NULL;
}

/* ---------------------------------------------------------------- one request */

char **
request_read(struct request_reader *r, const GString *bytes)
{
	/* The file ends with the request: libfcgi asks for 8 KiB and gets only the request. */
	size_t at = IN_SIZE - bytes->len;

	if (bytes->len > IN_SIZE || !file_usable(&r->in))
		return (NULL);
	memcpy(r->in.map + at, bytes->str, bytes->len);
	if (lseek(r->in.fd, (off_t)at, SEEK_SET) < 0)
		return (NULL);
	r->request.ipcFd = r->in.fd;
	r->request.keepConnection = 1; /* otherwise FCGX_Accept_r() would close it */
	if (FCGX_Accept_r(&r->request) == 0)
		return (r->request.envp);
	if (r->request.ipcFd < 0)
		file_was_closed(&r->in);
	return (NULL);
}

void
request_drop(struct request_reader *r)
{
	FCGX_Free(&r->request, 0);
}

/* Bytes from map + at to the end of END_REQUEST; 0 if it is missing. */
static size_t
answer_length(const struct request_reader *r)
{
	const uint8_t *p;
	size_t n = r->at;

	while (n + FCGI_HEAD <= OUT_SIZE) {
		p = r->out.map + n;
		n += FCGI_HEAD + fcgi_content(p) + p[6];
		if (p[1] == END_REQUEST)
			return (n <= OUT_SIZE ? n - r->at : 0);
	}
	return (0);
}

static bool
make_room(struct request_reader *r, size_t n)
{
	size_t most = n + (n / STREAM_ROOM + 4) * 2 * FCGI_HEAD;

	if (most > OUT_SIZE - OUT_TURN || !file_usable(&r->out))
		return (false);
	if (r->at > OUT_TURN) {
		if (lseek(r->out.fd, 0, SEEK_SET) < 0)
			return (false);
		r->at = 0;
	}
	return (true);
}

bool
request_answer(struct request_reader *r, const GString *reply, GString *out)
{
	size_t n;

	if (!make_room(r, reply->len)) {
		request_drop(r);
		return (false);
	}
	r->request.ipcFd = r->out.fd;
	FCGX_PutStr(reply->str, (int)reply->len, r->request.out);
	FCGX_Finish_r(&r->request);
	if (r->request.ipcFd < 0) {
		file_was_closed(&r->out);
		r->at = 0;
		return (false);
	}
	n = answer_length(r);
	g_string_append_len(out, (const char *)r->out.map + r->at, (gssize)n);
	r->at += n;
	return (n > 0);
}
