#include "t/bench/fload/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BEGIN_REQUEST = 1, PARAMS = 4, STDIN = 5 };

static const char *const usual[][2] = {
	{ "QUERY_STRING", "" },
	{ "REQUEST_METHOD", "GET" },
	{ "CONTENT_TYPE", "" },
	{ "CONTENT_LENGTH", "" },
	{ "DOCUMENT_ROOT", "/" },
	{ "SERVER_PROTOCOL", "HTTP/1.1" },
	{ "REQUEST_SCHEME", "http" },
	{ "GATEWAY_INTERFACE", "CGI/1.1" },
	{ "SERVER_SOFTWARE", "fload" },
	{ "REMOTE_ADDR", "127.0.0.1" },
	{ "REMOTE_PORT", "54321" },
	{ "SERVER_ADDR", "127.0.0.1" },
	{ "SERVER_PORT", "80" },
	{ "SERVER_NAME", "localhost" },
	{ "REDIRECT_STATUS", "200" },
	{ "HTTP_HOST", "localhost" },
	{ "HTTP_USER_AGENT",
	    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0" },
	{ "HTTP_ACCEPT", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" },
	{ "HTTP_ACCEPT_LANGUAGE", "en-US,en;q=0.5" },
	{ "HTTP_ACCEPT_ENCODING", "gzip, deflate, br" },
	{ "HTTP_CONNECTION", "keep-alive" },
};

static size_t
put_head(char *p, unsigned type, size_t len)
{
	const uint8_t h[8] = { 1, (uint8_t)type, 0, 0, (uint8_t)(len >> 8), (uint8_t)len, 0, 0 };

	memcpy(p, h, sizeof(h));
	return (sizeof(h));
}

static size_t
put_len(char *p, size_t n)
{
	const uint8_t b[4] = { (uint8_t)(0x80 | n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
		(uint8_t)n };

	if (n < 128)
		p[0] = (char)n;
	else
		memcpy(p, b, sizeof(b));
	return (n < 128 ? 1 : sizeof(b));
}

static size_t
put_pair(char *p, const char *name, const char *value)
{
	size_t n = put_len(p, strlen(name));

	n += put_len(p + n, strlen(value));
	return ((size_t)(stpcpy(stpcpy(p + n, name), value) - p));
}

static size_t
put_params(char *p, const char *path)
{
	size_t i, n = 0;

	for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		n += put_pair(p + n, usual[i][0], usual[i][1]);
	n += put_pair(p + n, "SCRIPT_FILENAME", path);
	n += put_pair(p + n, "SCRIPT_NAME", path);
	return (n + put_pair(p + n, "REQUEST_URI", path));
}

static size_t
put_begin(char *p, unsigned role, bool keep)
{
	const char body[8] = { 0, (char)role, keep };
	size_t n = put_head(p, BEGIN_REQUEST, sizeof(body));

	memcpy(p + n, body, sizeof(body));
	return (n + sizeof(body));
}

int
request_make(struct request *r, const char *path, int status, unsigned role, bool keep)
{
	char out[REQUEST_MAX];
	size_t n, body, k = 0;

	if (strlen(path) >= REQUEST_PATH_MAX)
		return (-ENAMETOOLONG);
	memset(r, 0, sizeof(*r));
	r->ids[k++] = 2;
	n = put_begin(out, role, keep);
	r->ids[k++] = n + 2;
	body = put_params(out + n + 8, path);
	n += put_head(out + n, PARAMS, body) + body;
	r->ids[k++] = n + 2;
	n += put_head(out + n, PARAMS, 0);
	if (role == RESPONDER) { /* an authorizer has no standard input */
		r->ids[k++] = n + 2;
		n += put_head(out + n, STDIN, 0);
	}
	r->path = strdup(path);
	r->bytes = malloc(n);
	if (r->path == NULL || r->bytes == NULL)
		return (-ENOMEM);
	memcpy(r->bytes, out, n);
	r->len = n;
	r->status = status;
	return (0);
}

void
request_write(const struct request *r, uint16_t id, char *out)
{
	size_t i;

	memcpy(out, r->bytes, r->len);
	for (i = 0; r->ids[i] > 0; i++) {
		out[r->ids[i]] = (char)(id >> 8);
		out[r->ids[i] + 1] = (char)id;
	}
}
