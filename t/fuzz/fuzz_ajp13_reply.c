/* t/fuzz/fuzz_ajp13_reply.c -- any bytes from a servlet container. */
#include "t/fuzz/fuzz.h"
#include "t/fuzz/reply.h"

#define OK "AB\0\10\4\0\310\0\0\0\0\0" /* SEND HEADERS: 200, no fields */

const struct fuzz_seed fuzz_seeds[] = {
	SEED(OK "AB\0\7\3\0\3abc\0AB\0\4\3\0\0\0AB\0\2\5\1"),
	SEED("AB\0\33\4\1\224\0\2no\0\0\2\240\1\0\3x/y\0\0\1A\0\0\1b\0AB\0\2\5\0"),
	SEED("AB\0\20\4\0\310\0\0\0\0\1\240\3\0\0012\0AB\0\6\3\0\2abAB\0\2\5\1"),
	SEED("AB\0\3\6\37\372" OK "AB\0\3\6\0\1AB\0\2\5\1"),
	SEED("AB\0\10\4\0\147\0\0\0\0\0" OK "AB\0\2\5\1"),
	SEED("AB\0\14\4\0\310\0\0\0\0\1\240\1\377\377AB\0\2\5\1"),
	SEED("AB\0\1\11"),
	{ NULL, 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	extern const struct proto proto_ajp13;

	fuzz_reply(&proto_ajp13, (struct text){ (const char *)p, n });
	return (0);
}
