/* t/unit/wire/client_fields.c -- what an application learns about the client, and what a client
 * cannot forge. */
#include "wire/codec/client_fields.h"
#include "t/unit/wire/wire_test.h"

#define H(n, v)                  \
	{                        \
		TEXT(n), TEXT(v) \
	}

static GString *out;

static void
put(void *arg, struct text name, struct text value)
{
	g_string_append_printf(out, "%.*s: %.*s\n", (int)name.n, name.p, (int)value.n, value.p);
}

/* The fields that pass, then those that are written. */
static const char *
sent(struct proxy_request *r, const struct proxy_field *v, size_t n)
{
	struct fields f;
	size_t i;

	if (out == NULL)
		out = g_string_new(NULL);
	g_string_truncate(out, 0);
	r->headers = v;
	r->nheaders = n;
	fields_index(&f, v, n);
	for (i = 0; i < n; i++)
		if (client_field_passes(r, &f, i))
			put(NULL, v[i].name, v[i].value);
	g_assert_cmpint(client_fields_write(r, &f, put, NULL), ==, 0);
	return (out->str);
}

static const struct proxy_field claims[] = {
	H("X-Forwarded-For", "10.9.9.9"),
	H("x-forwarded-for", "10.9.9.8, 10.9.9.7"),
	H("X-Forwarded-Proto", "https"),
	H("X-Forwarded-Host", "front.example"),
	H("X-Forwarded-Port", "443"),
	H("X_Forwarded_For", "10.9.9.6"),
	H("X-Host", "evil"),
	H("X-Real-IP", "10.9.9.9"),
	H("x_real_ip", "10.9.9.9"),
	H("Forwarded", "for=10.9.9.9"),
	H("Forwarded", ""),
	H("Front-End-Https", "on"),
	H("X-Original-URL", "/private"),
	H("Remote-User", "root"),
	H("X-SSL-Client-Verify", "SUCCESS"),
	H("SSL-Client-S-DN", "CN=root"),
	H("X-Forward-For", "10.9.9.9"),
	H("Accept", "*/*"),
	H("X-Ours", "10.9.9.9"),
	H("X-Forwarded-Host", "last.example"),
};

static const struct text names[] = { TEXT("X-Forwarded-For"), TEXT("x-forwarded-host"),
	TEXT("Forwarded"), TEXT("X-Real-IP"), TEXT("X-Ours") };

TEST("/forward/untrusted")
{
	struct proxy_request r = a_request("GET");

	r.claims = names;
	r.nclaims = NELEM(names);
	g_assert_cmpstr(sent(&r, claims, NELEM(claims)), ==,
	    "Accept: */*\n"
	    "X-Forwarded-For: 192.0.2.7\n"
	    "X-Forwarded-Proto: http\n"
	    "X-Forwarded-Host: www.example.org:81\n"
	    "X-Host: www.example.org:81\n");
	r.forward = FORWARD_STANDARD;
	g_assert_cmpstr(sent(&r, claims, NELEM(claims)), ==,
	    "Accept: */*\n"
	    "Forwarded: for=192.0.2.7;host=\"www.example.org:81\";proto=http\n");
	r.forward = 0;
	g_assert_cmpstr(sent(&r, claims, NELEM(claims)), ==, "Accept: */*\n");
}

TEST("/forward/trusted")
{
	struct proxy_request r = a_request("GET");

	r.claims = names;
	r.nclaims = NELEM(names);
	r.peer_trusted = true;
	r.peer_addr = TEXT("192.0.2.200");
	r.remote_addr = TEXT("10.9.9.7");
	r.scheme = TEXT("https");
	g_assert_cmpstr(sent(&r, claims, NELEM(claims)), ==,
	    "X-Real-IP: 10.9.9.9\n"
	    "Forwarded: for=10.9.9.9\n"
	    "Forwarded: \n"
	    "Accept: */*\n"
	    "X-Ours: 10.9.9.9\n"
	    "X-Forwarded-For: 10.9.9.9, 10.9.9.8, 10.9.9.7, 192.0.2.200\n"
	    "X-Forwarded-Proto: https\n"
	    "X-Forwarded-Host: last.example\n"
	    "X-Host: www.example.org:81\n");
	r.forward = FORWARD_STANDARD;
	r.peer_addr = TEXT("2001:db8::1");
	g_assert_nonnull(strstr(sent(&r, claims, NELEM(claims)),
	    "\nForwarded: for=10.9.9.9, for=\"[2001:db8::1]\";host=\"www.example.org:81\";"
	    "proto=https\n"));
}

