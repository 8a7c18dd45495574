/* t/unit/wire/cgi_env.c -- the variables of an application, and none that a client can forge. */
#include <errno.h>
#include "wire/codec/cgi_env.h"
#include "t/unit/wire/wire_test.h"

static GHashTable *env;

static void
put(void *arg, struct text name, struct text value)
{
	char *k = g_strndup(name.p, name.n);

	if (g_hash_table_contains(env, k))
		g_error("%s comes twice", k);
	g_hash_table_insert(env, k, g_strndup(value.p != NULL ? value.p : "", value.n));
}

static void
collect(const struct proxy_request *r)
{
	if (env != NULL)
		g_hash_table_unref(env);
	env = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_assert_cmpint(cgi_env(r, put, NULL), ==, 0);
}

#define HAS(k, v) g_assert_cmpstr(g_hash_table_lookup(env, k), ==, v)
#define H(n, v)                  \
	{                        \
		TEXT(n), TEXT(v) \
	}

TEST("/cgi_env/a plain request")
{
	struct proxy_request r = a_request("GET");

	collect(&r);
	HAS("GATEWAY_INTERFACE", "CGI/1.1");
	HAS("SERVER_NAME", "www.example.org");
	HAS("SERVER_PORT", "81");
	HAS("SERVER_ADDR", "192.0.2.1");
	HAS("SERVER_PROTOCOL", "HTTP/1.1");
	HAS("REMOTE_ADDR", "192.0.2.7");
	HAS("REMOTE_PORT", "40000");
	HAS("REQUEST_METHOD", "GET");
	HAS("REQUEST_URI", "/a%20b?x=1");
	HAS("QUERY_STRING", "x=1");
	HAS("DOCUMENT_ROOT", "/srv");
	HAS("SCRIPT_NAME", "/a b");
	HAS("SCRIPT_FILENAME", "/srv/a b");
	HAS("PATH_INFO", NULL);
	HAS("PATH_TRANSLATED", NULL);
	HAS("CONTENT_LENGTH", NULL);
	HAS("CONTENT_TYPE", NULL);
	HAS("HTTPS", NULL);
	HAS("REDIRECT_STATUS", "200");
	HAS("HTTP_X_FORWARDED_FOR", "192.0.2.7");
	HAS("HTTP_X_FORWARDED_PROTO", "http");
	HAS("HTTP_X_HOST", "www.example.org:81");
}

TEST("/cgi_env/repeated fields, a body, a path info")
{
	static const struct proxy_field h[] = {
		H("Host", "www.example.org:81"),
		H("Content-Type", "text/x"),
		H("Content-Type", "text/evil"),
		H("Content-Length", "99"),
		H("Cookie", "a=1"),
		H("cookie", "b=2"),
		H("Accept", "x"),
		H("ACCEPT", "y"),
		H("X-Forwarded-For", "10.0.0.1"),
		H("x-forwarded-for", "10.0.0.2"),
		H("X-Forwarded-Proto", "https"),
		H("X-Host", "evil"),
		H("Authorization", "Basic x"),
	};
	struct proxy_request r = a_request("POST");

	r.headers = h;
	r.nheaders = NELEM(h);
	r.peer_trusted = true;
	r.claims = &h[8].name; /* X-Forwarded-For */
	r.nclaims = 1;
	r.content_length = 5;
	r.scheme = TEXT("https");
	r.path = TEXT("/app/info/x");
	r.path_info = TEXT("/info/x");
	collect(&r);
	HAS("HTTP_HOST", "www.example.org:81");
	HAS("CONTENT_TYPE", "text/x");
	HAS("HTTP_CONTENT_TYPE", NULL);
	HAS("CONTENT_LENGTH", "5");
	HAS("HTTP_CONTENT_LENGTH", NULL);
	r.content_length = 0;
	collect(&r);
	HAS("CONTENT_LENGTH", "0");
	HAS("HTTP_COOKIE", "a=1; b=2");
	HAS("HTTP_ACCEPT", "x, y");
	HAS("HTTP_X_FORWARDED_FOR", "10.0.0.1, 10.0.0.2, 192.0.2.7");
	HAS("HTTP_X_FORWARDED_PROTO", "https");
	HAS("HTTP_X_HOST", "www.example.org:81");
	HAS("HTTP_AUTHORIZATION", "Basic x");
	HAS("HTTPS", "on");
	HAS("SCRIPT_NAME", "/app");
	HAS("PATH_INFO", "/info/x");
	HAS("PATH_TRANSLATED", "/srv/info/x");
}

