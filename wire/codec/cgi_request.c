/* wire/codec/cgi_request.c -- see cgi_request.h */
#include "wire/codec/cgi_request.h"

#include "wire/codec/codec.h"

#define OUR_ID 1 /* of wire/codec/fastcgi.c */

void
cgi_request_init(struct cgi_request *q)
{
	memset(q, 0, sizeof(*q));
	buf_init(&q->params, PROTO_REQUEST_MAX);
}

void
cgi_request_free(struct cgi_request *q)
{
	buf_free(&q->params);
}

bool
cgi_variable_ok(struct text name, struct text value)
{
	return (name.n != 0 && memchr(name.p, '\0', name.n) == NULL &&
		memchr(name.p, '=', name.n) == NULL &&
		(value.n == 0 || memchr(value.p, '\0', value.n) == NULL));
}

bool
cgi_variable_is_usual(struct text name)
{
	static const struct text usual[] = { TEXT("AUTH_TYPE"), TEXT("CONTENT_LENGTH"),
		TEXT("CONTENT_TYPE"), TEXT("DOCUMENT_ROOT"), TEXT("GATEWAY_INTERFACE"),
		TEXT("HTTPS"), TEXT("PATH_INFO"), TEXT("PATH_TRANSLATED"), TEXT("QUERY_STRING"),
		TEXT("REDIRECT_STATUS"), TEXT("REDIRECT_URI"), TEXT("REMOTE_ADDR"),
		TEXT("REMOTE_HOST"), TEXT("REMOTE_IDENT"), TEXT("REMOTE_PORT"), TEXT("REMOTE_USER"),
		TEXT("REQUEST_METHOD"), TEXT("REQUEST_SCHEME"), TEXT("REQUEST_URI"),
		TEXT("SCRIPT_FILENAME"), TEXT("SCRIPT_NAME"), TEXT("SERVER_ADDR"),
		TEXT("SERVER_NAME"), TEXT("SERVER_PORT"), TEXT("SERVER_PROTOCOL"),
		TEXT("SERVER_SOFTWARE"), TEXT("SSL_CIPHER"), TEXT("SSL_CIPHER_ALGKEYSIZE"),
		TEXT("SSL_CIPHER_USEKEYSIZE"), TEXT("SSL_PROTOCOL") };

	/* HTTP_PROXY would redirect requests of the program. */
	if (text_starts(name, TEXT("HTTP_")))
		return (!text_eq(name, TEXT("HTTP_PROXY")));
	return (text_starts(name, TEXT("SSL_CLIENT_")) ||
		text_is_one_of(name, usual, sizeof(usual) / sizeof(usual[0])));
}

static bool
params_are_whole(const struct cgi_request *q)
{
	struct text in = buf_as_text(&q->params), name, value;

	while (in.n > 0)
		if (!fcgi_take_pair(&in, &name, &value))
			return (false);
	return (!q->params.failed);
}

/* The head of a record is complete.  False: this record is not allowed here. */
static bool
record_begins(struct cgi_request *q)
{
	static const uint8_t wanted[] = { [CGI_AT_BEGIN] = BEGIN_REQUEST,
		[CGI_AT_PARAMS] = PARAMS,
		[CGI_AT_BODY] = STDIN };

	q->left = fcgi_content(q->head);
	q->padding = q->head[6];
	if (q->head[0] != FCGI_VERSION || fcgi_id(q->head) != OUR_ID || q->stage == CGI_AT_END ||
	    q->head[1] != wanted[q->stage])
		return (false);
	return (q->stage != CGI_AT_BEGIN || q->left == sizeof(q->begin));
}

/* The record is complete with its padding. */
static enum cgi_event
record_ends(struct cgi_request *q)
{
	bool is_empty = fcgi_content(q->head) == 0;

	q->have = 0;
	switch (q->stage) {
	case CGI_AT_BEGIN:
		q->stage = CGI_AT_PARAMS;
		return (q->begin[0] == 0 && q->begin[1] == RESPONDER ? CGI_MORE : CGI_BAD);
	case CGI_AT_PARAMS:
		if (!is_empty)
			return (q->params.failed ? CGI_BAD : CGI_MORE);
		q->stage = CGI_AT_BODY;
		return (params_are_whole(q) ? CGI_PARAMS : CGI_BAD);
	case CGI_AT_BODY:
		if (!is_empty)
			return (CGI_MORE);
		q->stage = CGI_AT_END;
		return (CGI_END);
	case CGI_AT_END: break;
	}
	return (CGI_BAD);
}

static enum cgi_event
take_content(struct cgi_request *q, struct text *in, struct text *body)
{
	struct text t = text_take(in, q->left);

	q->left = (uint16_t)(q->left - t.n);
	if (q->stage == CGI_AT_BEGIN) {
		memcpy(q->begin + q->nbegin, t.p, t.n);
		q->nbegin = (uint8_t)(q->nbegin + t.n);
	} else if (q->stage == CGI_AT_PARAMS) {
		buf_text(&q->params, t);
	} else {
		*body = t;
		return (CGI_BODY);
	}
	return (CGI_MORE);
}

/* Takes some bytes of one record. */
static enum cgi_event
take(struct cgi_request *q, struct text *in, struct text *body)
{
	enum cgi_event ev = CGI_MORE;

	if (q->have < FCGI_HEAD) {
		if (!proto_collect(q->head, &q->have, FCGI_HEAD, in))
			return (CGI_MORE);
		if (!record_begins(q))
			return (CGI_BAD);
	} else if (q->left > 0) {
		ev = take_content(q, in, body);
	} else {
		q->padding = (uint8_t)(q->padding - text_take(in, q->padding).n);
	}
	if (ev == CGI_MORE && q->left == 0 && q->padding == 0)
		ev = record_ends(q);
	return (ev);
}

enum cgi_event
cgi_request_feed(struct cgi_request *q, struct text *in, struct text *body)
{
	enum cgi_event ev = CGI_MORE;

	/* The last call returned CGI_BODY for the last bytes of a record, which ends now. */
	if (q->have == FCGI_HEAD && q->left == 0 && q->padding == 0)
		ev = record_ends(q);
	while (in->n > 0 && ev == CGI_MORE)
		ev = take(q, in, body);
	return (ev);
}
