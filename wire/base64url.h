/* wire/base64url.h -- base64 with "-" and "_" and without padding (RFC 4648, 5).  Pure. */
#ifndef WIRE_BASE64URL_H
#define WIRE_BASE64URL_H

#include "base/text.h"

#define BASE64URL_ROOM(n) (((n) + 2) / 3 * 4)

/* dst has BASE64URL_ROOM(t.n) bytes.  Returns the length. */
size_t base64url_encode(struct text t, char *dst);
/* dst has t.n bytes.  Padding at the end is allowed.  Returns the length; 0 if t is not base64. */
size_t base64url_decode(struct text t, char *dst);

#endif
