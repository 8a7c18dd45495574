/* t/fuzz/fuzz_tls_subject.c -- any bytes as the subject of a client's certificate: names of
 * variables stay plain, values have no control byte and a bound. */
#include <stdlib.h>
#include "base/must.h"
#include "io/tls/facts.h"
#include "io/tls/subject.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* CN=alice as UTF8String */
	SEED("0\x10\x31\x0e\x30\x0c\x06\x03\x55\x04\x03\x0c\x05"
	     "alice"),
	/* two OU; the second has a NUL */
	SEED("0\x1a\x31\x0b\x30\x09\x06\x03\x55\x04\x0b\x0c\x02"
	     "ab"
	     "\x31\x0b\x30\x09\x06\x03\x55\x04\x0b\x0c\x02"
	     "a\0"),
	/* CN as BMPString, and as an IA5String with a line */
	SEED("0\x1c\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x1e\x04\0a\0b\x31\x0b\x30\x09\x06\x03\x55"
	     "\x04"
	     "\x03\x16\x02\n\""),
	/* an unknown object; an empty name */
	SEED("0\x0d\x31\x0b\x30\x09\x06\x03\x2a\x03\x04\x0c\x02xy"),
	SEED("0\0"),
	{ NULL, 0 },
};

static void
check(const struct tls_fact *f)
{
	must(text_starts(f->name, TEXT("SSL_CLIENT_S_DN")) && text_is_plain(f->name, '_'));
	must(f->name.n <= 64 && !text_has_control(f->value));
	must(f->value.n <= (f->name.n == 15 ? TLS_SUBJECT_MAX : TLS_SUBJECT_VALUE));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const unsigned char *at = p;
	X509_NAME *name = d2i_X509_NAME(NULL, &at, (long)n);
	struct tls_draft d;
	struct tls_facts *f;
	size_t i, j;

	if (name == NULL)
		return (0);
	tls_draft_init(&d);
	tls_subject_names(&d, name);
	f = tls_facts_new(&d, 0, 0);
	must(f != NULL && f->n <= TLS_SUBJECT_PARTS + 1);
	for (i = 0; i < f->n; i++) {
		check(&f->v[i]);
		for (j = 0; j < i; j++)
			must(!text_eq(f->v[i].name, f->v[j].name));
	}
	free(f);
	X509_NAME_free(name);
	return (0);
}
