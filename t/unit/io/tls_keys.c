/* t/unit/io/tls_keys.c -- private keys that another thread keeps, as the process does: each kind of
 * key in each version of TLS, what may be asked, and what is taken out of files. */
#include <pthread.h>
#include <sys/socket.h>
#include "io/tls/keys.h"
#include "t/unit/io/tls_test.h"

static struct tls_keys *keys;
/* Atomic: threads of the keeper read it. */
static enum { ANSWERS, HAS_ENDED, SAYS_TOO_MUCH } keeper_mode;
static int nasked, nreached;

/* ---- the keeper */

static void *
keeper(void *arg)
{
	int fd = GPOINTER_TO_INT(arg);
	unsigned char q[sizeof(struct tls_key_question)], answer[TLS_KEY_ANSWER] = { 0 };
	ssize_t n;

	while ((n = recv(fd, q, sizeof(q), 0)) > 0 &&
	       __atomic_load_n(&keeper_mode, __ATOMIC_RELAXED) != HAS_ENDED) {
		__atomic_add_fetch(&nasked, 1, __ATOMIC_RELAXED);
		n = (ssize_t)tls_keys_answer(keys, q, (size_t)n, answer);
		if (__atomic_load_n(&keeper_mode, __ATOMIC_RELAXED) == SAYS_TOO_MUCH)
			n++;
		send(fd, answer, (size_t)n, MSG_NOSIGNAL);
	}
	close(fd);
	return (NULL);
}

static int
reach(void *arg)
{
	pthread_t thread;
	int pair[2];

	__atomic_add_fetch(&nreached, 1, __ATOMIC_RELAXED);
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
	g_assert_cmpint(pthread_create(&thread, NULL, keeper, GINT_TO_POINTER(pair[1])), ==, 0);
	pthread_detach(thread);
	return (pair[0]);
}

static int
add(void *arg, const void *told, size_t n)
{
	return (tls_keys_add(keys, told, n));
}

static enum tls_key_use use;

static struct buf
hidden(const char *pem)
{
	struct buf out;

	buf_init(&out, 0);
	g_assert_cmpint(tls_keys_hide(text_of(pem), use, &out, add, NULL), ==, 0);
	return (out);
}

static void
keys_up(void)
{
	keys = tls_keys_new();
	__atomic_store_n(&keeper_mode, ANSWERS, __ATOMIC_RELAXED);
	use = TLS_KEY_SIGNS;
	nasked = nreached = 0;
	tls_keys_reach(reach, NULL);
	loop_up(file_backends[0], 1, 8);
}

static void
keys_down(void)
{
	tls_secure_free(secure);
	secure = NULL;
	loop_down();
	tls_keys_free(keys);
}

#define KEYS_TEST(path) TEST_IN(path, keys_up(), keys_down())

/* The server's certificate, whose key the keeper has. */
static void
keep(EVP_PKEY *key, const struct tls_command *commands, size_t n)
{
	struct tls_fault fault;
	struct pem pem;
	struct buf kept;

	g_assert_nonnull(key);
	pem_make_of(&pem, key, 1);
	kept = hidden(pem.key);
	g_assert_null(memmem(kept.p, kept.n, "PRIVATE", 7));
	tls_secure_free(secure);
	secure = secure_new(of(pem.chain), buf_as_text(&kept), commands, n, &fault);
	if (secure == NULL)
		g_error("%s", fault.why);
	buf_free(&kept);
}

static EVP_PKEY *
rsa_pss(void)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", NULL);
	EVP_PKEY *key = NULL;

	g_assert_cmpint(EVP_PKEY_keygen_init(c), >, 0);
	g_assert_cmpint(EVP_PKEY_CTX_set_rsa_keygen_bits(c, 2048), >, 0);
	g_assert_cmpint(EVP_PKEY_generate(c, &key), >, 0);
	EVP_PKEY_CTX_free(c);
	return (key);
}

/* ---- handshakes */

static void
shake_with(int version, const char *cipher)
{
	struct io_sock s;
	struct peer p;
	int fd, before = nasked;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, version);
	if (cipher != NULL)
		g_assert_cmpint(SSL_set_cipher_list(p.ssl, cipher), ==, 1);
	g_assert_true(shake_hands(&s, &p));
	g_assert_cmpint(SSL_version(p.ssl), ==, version);
	g_assert_cmpint(nasked, ==, before + 1);
	peer_free(&p);
	sock_close(&s);
}

