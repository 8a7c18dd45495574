/* t/fuzz/fuzz_scgi_reply.c -- any bytes from an SCGI application. */
#include "t/fuzz/fuzz.h"
#include "t/fuzz/reply.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("Status: 404 x\r\n\r\nbody"),
	SEED("A: 1\n\nbody\n\nA: 2\n\n"),
	SEED("Content-Length: 2\nX-Sendfile: /a\n\nab"),
	SEED("Content-Length: 2\r\n\r\nabcdef"),
	SEED("Content-Length: 9\r\n\r\nab"),
	SEED("Content-Length: 0\r\nLocation: /x\r\n\r\n"),
	SEED("Content-Type: te"),
	SEED("HTTP/1.1 200 OK\r\n\r\n"),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	extern const struct proto proto_scgi;

	fuzz_reply(&proto_scgi, (struct text){ (const char *)p, n });
	return (0);
}
