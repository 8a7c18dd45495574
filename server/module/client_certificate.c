/* server/module/client_certificate.c -- ssl.verifyclient.*: a request comes on a connection whose
 * client was verified as its host asks for, and the certificate may name the user.
 *
 *   handshake for a.example (SNI)   --> its verifier, or none
 *   request with "Host: b.example"  --> 421, if b.example has another verifier
 *
 * Otherwise a client without a certificate could name the host that asks for none in its
 * handshake, and the other one in its request.  lighttpd answers that with SSL_CLIENT_VERIFY=NONE.
 */
#include "base/arena.h"
#include "io/tls/facts.h"
#include "io/tls/verifier.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/module/module.h"
#include "server/request/client.h"
#include "server/request/request.h"
#include "server/worker/base.h"

static bool
is_used(const struct conf *c)
{
	return (c->ssl_verify);
}

/* Names of settings ignore case, as in lighttpd: SSL_CLIENT_S_DN_emailAddress. */
static struct text
user_of(const struct tls_facts *f, const char *variable)
{
	size_t i;

	for (i = 0; variable != NULL && i < f->told; i++)
		if (text_ieq(f->v[i].name, text_of(variable)))
			return (f->v[i].value);
	return (TEXT_NONE);
}

/* False: no memory. */
static bool
take_user(struct request *r, struct text user)
{
	r->user = arena_text(&r->arena, user);
	return (
	    r->user.p != NULL &&
	    request_variable(r, TEXT("REMOTE_USER"), r->user, VARIABLE_REPLACE) &&
	    request_variable(r, TEXT("AUTH_TYPE"), TEXT("SSL_CLIENT_VERIFY"), VARIABLE_REPLACE));
}

static const struct handler *
route_client_certificate(struct request *r)
{
	const struct tls_facts *f = conn_facts(r);
	struct text user;

	if (f == NULL)
		return (NULL);
	if (!tls_verified_by(f, resources_verifier(r->worker->conf.resources, r->conf))) {
		conn_close_after(r); /* the next one has a handshake of its own */
		return (module_refuses(r, 421, TEXT_NONE));
	}
	user = user_of(f, r->conf->ssl_verify_user);
	return (user.n == 0 || take_user(r, user) ? NULL : module_refuses(r, 500, TEXT_NONE));
}

const struct module module_client_certificate = {
	.name = "openssl",
	.is_used = is_used,
	.route = route_client_certificate,
};