TEST("/cgi_env/what is known of TLS")
{
	static const struct proxy_field known[] = { { TEXT("SSL_PROTOCOL"), TEXT("TLSv1.3") },
		{ TEXT("SSL_CIPHER"), TEXT("AES") } };
	static const struct proxy_field told[] = { { TEXT("SSL_PROTOCOL"),
						       TEXT("an authorizer's") },
		{ TEXT("SSL_CIPHER"), TEXT("the configuration's"), true } };
	static const struct proxy_field h[] = { H("SSL_PROTOCOL", "faked"),
		H("SSL-Protocol", "faked") };
	struct proxy_request r = a_request("GET");

	r.headers = h;
	r.nheaders = NELEM(h);
	collect(&r);
	HAS("SSL_PROTOCOL", NULL);
	r.tls = known;
	r.ntls = NELEM(known);
	collect(&r);
	HAS("SSL_PROTOCOL", "TLSv1.3");
	HAS("SSL_CIPHER", "AES");
	r.variables = told;
	r.nvariables = NELEM(told);
	collect(&r);
	HAS("SSL_PROTOCOL", "TLSv1.3");
	HAS("SSL_CIPHER", "the configuration's");
}

TEST("/cgi_env/what never reaches an application")
{
	static const struct proxy_field h[] = {
		H("Proxy", "http://evil"),
		H("PROXY", "http://evil"),
		H("X_Forwarded_For", "evil"),
		H("A.B", "evil"),
		H("Connection", "close, X-Hop"),
		H("X-Hop", "evil"),
		H("Keep-Alive", "1"),
		H("Expect", "100-continue"),
		H("TE", "x"),
		H("Transfer-Encoding", "chunked"),
		H("Upgrade", "x"),
		H("Proxy-Authorization", "x"),
		H("X-Sendfile-Type", "X-Accel-Redirect"),
		H("X-Accel-Mapping", "/=/etc"),
		H("X-Sendfile", "/etc/passwd"),
		H("X-LIGHTTPD-send-file", "/etc/passwd"),
		H("X-Rewrite-URL", "/admin"),
		H("X-Kept", "1"),
	};
	struct proxy_request r = a_request("GET");
	GHashTableIter it;
	gpointer k, v;
	unsigned n = 0;

	r.headers = h;
	r.nheaders = NELEM(h);
	collect(&r);
	g_hash_table_iter_init(&it, env);
	while (g_hash_table_iter_next(&it, &k, &v)) {
		g_assert_cmpstr(v, !=, "evil");
		n += g_str_has_prefix(k, "HTTP_");
	}
	HAS("HTTP_PROXY", NULL);
	HAS("HTTP_X_KEPT", "1");
	g_assert_cmpuint(n, ==, 5); /* it, and the four of our own */
}

/* Connection may not remove Host, nor what the configuration sets. */
TEST("/cgi_env/what Connection may not remove")
{
	static const struct proxy_field h[] = { H("Connection", "host, x-key, X-Other"),
		H("Host", "a.example"), { TEXT("X-Key"), TEXT("ours"), true },
		H("X-Other", "client") };
	struct proxy_request r = a_request("GET");

	r.headers = h;
	r.nheaders = NELEM(h);
	collect(&r);
	HAS("HTTP_HOST", "a.example");
	HAS("HTTP_X_KEY", "ours");
	HAS("HTTP_X_OTHER", NULL);
}

/* The variables of an authorizer replace what the client sent, not what the server knows. */
TEST("/cgi_env/variables of an authorizer")
{
	static const struct proxy_field h[] = { H("X-User", "client"), H("X-Kept", "1") };
	struct proxy_field v[VARIABLES_MAX + 1] = { H("USER", "joe"), H("HTTP_X_USER", "joe"),
		H("SCRIPT_FILENAME", "/etc/passwd"), H("REMOTE_ADDR", "10.0.0.1"),
		H("HTTP_X_FORWARDED_FOR", "10.0.0.1"), H("CONTENT_TYPE", "text/x") };
	struct proxy_request r = a_request("GET");

	r.headers = h;
	r.nheaders = NELEM(h);
	r.variables = v;
	r.nvariables = 6;
	collect(&r);
	HAS("USER", "joe");
	HAS("HTTP_X_USER", "joe");
	HAS("HTTP_X_KEPT", "1");
	HAS("SCRIPT_FILENAME", "/srv/a b");
	HAS("REMOTE_ADDR", "192.0.2.7");
	HAS("HTTP_X_FORWARDED_FOR", "10.0.0.1");
	HAS("CONTENT_TYPE", "text/x");
	r.nvariables = VARIABLES_MAX + 1;
	g_assert_cmpint(cgi_env(&r, put, NULL), ==, -E2BIG);
}

TEST("/cgi_env/the question to an authorizer")
{
	struct proxy_request r = a_request("POST");

	r.authorizer = true;
	r.content_length = 7;
	r.path_info = TEXT(" b");
	collect(&r);
	HAS("SCRIPT_FILENAME", "/srv/a");
	HAS("REQUEST_URI", "/a%20b?x=1");
	HAS("SCRIPT_NAME", NULL);
	HAS("PATH_INFO", NULL);
	HAS("PATH_TRANSLATED", NULL);
	HAS("CONTENT_LENGTH", NULL);
}