static void
shake_both(EVP_PKEY *key)
{
	keep(key, NULL, 0);
	shake_with(TLS1_3_VERSION, NULL);
	shake_with(TLS1_2_VERSION, NULL);
}

KEYS_TEST("/tls/keys/ecdsa")
{
	shake_both(EVP_EC_gen("P-256"));
	shake_both(EVP_EC_gen("P-384"));
}

KEYS_TEST("/tls/keys/rsa")
{
	shake_both(EVP_RSA_gen(2048));
	shake_both(rsa_pss());
}

KEYS_TEST("/tls/keys/eddsa")
{
	shake_both(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
	shake_both(EVP_PKEY_Q_keygen(NULL, NULL, "ED448"));
}

/* Decryption of TLS 1.2 without ECDHE, if the configuration has ciphers of its own. */
static const struct tls_command all_ciphers[] = { { "CipherString", "ALL" } };

KEYS_TEST("/tls/keys/a secret that the client encrypts")
{
	use = TLS_KEY_SIGNS_AND_DECRYPTS;
	keep(EVP_RSA_gen(2048), all_ciphers, 1);
	shake_with(TLS1_2_VERSION, "AES256-GCM-SHA384");
}

/* False: there was none; the server says why. */
static bool
fails(int version, const char *cipher, const char *why)
{
	struct io_sock s;
	struct peer p;
	int fd;
	bool up;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, version);
	if (cipher != NULL)
		g_assert_cmpint(SSL_set_cipher_list(p.ssl, cipher), ==, 1);
	up = shake_hands(&s, &p);
	if (!up)
		g_assert_cmpstr(shake.op.handshake.why, ==, why);
	peer_free(&p);
	sock_close(&s);
	return (!up && shake.res < 0);
}

KEYS_TEST("/tls/keys/no decryption where nobody needs it")
{
	keep(EVP_RSA_gen(2048), all_ciphers, 1);
	g_assert_true(fails(TLS1_2_VERSION, "AES256-GCM-SHA384",
	    "the process with the private keys does not decrypt with this one"));
	shake_with(TLS1_2_VERSION, "ECDHE-RSA-AES128-GCM-SHA256");
}

/* ---- failures */

KEYS_TEST("/tls/keys/a keeper that has ended is reached anew")
{
	keep(EVP_EC_gen("P-256"), NULL, 0);
	shake_with(TLS1_3_VERSION, NULL);
	__atomic_store_n(&keeper_mode, HAS_ENDED, __ATOMIC_RELAXED); /* after the next question */
	g_assert_true(
	    fails(TLS1_3_VERSION, NULL, "the process with the private keys cannot be reached"));
	__atomic_store_n(&keeper_mode, ANSWERS, __ATOMIC_RELAXED);
	shake_with(TLS1_3_VERSION, NULL);
	g_assert_cmpint(nreached, >=, 3);
}

KEYS_TEST("/tls/keys/an answer that is too long")
{
	keep(EVP_EC_gen("P-256"), NULL, 0);
	__atomic_store_n(&keeper_mode, SAYS_TOO_MUCH, __ATOMIC_RELAXED);
	g_assert_true(
	    fails(TLS1_3_VERSION, NULL, "the process with the private keys cannot be reached"));
}

KEYS_TEST("/tls/keys/a key that nobody has")
{
	keep(EVP_EC_gen("P-256"), NULL, 0);
	tls_keys_free(keys);
	keys = tls_keys_new();
	g_assert_true(fails(TLS1_3_VERSION, NULL,
	    "the process with the private keys does not have this one"));
}

static int
no_way(void *arg)
{
	return (-EAGAIN);
}

KEYS_TEST("/tls/keys/no way to a keeper")
{
	keep(EVP_EC_gen("P-256"), NULL, 0);
	tls_keys_reach(no_way, NULL);
	g_assert_true(
	    fails(TLS1_3_VERSION, NULL, "the process with the private keys cannot be reached"));
}

/* ---- questions */

#define HEAD offsetof(struct tls_key_question, bytes)

static int
asked(const struct tls_key_question *q, size_t n)
{
	unsigned char out[TLS_KEY_ANSWER];
	size_t done = tls_keys_answer(keys, q, n, out);
	int32_t res;

	memcpy(&res, out, sizeof(res));
	g_assert_cmpuint(done, ==, sizeof(res) + (res > 0 ? (size_t)res : 0));
	return (res);
}

