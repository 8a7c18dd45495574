/* io/tls/facts.c -- see facts.h; without OpenSSL */
#include "io/tls/facts.h"

#include <stdlib.h>
#include "io/transport.h"

const struct tls_facts *
io_sock_facts(const struct io_sock *s)
{
	return (s->transport != NULL ? s->transport->facts : NULL);
}

struct text
tls_fact(const struct tls_facts *f, struct text name)
{
	size_t i;

	for (i = 0; f != NULL && i < f->n; i++)
		if (text_eq(f->v[i].name, name))
			return (f->v[i].value);
	return (TEXT_NONE);
}

/* ---- a list that grows */

void
tls_draft_init(struct tls_draft *d)
{
	d->n = 0;
	buf_init(&d->bytes, 0);
}

void
tls_draft_add(struct tls_draft *d, struct text name, struct text value)
{
	if (d->n == TLS_FACTS_MAX) {
		d->bytes.failed = true;
		return;
	}
	d->v[d->n].name = name.n;
	d->v[d->n++].value = value.n;
	buf_text(&d->bytes, name);
	buf_text(&d->bytes, value);
}

bool
tls_draft_has(const struct tls_draft *d, struct text name)
{
	const char *p = d->bytes.p;
	size_t i;

	for (i = 0; i < d->n && !d->bytes.failed; i++) {
		if (text_eq((struct text){ p, d->v[i].name }, name))
			return (true);
		p += d->v[i].name + d->v[i].value;
	}
	return (false);
}

struct tls_facts *
tls_facts_new(struct tls_draft *d, size_t own, size_t told)
{
	struct tls_facts *f = NULL;
	size_t head = sizeof(*f) + d->n * sizeof(f->v[0]), i;
	char *p;

	if (!d->bytes.failed)
		f = malloc(head + d->bytes.n);
	if (f != NULL) {
		p = (char *)f + head;
		if (d->bytes.n != 0)
			memcpy(p, d->bytes.p, d->bytes.n);
		f->n = d->n;
		f->told = told;
		f->own = own;
		f->verifier = NULL;
		for (i = 0; i < d->n; i++) {
			f->v[i].name = (struct text){ p, d->v[i].name };
			p += d->v[i].name;
			f->v[i].value = (struct text){ p, d->v[i].value };
			p += d->v[i].value;
		}
	}
	buf_free(&d->bytes);
	return (f);
}
