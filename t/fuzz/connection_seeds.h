/* t/fuzz/connection_seeds.h -- events of connection.h: each feature alone. */
#ifndef T_FUZZ_CONNECTION_SEEDS_H
#define T_FUZZ_CONNECTION_SEEDS_H

#include "t/fuzz/fuzz.h"

/* In front: protocol | stream << 3 | handler << 5, bits of extras, by hand. */
#define HOST      "Host: a\r\n"
#define CHUNKED   "Transfer-Encoding: chunked\r\n"
#define WEBSOCKET "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\x00\x00\x00"
	     "cGET /a HTTP/1.1\r\n" HOST "\r\nGET /b HTTP/1.1\r\n" HOST "\r\n"
	     "\xfe"
	     "dGET /b HTTP/1.1\r\n" HOST "Range: bytes=1-4,9-\r\n\r\n\xfe"
	     "e"),
	SEED("\x00\x00\x07"
	     "cGET /d/ HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "n\0\xfe"
	     "n\1\xfe"
	     "n\2\xfe"
	     "n\3\xfe"
	     "w\40\xfe"
	     "E\xfe"
	     "n\0"),
	SEED("\x00\x00\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "aStatus: 200\r\n\r\nbody"),
	SEED("\x29\x00\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "x\xfe"
	     "x\xfe"
	     "hContent-Length: 1\r\n\r\nx"),
	SEED("\x09\x00\x00"
	     "cPOST /app HTTP/1.1\r\n" HOST CHUNKED "\r\n5\r\nhello\r\n\xfe"
	     "c"
	     "3\r\nyou\r\n0\r\n\r\n\xfe"
	     "hContent-Length: 2\r\n\r\n\xfe"
	     "sok"),
	SEED("\x03\x00\x00"
	     "cPOST /app HTTP/1.1\r\n" HOST "Content-Length: 4\r\nExpect: 100-continue\r\n"
	     "\r\n\xfe"
	     "cbody\xfe"
	     "q\xfe"
	     "hStatus: 200\r\nA: b\r\n\r\nbody\xfe"
	     "z"),
	SEED("\x09\x01\x00"
	     "cGET /app HTTP/1.1\r\n" HOST WEBSOCKET "\xfe"
	     "hStatus: 101\r\n" WEBSOCKET "hello\xfe"
	     "cyou\xfe"
	     "sthere\xfe"
	     "x"),
	SEED("\x02\x02\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\nGET /a HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "hStatus: 200\r\nX-Sendfile: /usr/a\r\n\r\n\xfe"
	     "x"),
	SEED("\xc0\x02\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "aStatus: 404\r\nX-Sendfile2: /usr/b 1-4,/usr/a 0-\r\n\r\n\xfe"
	     "aStatus: 200\r\n\r\nerr"),
	SEED("\x00\x0a\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "aX-Accel-Redirect: /app/b\r\n\r\n\xfe"
	     "aX-Reproxy-URL: http://10.0.0.7/a\r\n\r\n\xfe"
	     "aStatus: 200\r\n\r\nerr"),
	SEED("\x60\x10\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\nPOST /app HTTP/1.1\r\n" HOST
	     "Content-Length: 2\r\n\r\nab\xfe"
	     "aStatus: 200\r\nVariable-A: b\r\n\r\n\xfe"
	     "aStatus: 200\r\n\r\nok\xfe"
	     "aStatus: 403\r\n\r\nno"),
	SEED("\x01\x48\x03"
	     "cGET /app HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n\xfe"
	     "n\1\xfe"
	     "n\1"
	     "\xfe"
	     "n\1\xfe"
	     "w\2\xfe"
	     "n\1\xfe"
	     "n\2\xfe"
	     "o\xfe"
	     "hContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody\xfe"
	     "t\1"),
	SEED("\x24\x80\x08"
	     "cGET /r/x HTTP/1.0\r\n\r\n\xfe"
	     "r\xfe"
	     "N\0\xfe"
	     "k\0\xfe"
	     "D\xfe"
	     "dHEAD /none HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "f"),
	/* failures, each by itself */
	SEED("\x09\x00\x00"
	     "cPOST /app HTTP/1.1\r\n" HOST CHUNKED "\r\nZZ\r\n"),
	SEED("\x01\x20\x00"
	     "cPOST /app HTTP/1.1\r\n" HOST "Content-Length: 9999\r\n\r\n"),
	SEED("\x20\x00\x00"
	     "cGET /app HTTP/1.1\r\n" HOST "\r\n\xfe"
	     "x\xfe"
	     "x\xfe"
	     "aStatus: 200\r\n\r\nerr"),
	SEED("\x41\x00\x00"
	     "cGET /none HTTP/1.1\r\n" HOST "\r\nGET /c HTTP/1.1\r\n" HOST "\r\n"),
	{ NULL, 0 },
};

#endif