static struct tls_key_question
question(EVP_PKEY *key, uint8_t op, uint8_t hash, uint16_t n)
{
	struct tls_key_question q = { .op = op, .hash = hash, .n = n };
	unsigned char *der = NULL;
	int k = i2d_PUBKEY(key, &der);

	EVP_Digest(der, (size_t)k, q.key, NULL, EVP_sha256(), NULL);
	OPENSSL_free(der);
	return (q);
}

#define SHA256 4u

/* Takes the key. */
static void
told(EVP_PKEY *key)
{
	struct pem pem;
	struct buf out;

	EVP_PKEY_up_ref(key);
	pem_make_of(&pem, key, 1);
	out = hidden(pem.key);
	buf_free(&out);
}

/* Ed25519: any 32 bytes are a key. */
static void
told_new(void)
{
	static uint32_t nr;
	unsigned char bytes[1 + 16 + 32] = { TLS_KEY_SIGNS, 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30,
		0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 };

	nr++;
	memcpy(bytes + 17, &nr, sizeof(nr));
	g_assert_cmpint(tls_keys_add(keys, bytes, sizeof(bytes)), ==, 0);
}

TEST_IN("/tls/keys/what may be asked", keys_up(), keys_down())
{
	EVP_PKEY *ec = EVP_EC_gen("P-256"), *rsa = EVP_RSA_gen(2048);
	struct tls_key_question q;
	unsigned i;

	told(ec);
	told(rsa);
	q = question(ec, TLS_KEY_ECDSA, SHA256, 32);
	g_assert_cmpint(asked(&q, HEAD + 32), >, 60);
	for (i = 0; i < HEAD + 40; i++) /* any other length */
		if (i != HEAD + 32)
			g_assert_cmpint(asked(&q, i), ==, -EINVAL);
	for (i = 0; i < 256; i++) { /* any other operation */
		q.op = (uint8_t)i;
		if (i != TLS_KEY_ECDSA)
			g_assert_cmpint(asked(&q, HEAD + 32), <, 0);
	}
	q = question(ec, TLS_KEY_ECDSA, 0, 32); /* a digest of no kind */
	g_assert_cmpint(asked(&q, HEAD + 32), ==, -EINVAL);
	q = question(ec, TLS_KEY_ECDSA, 255, 32);
	g_assert_cmpint(asked(&q, HEAD + 32), ==, -EINVAL);
	q = question(ec, TLS_KEY_ECDSA, SHA256, 31); /* a digest of another length */
	g_assert_cmpint(asked(&q, HEAD + 31), ==, -EINVAL);
	q = question(rsa, TLS_KEY_ECDSA, SHA256, 32); /* a key of another kind */
	g_assert_cmpint(asked(&q, HEAD + 32), ==, -EPERM);
	q = question(ec, TLS_KEY_PSS, SHA256, 32);
	g_assert_cmpint(asked(&q, HEAD + 32), ==, -EPERM);
	q = question(rsa, TLS_KEY_DECRYPT, 0, 256);
	g_assert_cmpint(asked(&q, HEAD + 256), ==, -EPERM);
	q.key[0] ^= 1;
	g_assert_cmpint(asked(&q, HEAD + 256), ==, -ENOENT);
	EVP_PKEY_free(ec);
	EVP_PKEY_free(rsa);
}

/* What does not fit is not told from what does: 48 random bytes. */
KEYS_TEST("/tls/keys/a decryption that fails is not told")
{
	EVP_PKEY *rsa = EVP_RSA_gen(2048);
	struct tls_key_question q;

	use = TLS_KEY_SIGNS_AND_DECRYPTS;
	told(rsa);
	q = question(rsa, TLS_KEY_DECRYPT, 0, 256);
	memset(q.bytes, 7, 256);
	q.asked = q.accepted = TLS1_2_VERSION;
	g_assert_cmpint(asked(&q, HEAD + 256), ==, 48);
	EVP_PKEY_free(rsa);
}

KEYS_TEST("/tls/keys/the ones that came first are forgotten")
{
	EVP_PKEY *first = EVP_EC_gen("P-256"), *again = EVP_EC_gen("P-256");
	struct tls_key_question q = question(first, TLS_KEY_ECDSA, SHA256, 32);
	unsigned i;

	told(again);
	told(first);
	told(again); /* counts as new */
	g_assert_cmpuint(tls_keys_count(keys), ==, 2);
	for (i = 0; i < TLS_KEYS_MAX - 2; i++)
		told_new();
	g_assert_cmpint(asked(&q, HEAD + 32), >, 0);
	told_new();
	g_assert_cmpuint(tls_keys_count(keys), ==, TLS_KEYS_MAX);
	g_assert_cmpint(asked(&q, HEAD + 32), ==, -ENOENT);
	q = question(again, TLS_KEY_ECDSA, SHA256, 32);
	g_assert_cmpint(asked(&q, HEAD + 32), >, 0);
	EVP_PKEY_free(first);
	EVP_PKEY_free(again);
}