/* The id of the request, and a trace that begins here, take the place of what a client sent. */
TEST("/forward/ids")
{
	static const struct proxy_field v[] = { H("x-request-id", "1"), H("X-Request-ID", "2"),
		H("X_Request_ID", "3"), H("Traceparent", "4"), H("TraceState", "5"), H("A", "b") };
	static const struct proxy_field set[] = { { TEXT("X-Request-ID"), TEXT("6"), true, true } };
	struct proxy_request r = a_request("GET");

	r.forward = 0;
	g_assert_cmpstr(sent(&r, v, NELEM(v)), ==,
	    "x-request-id: 1\nX-Request-ID: 2\nTraceparent: 4\nTraceState: 5\nA: b\n");
	r.request_id = TEXT("ours");
	g_assert_cmpstr(sent(&r, v, NELEM(v)), ==,
	    "Traceparent: 4\nTraceState: 5\nA: b\nX-Request-ID: ours\n");
	r.traceparent = TEXT("00-t");
	g_assert_cmpstr(sent(&r, v, NELEM(v)), ==, "A: b\nX-Request-ID: ours\ntraceparent: 00-t\n");
	g_assert_cmpstr(sent(&r, set, 1), ==, "X-Request-ID: 6\ntraceparent: 00-t\n");
}

/* A trusted peer passes fields on that it does not know: its client made them. */
TEST("/forward/not named")
{
	struct proxy_request r = a_request("GET");

	r.peer_trusted = true;
	r.claims = names + 3;
	r.nclaims = 1;
	g_assert_cmpstr(sent(&r, claims, NELEM(claims)), ==,
	    "X-Real-IP: 10.9.9.9\n"
	    "Accept: */*\n"
	    "X-Ours: 10.9.9.9\n"
	    "X-Forwarded-For: 192.0.2.7\n"
	    "X-Forwarded-Proto: http\n"
	    "X-Forwarded-Host: www.example.org:81\n"
	    "X-Host: www.example.org:81\n");
}

#define OURS(n, v)                                                           \
	{                                                                    \
		.name = TEXT(n), .value = TEXT(v), .set = true, .ours = true \
	}

/* The configuration's own fields pass whatever their names are, and nothing stands beside them. */
TEST("/forward/ours")
{
	static const struct proxy_field v[] = { H("Connection", "x-key, x-real-ip, remote-user"),
		H("X-Forwarded-Proto", "theirs"), H("X_Tenant", "theirs"), OURS("X-Key", "k"),
		OURS("X_Tenant", "t"), OURS("X-Real-IP", "10.1.1.1"), OURS("Remote-User", "joe"),
		OURS("X_Forwarded_Proto", "https"), OURS("Proxy-Authorization", "Basic x"),
		OURS("X-Forwarded-For", "10.1.1.2"), OURS("X-Sendfile-Type", "X-Sendfile"),
		OURS("a.b", "no name of a variable") };
	struct proxy_request r = a_request("GET");

	g_assert_cmpstr(sent(&r, v, NELEM(v)), ==,
	    "X-Key: k\n"
	    "X_Tenant: t\n"
	    "X-Real-IP: 10.1.1.1\n"
	    "Remote-User: joe\n"
	    "X_Forwarded_Proto: https\n"
	    "Proxy-Authorization: Basic x\n"
	    "X-Forwarded-For: 10.1.1.2\n"
	    "X-Sendfile-Type: X-Sendfile\n"
	    "X-Forwarded-Host: www.example.org:81\n"
	    "X-Host: www.example.org:81\n");
}

TEST("/forward/nodes")
{
	struct proxy_request r = a_request("GET");

	r.forward = FORWARD_STANDARD;
	r.remote_addr = TEXT("unix");
	r.host = TEXT("www");
	g_assert_cmpstr(sent(&r, no_headers, 0), ==,
	    "Forwarded: for=unknown;host=www;proto=http\n");
	r.host = TEXT("");
	g_assert_cmpstr(sent(&r, no_headers, 0), ==, "Forwarded: for=unknown;proto=http\n");
	r.host = TEXT("a\"b");
	g_assert_cmpstr(sent(&r, no_headers, 0), ==, "Forwarded: for=unknown;proto=http\n");
}
