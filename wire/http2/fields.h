/* wire/http2/fields.h -- fields that HTTP/2 does not have. */
#ifndef WIRE_HTTP2_FIELDS_H
#define WIRE_HTTP2_FIELDS_H

#include "base/text.h"

/* It is of one connection of HTTP/1: RFC 9113 8.2.2.  The name is in lower case. */
static inline bool
http2_is_of_connection(struct text name)
{
	switch (name.n) {
	case 7: return (text_eq(name, TEXT("upgrade")));
	case 10: return (text_eq(name, TEXT("connection")) || text_eq(name, TEXT("keep-alive")));
	case 16: return (text_eq(name, TEXT("proxy-connection")));
	case 17: return (text_eq(name, TEXT("transfer-encoding")));
	default: return (false);
	}
}

#endif
