/* io/tls/flight.c -- see flight.h */
#include "io/tls/flight.h"

#include <stdint.h>

enum { TYPE_FIRST = 20, TYPE_HANDSHAKE = 22, TYPE_LAST = 23, CLIENT_HELLO = 1, VERSION_3 = 3 };
#define MESSAGE_HEAD 4u /* type and length of a message of the handshake */

/* The bytes of a hello, which may lie in several records. */
struct hello {
	uint8_t head[MESSAGE_HEAD];
	size_t n; /* seen so far */
};

static void
add(struct hello *h, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n && h->n + i < MESSAGE_HEAD; i++)
		h->head[h->n + i] = p[i];
	h->n += n;
}

static enum tls_flight
judge_hello(const struct hello *h)
{
	size_t length = (size_t)h->head[1] << 16 | (size_t)h->head[2] << 8 | h->head[3];

	if (h->n != 0 && h->head[0] != CLIENT_HELLO)
		return (TLS_FLIGHT_NOT_TLS);
	if (h->n < MESSAGE_HEAD)
		return (TLS_FLIGHT_MORE);
	if (length > TLS_HELLO_MAX)
		return (TLS_FLIGHT_LONG);
	return (h->n >= MESSAGE_HEAD + length ? TLS_FLIGHT_READY : TLS_FLIGHT_MORE);
}

/* Its first byte tells a client that speaks plain HTTP: a method begins with a letter. */
static enum tls_flight
not_a_record(const uint8_t *p)
{
	return (p[0] >= 'A' && p[0] <= 'Z' ? TLS_FLIGHT_HTTP : TLS_FLIGHT_NOT_TLS);
}

static size_t
length_of(const uint8_t *record)
{
	return ((size_t)record[3] << 8 | record[4]);
}

static enum tls_flight
first_flight(const uint8_t *p, size_t n)
{
	struct hello hello = { .n = 0 };
	enum tls_flight found = TLS_FLIGHT_MORE;
	size_t length, have;

	for (; n > 0 && found == TLS_FLIGHT_MORE; p += have, n -= have) {
		if (p[0] != TYPE_HANDSHAKE || (n > 1 && p[1] != VERSION_3))
			return (hello.n == 0 ? not_a_record(p) : TLS_FLIGHT_NOT_TLS);
		if (n < TLS_HEAD)
			return (TLS_FLIGHT_MORE);
		length = length_of(p);
		if (length == 0)
			return (TLS_FLIGHT_NOT_TLS);
		if (length > TLS_PLAIN)
			return (TLS_FLIGHT_BROKEN);
		have = n < TLS_HEAD + length ? n : TLS_HEAD + length;
		add(&hello, p + TLS_HEAD, have - TLS_HEAD);
		found = judge_hello(&hello);
		if (found == TLS_FLIGHT_READY && have != TLS_HEAD + length)
			found = TLS_FLIGHT_MORE; /* the record has bytes of another message */
	}
	return (found);
}

/* Of TLS 1.3 all that is encrypted has the last type; of TLS 1.2 messages of 16 bytes have another
 * one. */
static bool
is_record(const uint8_t *head)
{
	size_t most = head[0] == TYPE_LAST ? TLS_RECORD : TLS_PLAIN;

	return (head[0] >= TYPE_FIRST && head[0] <= TYPE_LAST && head[1] == VERSION_3 &&
		length_of(head) <= most);
}

static size_t
whole_records(const uint8_t *p, size_t n)
{
	size_t at = 0, length;

	while (n - at >= TLS_HEAD && is_record(p + at)) {
		length = length_of(p + at);
		if (n - at < TLS_HEAD + length)
			break;
		at += TLS_HEAD + length;
	}
	return (at);
}

/* Whole records to the last byte are a whole flight, in almost every network. */
static enum tls_flight
later_flight(const uint8_t *p, size_t n, size_t whole)
{
	bool broken = n - whole >= TLS_HEAD && !is_record(p + whole);

	if (whole == 0)
		return (broken ? TLS_FLIGHT_BROKEN : TLS_FLIGHT_MORE);
	return (whole == n || broken || n >= TLS_FLIGHT_MAX ? TLS_FLIGHT_READY : TLS_FLIGHT_PART);
}

enum tls_flight
tls_flight(const void *p, size_t n, bool first, size_t *whole)
{
	enum tls_flight found;

	*whole = whole_records(p, n);
	found = first ? first_flight(p, n) : later_flight(p, n, *whole);
	if (found == TLS_FLIGHT_BROKEN)
		*whole = TLS_HEAD;
	return (first && found == TLS_FLIGHT_MORE && n >= TLS_FLIGHT_MAX ? TLS_FLIGHT_LONG : found);
}
