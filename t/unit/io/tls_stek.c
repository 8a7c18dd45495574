/* t/unit/io/tls_stek.c -- keys of session tickets from files: what is read, and what is used. */
#include "base/clock.h"
#include "io/tls/stek.h"
#include "io/tls/tickets.h"
#include "t/unit/io/tls_test.h"

#define FROM (-60)
#define END  3600

/* A file whose key has this letter as its name; times from now on. */
static const char *
put(char file[TLS_STEK_BYTES], char letter, int from_s, int end_s)
{
	const uint32_t now_s = (uint32_t)(clock_wall_ns() / NS_PER_S);
	const uint32_t head[] = { 0, now_s + (uint32_t)from_s, now_s + (uint32_t)end_s };

	memcpy(file, head, sizeof(head));
	memset(file + 12, letter, 16);
	memset(file + 28, letter + 1, 32);
	memset(file + 60, letter + 2, 32);
	return (file);
}

static const char *
fault(const char *file, size_t n)
{
	const char *why;

	g_assert_null(tls_stek_new((struct text){ file, n }, &why));
	return (why);
}

static void
use(char letter, int from_s, int end_s)
{
	char file[TLS_STEK_BYTES];
	const char *why;
	struct tls_stek *s =
	    tls_stek_new((struct text){ put(file, letter, from_s, end_s), TLS_STEK_BYTES }, &why);

	g_assert_nonnull(s);
	tls_stek_use(s);
	tls_stek_free(s);
}

static bool
opens(char letter, bool *old)
{
	unsigned char name[TLS_TICKET_NAME];
	struct tls_ticket_key k;

	memset(name, letter, sizeof(name));
	return (tls_ticket_find(name, &k, old));
}

/* The letter of the key for new tickets; 0: one that opens nothing. */
static char
newest(void)
{
	struct tls_ticket_key k;
	bool old;

	g_assert_true(tls_ticket_newest(clock_mono_ns(), &k));
	if (!tls_ticket_find(k.name, &k, &old))
		return (0);
	g_assert_false(old);
	return ((char)k.name[0]);
}

TEST("/tls_stek/files that have no key")
{
	char file[TLS_STEK_BYTES + 1] = { 0 };
	size_t n;

	for (n = 0; n < TLS_STEK_BYTES; n++)
		g_assert_nonnull(strstr(fault(put(file, 'a', FROM, END), n), "92 bytes"));
	g_assert_nonnull(strstr(fault(file, TLS_STEK_BYTES + 1), "92 bytes"));
	g_assert_nonnull(strstr(fault(NULL, 0), "92 bytes"));
	for (n = 0; n < 4; n++) {
		put(file, 'a', FROM, END);
		file[n] = 1;
		g_assert_nonnull(strstr(fault(file, TLS_STEK_BYTES), "four bytes of zero"));
	}
	g_assert_nonnull(strstr(fault(put(file, 'a', 60, 59), TLS_STEK_BYTES), "before it begins"));
	g_assert_nonnull(strstr(fault(put(file, 'a', FROM, -1), TLS_STEK_BYTES), "has ended"));
}

TEST("/tls_stek/the order of its parts is that of lighttpd")
{
	unsigned char name[TLS_TICKET_NAME], hmac[32], aes[32];
	struct tls_ticket_key k;
	bool old;

	memset(name, 'a', sizeof(name));
	memset(hmac, 'b', sizeof(hmac));
	memset(aes, 'c', sizeof(aes));
	use('a', FROM, END);
	g_assert_true(tls_ticket_find(name, &k, &old));
	g_assert_cmpmem(k.hmac, sizeof(k.hmac), hmac, sizeof(hmac));
	g_assert_cmpmem(k.aes, sizeof(k.aes), aes, sizeof(aes));
	tls_stek_stop();
}

TEST("/tls_stek/three keys, of which the newest that has begun is used")
{
	bool old;

	use('a', FROM, END);
	g_assert_cmpint(newest(), ==, 'a');
	use('e', FROM, END);
	g_assert_cmpint(newest(), ==, 'e');
	g_assert_true(opens('a', &old) && old);
	use('i', 60, END);
	g_assert_cmpint(newest(), ==, 'e');
	g_assert_true(opens('i', &old) && !old);
	g_assert_true(opens('e', &old) && !old);
	use('i', FROM, END); /* the same key again */
	g_assert_cmpint(newest(), ==, 'i');
	g_assert_true(opens('a', &old) && old);
	use('a', FROM, END); /* an older one is back */
	g_assert_cmpint(newest(), ==, 'a');
	g_assert_true(opens('i', &old) && old && opens('e', &old) && old);
	use('m', FROM, END);
	g_assert_false(opens('e', &old));
	tls_stek_use(NULL);
	g_assert_cmpint(newest(), ==, 'm');
	tls_stek_stop();
}

/* t/server/tls-stek.t waits for the end of a key. */
TEST("/tls_stek/none that has begun")
{
	struct tls_ticket_key k, l;
	bool old;

	tls_stek_use(NULL);
	g_assert_cmpint(newest(), ==, 0);
	g_assert_cmpuint(tls_stek_end_s(), ==, 0);
	use('a', 60, END);
	g_assert_cmpint(newest(), ==, 0);
	g_assert_true(tls_ticket_newest(clock_mono_ns(), &k));
	g_assert_true(tls_ticket_newest(clock_mono_ns(), &l));
	g_assert_cmpint(memcmp(&k, &l, sizeof(k)), !=, 0);
	g_assert_true(opens('a', &old) && !old);
	g_assert_cmpuint(tls_stek_end_s(), !=, 0);
	tls_stek_stop();
}

TEST("/tls_stek/keys of files and our own do not mix")
{
	struct tls_ticket_key own, k;
	char text[TLS_TICKETS_TEXT], ours[TLS_TICKETS_TEXT];
	bool old;

	g_assert_true(tls_ticket_newest(clock_mono_ns(), &own));
	g_assert_true(tls_tickets_save(ours));
	use('a', FROM, END);
	g_assert_false(tls_ticket_find(own.name, &k, &old));
	use('e', FROM, END);
	g_assert_true(tls_tickets_save(text));
	tls_stek_stop();
	g_assert_false(opens('a', &old));
	g_assert_cmpuint(tls_stek_end_s(), ==, 0);
	g_assert_true(tls_ticket_newest(clock_mono_ns(), &k));
	g_assert_true(tls_tickets_load(text, clock_mono_ns())); /* as the next process */
	g_assert_cmpint(newest(), ==, 'e');
	g_assert_true(opens('a', &old) && old);
	g_assert_cmpuint(tls_stek_end_s(), !=, 0);
	use('e', FROM, END);
	g_assert_true(opens('a', &old) && old);
	g_assert_true(tls_tickets_load(ours, clock_mono_ns()));
	g_assert_true(tls_ticket_find(own.name, &k, &old));
	use('e', FROM, END);
	g_assert_false(tls_ticket_find(own.name, &k, &old));
	tls_stek_stop();
}
