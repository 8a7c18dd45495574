/* t/unit/io/tls_test.h -- a certificate made here, a client of OpenSSL at the other end of a pair
 * of sockets, and a loop that goes round while they talk. */
#ifndef TLS_TEST_H
#define TLS_TEST_H

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include "io/tls/flight.h"
#include "io/tls/tls.h"
#include "io/transport.h"
#include "t/unit/io/io_test.h"

#define LATE_MS 60000 /* of ops that end before, even under TSan on a busy machine */

static struct io_secure *secure;

struct pem {
	char chain[4096], key[4096];
};

static void
pem_text(BIO *b, char *dst)
{
	int n = BIO_read(b, dst, 4095);

	g_assert_cmpint(n, >, 0);
	dst[n] = '\0';
	BIO_free(b);
}

/* Signed by itself, for "x".  Takes the key. */
static void
pem_make_of(struct pem *pem, EVP_PKEY *key, long serial)
{
	BIO *chain = BIO_new(BIO_s_mem()), *keys = BIO_new(BIO_s_mem());
	X509 *x = X509_new();

	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
	    (const unsigned char *)"x", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	g_assert_cmpint(X509_sign(x, key,
			    EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ||
				    EVP_PKEY_get_base_id(key) == EVP_PKEY_ED448
				? NULL
				: EVP_sha256()),
	    >, 0);
	g_assert_cmpint(PEM_write_bio_X509(chain, x), ==, 1);
	g_assert_cmpint(PEM_write_bio_PrivateKey(keys, key, NULL, NULL, 0, NULL, NULL), ==, 1);
	pem_text(chain, pem->chain);
	pem_text(keys, pem->key);
	X509_free(x);
	EVP_PKEY_free(key);
}

static void
pem_make(struct pem *pem)
{
	pem_make_of(pem, EVP_EC_gen("P-256"), 1);
}

static struct text
of(const char *s)
{
	return ((struct text){ s, strlen(s) });
}

static struct io_secure *
secure_new(struct text chain, struct text key, const struct tls_command *commands, size_t n,
    struct tls_fault *fault)
{
	struct tls_settings set = { .chain = chain,
		.key = key,
		.commands = commands,
		.ncommands = n };

	return (tls_secure_new(&set, fault));
}

static void G_GNUC_UNUSED
tls_up(void)
{
	struct tls_fault fault;
	struct pem pem;

	loop_up(file_backends[0], 1, 8);
	pem_make(&pem);
	secure = secure_new(of(pem.chain), of(pem.key), NULL, 0, &fault);
	g_assert_nonnull(secure);
}

static void G_GNUC_UNUSED
tls_down(void)
{
	tls_secure_free(secure);
	loop_down();
}

#define TLS_TEST(path) TEST_IN(path, tls_up(), tls_down())

/* A round of the loop, without a wait. */
static void
go_round(void)
{
	io_wake(io);
	io_run(io);
}

/* ---- the client */

struct peer {
	int fd;
	SSL_CTX *ctx;
	SSL *ssl;
};

static const char *peer_name; /* of the host that it asks for; NULL: none */

static void
peer_init(struct peer *p, int fd, int version)
{
	p->fd = fd;
	p->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_max_proto_version(p->ctx, version);
	SSL_CTX_set_security_level(p->ctx, 0);
	p->ssl = SSL_new(p->ctx);
	if (peer_name != NULL)
		SSL_set_tlsext_host_name(p->ssl, peer_name);
	g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
	SSL_set_fd(p->ssl, fd);
	SSL_set_connect_state(p->ssl);
}

static void G_GNUC_UNUSED
peer_free(struct peer *p)
{
	SSL_free(p->ssl);
	SSL_CTX_free(p->ctx);
	if (p->fd >= 0)
		close(p->fd);
}

/* ---- both ends */

static struct waiter shake;
static struct tls_verifier *shake_verifier; /* NULL: clients need no certificate */

static void
shake_begin(struct io_sock *s, uint32_t deadline_ms)
{
	wait_init(&shake, IO_HANDSHAKE, s);
	shake.op.handshake.with = secure;
	shake.op.handshake.verifier = shake_verifier;
	shake.op.deadline_ms = deadline_ms;
	wait_submit(&shake);
}

/* True: both ends are up. */
static bool
shake_hands(struct io_sock *s, struct peer *p)
{
	bool up = false;

	shake_begin(s, LATE_MS);
	while (!shake.done || (shake.res == 0 && !up)) {
		up = up || SSL_do_handshake(p->ssl) == 1;
		go_round();
	}
	return (up);
}

/* A pair that has shaken hands. */
static void G_GNUC_UNUSED
tls_pair(struct io_sock *s, struct peer *p, int send_buffer, int version)
{
	int fd;

	unix_pair(s, &fd, send_buffer);
	peer_init(p, fd, version);
	g_assert_true(shake_hands(s, p));
	g_assert_cmpint(shake.res, ==, 0);
}

#endif
