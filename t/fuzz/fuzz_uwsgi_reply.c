/* t/fuzz/fuzz_uwsgi_reply.c -- any bytes from a uwsgi application. */
#include "t/fuzz/fuzz.h"
#include "t/fuzz/reply.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("HTTP/1.1 404 x\r\n\r\nbody"),
	SEED("HTTP/1.0 200 OK\nContent-Length: 2\nX-Sendfile: /a\n\nabc"),
	SEED("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n"),
	SEED("HTTP/1.1 103 x\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
	SEED("HTTP/1.1 101 x\r\nUpgrade: a\r\n\r\n"),
	SEED("Status: 200\r\n\r\n"),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	extern const struct proto proto_uwsgi;

	fuzz_reply(&proto_uwsgi, (struct text){ (const char *)p, n });
	return (0);
}
