/* wire/codec/ajp13.h -- AJP 1.3: numbers and names that the request and the reply share.
 *
 *   to it     12 34 length payload        from it   'A' 'B' length payload
 *
 * Numbers are big-endian.  A string is a length of 2 bytes, its bytes and a NUL; the length FFFF
 * stands for no string.
 *
 * Pure.  Source: "AJP Protocol Reference" of Apache Tomcat Connectors.
 */
#ifndef WIRE_AJP13_H
#define WIRE_AJP13_H

#include "base/buf.h"
#include "wire/codec/message.h"

#define AJP13_PACKET_MAX 8192u                   /* with its head: what every container takes */
#define AJP13_HEAD       4u                      /* magic and length */
#define AJP13_DATA_MAX   (AJP13_PACKET_MAX - 6u) /* bytes of a body in a packet */
#define AJP13_CODED      0xA000u                 /* a header name as a number: A0 nn */

enum ajp13_type { /* first byte of a payload; body packets have none */
	AJP13_REQUEST = 2,
	AJP13_BODY_CHUNK = 3,
	AJP13_SEND_HEADERS = 4,
	AJP13_END_RESPONSE = 5,
	AJP13_GET_BODY_CHUNK = 6,
	AJP13_CPONG = 9,
	AJP13_CPING = 10
};

static inline void
ajp13_u16(struct buf *out, size_t n)
{
	buf_char(out, (char)(n >> 8));
	buf_char(out, (char)n);
}

/* The head of a packet of n bytes. */
static inline void
ajp13_head(struct buf *out, size_t n)
{
	buf_char(out, 0x12);
	buf_char(out, 0x34);
	ajp13_u16(out, n);
}

/* Appends a forward request.  0, -E2BIG (longer than a packet), or -EINVAL (a value with a control
 * character). */
int ajp13_put_request(const struct proxy_request *, struct buf *out);

#endif