TEST_IN("/tls/keys/bytes without a key", keys_up(), keys_down())
{
	unsigned char bytes[TLS_KEY_TOLD + 1] = { TLS_KEY_SIGNS };

	g_assert_cmpint(tls_keys_add(keys, bytes, 0), ==, -EINVAL);
	g_assert_cmpint(tls_keys_add(keys, bytes, 1), ==, -EINVAL);
	g_assert_cmpint(tls_keys_add(keys, bytes, 100), ==, -EINVAL);
	g_assert_cmpint(tls_keys_add(keys, bytes, sizeof(bytes)), ==, -EINVAL);
	g_assert_cmpuint(tls_keys_count(keys), ==, 0);
}

/* ---- files */

/* Whatever is between, and at the end. */
KEYS_TEST("/tls/keys/what a file has beside its key stays")
{
	struct pem pem;
	struct buf out;
	char *file, *cut;
	size_t n;

	pem_make_of(&pem, EVP_EC_gen("P-256"), 1);
	file = g_strdup_printf("of x\n%s-- and\n%s%s the end", pem.key, pem.chain, pem.key);
	out = hidden(file);
	g_assert_true(g_str_has_prefix(out.p, "of x\n-----BEGIN KEPT KEY-----\n"));
	g_assert_nonnull(memmem(out.p, out.n, "-- and\n-----BEGIN CERT", 22));
	g_assert_nonnull(memmem(out.p, out.n, pem.chain, strlen(pem.chain)));
	g_assert_true(memcmp(out.p + out.n - 8, " the end", 8) == 0);
	g_assert_cmpuint(tls_keys_count(keys), ==, 1);
	buf_free(&out);
	g_free(file);
	for (n = 0; n < strlen(pem.key); n++) { /* a file that is half written */
		cut = g_strndup(pem.key, n);
		out = hidden(cut);
		g_assert_null(
		    n > 100 ? memmem(out.p != NULL ? out.p : "", out.n, pem.key + 40, 40) : NULL);
		buf_free(&out);
		g_free(cut);
	}
}

/* What is left out must not make a key of what is around it. */
KEYS_TEST("/tls/keys/two halves of a line")
{
	static const char cut[] = "-----BEGIN PRIV", none[] = "-----BEGIN PRIVATE KEY-----\n"
							      "-----END PRIVATE KEY-----";
	struct pem pem;
	struct buf out;
	char *file;

	pem_make_of(&pem, EVP_EC_gen("P-256"), 1);
	g_assert_true(g_str_has_prefix(pem.key, cut));
	file = g_strdup_printf("%s%s%s", cut, none, pem.key + strlen(cut));
	out = hidden(file);
	g_assert_null(memmem(out.p, out.n, "BEGIN PRIVATE KEY", 17));
	buf_free(&out);
	g_free(file);
}

static int
full(void *arg, const void *bytes, size_t n)
{
	return (-ETIMEDOUT);
}

KEYS_TEST("/tls/keys/a key that nobody takes")
{
	struct pem pem;
	struct buf out;

	pem_make_of(&pem, EVP_EC_gen("P-256"), 1);
	buf_init(&out, 0);
	g_assert_cmpint(tls_keys_hide(of(pem.key), TLS_KEY_SIGNS, &out, full, NULL), ==,
	    -ETIMEDOUT);
	buf_free(&out);
}

KEYS_TEST("/tls/keys/a key with a passphrase is not read")
{
	static const char *const locked[] = {
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
		"DEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n"
		"AAAAAAAAAAAAAAAAAAAAAA==\n-----END RSA PRIVATE KEY-----\n",
	};
	struct tls_fault fault;
	struct pem pem;
	struct buf out = hidden(locked[0]);

	pem_make_of(&pem, EVP_EC_gen("P-256"), 1);
	g_assert_null(secure_new(of(pem.chain), buf_as_text(&out), NULL, 0, &fault));
	g_assert_true(g_str_has_prefix(fault.why, "the key has a passphrase"));
	buf_free(&out);
}
