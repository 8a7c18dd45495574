/* t/fuzz/fuzz_fcgi_reply.c -- any bytes from a FastCGI application. */
#include "t/fuzz/fuzz.h"
#include "t/fuzz/reply.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\1\6\0\1\0\25\3\0Status: 404 x\r\n\r\nbodypad\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"),
	SEED("\1\6\0\1\0\6\0\0A: "
	     "1\n\n\1\7\0\1\0\6\0\0oops\nx\1\6\0\1\0\2\0\0hi\1\6\0\1\0\0\0\0\1\3\0\1\0\10\0\0\0\0\0"
	     "\0\0"
	     "\0\0\0"),
	SEED("\1\6\0\1\0\40\0\0Content-Length: 2\nX-Sendfile: "
	     "/a\n\1\6\0\1\0\3\0\0\nab\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"),
	SEED("\1\13\0\0\0\10\0\0\0\0\0\0\0\0\0\0\1\6\0\2\0\1\377\0x\1\3\0\1\0\10\0\0\0\0\0\0\2\0\0"
	     "\0"),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	extern const struct proto proto_fastcgi;

	fuzz_reply(&proto_fastcgi, (struct text){ (const char *)p, n });
	return (0);
}
