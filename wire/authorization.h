/* wire/authorization.h -- the request header Authorization: Basic (RFC 7617), Digest (RFC 7616).
 *
 * Pure.  The texts of the result are slices of its store, with a NUL after them, and have no
 * control characters.  A value that can be read in two ways is refused: an unknown escape, a
 * repeated parameter, a coding that is not canonical.
 */
#ifndef WIRE_AUTHORIZATION_H
#define WIRE_AUTHORIZATION_H

#include "base/text.h"

#define AUTHORIZATION_MAX 4096u /* bytes of a value; a longer one is bad */
#define USER_MAX          256u  /* bytes of a user name */
#define PASSWORD_MAX      512u  /* of a password */

enum authorization_kind {
	AUTHORIZATION_OTHER, /* another scheme, or nothing after it */
	AUTHORIZATION_BAD,
	AUTHORIZATION_BASIC,
	AUTHORIZATION_DIGEST,
};

struct authorization {
	struct text user;
	struct text password; /* Basic */
	/* Digest.  .p NULL: not sent; realm, nonce, uri and response are always there. */
	struct text realm, nonce, uri, response, algorithm, cnonce, opaque, qop, nc;
	size_t used;
	char store[AUTHORIZATION_MAX + 16];
};

enum authorization_kind authorization_read(struct text value, struct authorization *);

/* Strict: no blanks, padding required, no bits after the end.  Returns the bytes, or -1; dst has
 * room for 3 bytes for each 4 of t. */
int base64_decode(struct text t, char *dst);

#endif
