/* t/fuzz/fuzz_authorization.c -- any bytes as Authorization: what comes out has no control
 * characters, lies in the store, and ends with a NUL. */
#include "base/must.h"
#include "t/fuzz/fuzz.h"
#include "wire/authorization.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
	SEED("Digest username=\"a\\\"b\", realm=\"r\", nonce=\"n\", uri=\"/\", qop=auth, "
	     "nc=00000001, "
	     "cnonce=\"c\", algorithm=SHA-256, response=\"00\", opaque=\"\""),
	SEED("Bearer x"),
	{ NULL, 0 },
};

static void
check(const struct authorization *a, struct text t)
{
	if (t.p == NULL)
		return;
	must(t.p >= a->store && t.p + t.n < a->store + sizeof(a->store));
	must(t.p[t.n] == '\0' && !text_has_control(t));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct authorization a;
	enum authorization_kind kind = authorization_read((struct text){ (const char *)p, n }, &a);

	if (kind != AUTHORIZATION_BASIC && kind != AUTHORIZATION_DIGEST)
		return (0);
	must(a.user.n != 0 && a.user.n <= USER_MAX);
	check(&a, a.user);
	check(&a, a.password);
	check(&a, a.realm);
	check(&a, a.nonce);
	check(&a, a.uri);
	check(&a, a.response);
	check(&a, a.cnonce);
	return (0);
}
