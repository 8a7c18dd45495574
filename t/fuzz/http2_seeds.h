/* t/fuzz/http2_seeds.h -- events of http2_client.h: each feature alone. */
#ifndef T_FUZZ_HTTP2_SEEDS_H
#define T_FUZZ_HTTP2_SEEDS_H

#include "t/fuzz/fuzz.h"

/* In front: protocol | stream << 3 | handler << 5, bits of extras, by hand.
 * Flags of HEADERS: 4 ends them, 1 ends the stream. */
#define NEXT "\xfe"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\x00\x00\x00"
	     "H\0\5G/a" NEXT "H\1\5G/b\nrange bytes=1-4,9-" NEXT "H\2\5A/b" NEXT "e"),
	SEED("\x00\x00\x20"
	     "H\0\5G/b\npriority u=1" NEXT "H\1\5G/d/b" NEXT "H\2\5G/none" NEXT "Y\0\0u=7"),
	/* windows that open slowly, and a reset */
	SEED("\x00\x00\x00"
	     "S\4\0" NEXT "H\0\5G/b" NEXT "W\0\5" NEXT "W\xff\17" NEXT "H\1\5G/d/b" NEXT "R\1" NEXT
	     "w\2" NEXT "W\0\17"),
	SEED("\x00\x00\x27"
	     "H\0\5G/d/" NEXT "H\1\5G/b" NEXT "n\0" NEXT "n\1" NEXT "t\2\1" NEXT "n\2" NEXT
	     "n\3" NEXT "w\40" NEXT "E" NEXT "n\0"),
	/* applications */
	SEED("\x00\x00\x00"
	     "H\0\5G/app" NEXT "aStatus: 200\r\n\r\nbody" NEXT
	     "H\1\5G/app/b\ncookie a\ncookie b" NEXT "hContent-Length: 1\r\n\r\nx" NEXT "z"),
	SEED("\x09\x00\x00"
	     "H\0\4P/app" NEXT "B\0\0hello" NEXT "hContent-Length: 2\r\n\r\n" NEXT "B\0\1you" NEXT
	     "sok"),
	SEED("\x03\x00\x00"
	     "H\0\4P/app\ncontent-length 512\nexpect 100-continue" NEXT "Z\0\2" NEXT "B\0\1" NEXT
	     "q" NEXT "hStatus: 200\r\nA: b\r\n\r\nbody" NEXT "z"),
	SEED("\x11\x00\x20"
	     "H\0\4P/app" NEXT "Z\0\77" NEXT "Z\0\77" NEXT "H\1\4P/app" NEXT "Z\1\77" NEXT
	     "hContent-Length: 2\r\n\r\n" NEXT "Z\0\77" NEXT "sok" NEXT "R\1" NEXT "H\0\5x y"),
	SEED("\x09\x01\x00"
	     "H\0\4C/app" NEXT "hStatus: 101\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	     "\r\nhello" NEXT "B\0\0you" NEXT "sthere" NEXT "B\0\1" NEXT "x"),
	SEED("\x02\x02\x00"
	     "H\0\5G/app" NEXT "H\1\5G/a" NEXT "hStatus: 200\r\nX-Sendfile: /usr/b\r\n\r\n" NEXT
	     "x"),
	SEED("\x00\x00\x00"
	     "H\0\5G/app" NEXT "sStatus: 103\r\nLink: a\r\n\r\n" NEXT
	     "aStatus: 200\r\n\r\nbody" NEXT "x"),
	/* the end, from each side */
	SEED("\x00\x00\x00"
	     "H\0\5G/app" NEXT "D" NEXT "H\1\5G/a" NEXT "P\1" NEXT "aStatus: 200\r\n\r\nx"),
	SEED("\x00\x00\x00"
	     "H\0\4P/app" NEXT "G" NEXT "B\0\1x" NEXT "aStatus: 200\r\n\r\nx"),
	SEED("\x00\x00\x00"
	     "H\0\5G/app" NEXT "H\1\5G/app" NEXT "k\0"),
	SEED("\x00\x00\x08"
	     "H\0\5G/app" NEXT "H\1\4P/app" NEXT "w\x7f" NEXT "w\x7f"),
	/* what is wrong */
	SEED("\x00\x00\x00"
	     "H\0\0G/a" NEXT "V\x09\4\0\x82"),
	SEED("\x00\x00\x00"
	     "H\0\5G/a" NEXT "B\0\0x" NEXT "H\1\5connection x" NEXT "V\0\0\xffx" NEXT
	     "V\2\0\0abcde" NEXT "V\x99\0\0abc"),
	SEED("\x00\x00\x00"
	     "cPRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense without frames"),
	SEED("\x00\x00\x00"
	     "cPRI * HTTP/2.0\r\n" NEXT "c\r\nSM\r\n\r\n" NEXT "S\3\2" NEXT "H\0\5G/a"),
	{ NULL, 0 },
};

#endif
