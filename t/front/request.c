/* Requests of HTTP/1.1 become streams. */
#include "front.h"

#include <stdlib.h>
#include <string.h>

#define PIPELINED 64 /* requests at once; the next ones stay in the socket */
#define BUFFERED  65536

struct fields {
	GArray *nv;
	const char *length;    /* Content-Length */
	const char *coding;    /* Transfer-Encoding */
	GString *options;      /* Connection, all of its lines */
	const char *key;       /* Sec-WebSocket-Key */
	const char *upgrade;   /* Upgrade */
	const char *authority; /* Host, or the authority of the target */
	bool expects;          /* Expect */
	char *own;             /* freed with the fields */
};

static void
add(struct fields *f, const char *name, const char *value)
{
	nghttp2_nv nv = { (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0 };

	g_array_append_val(f->nv, nv);
}

static bool
has_token(const char *list, const char *token)
{
	char **word;
	bool found = false;
	int i;

	word = g_strsplit(list, ",", -1);
	for (i = 0; word[i] != NULL; i++)
		found = found || g_ascii_strcasecmp(g_strstrip(word[i]), token) == 0;
	g_strfreev(word);
	return (found);
}

/* RFC 9113, 8.2.2: fields of one connection. */
static bool
is_hop(const struct fields *f, const char *name, const char *value)
{
	static const char *const hop[] = { "connection", "keep-alive", "proxy-connection",
		"transfer-encoding", "upgrade", "http2-settings" };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(hop); i++)
		if (strcmp(name, hop[i]) == 0)
			return (true);
	if (strcmp(name, "te") == 0)
		return (g_ascii_strcasecmp(value, "trailers") != 0);
	return (value == f->key || has_token(f->options->str, name));
}

static bool
is_websocket(struct conn *c, const struct fields *f, const char *method)
{
	return (
	    f->upgrade != NULL && g_ascii_strcasecmp(f->upgrade, "websocket") == 0 &&
	    has_token(f->options->str, "upgrade") && f->key != NULL && strcmp(method, "GET") == 0 &&
	    nghttp2_session_get_remote_settings(c->h2, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) ==
		1);
}

/* RFC 6455, 4.2.2. */
static char *
accept_of(const char *key)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA1);
	uint8_t digest[20];
	gsize n = sizeof(digest);

	g_checksum_update(sum, (const guchar *)key, -1);
	g_checksum_update(sum, (const guchar *)"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", -1);
	g_checksum_get_digest(sum, digest, &n);
	g_checksum_free(sum);
	return (g_base64_encode(digest, n));
}

/* Splits a line in place: a name in lower case, and a value without white space around it. */
static bool
split(char *line, char **value)
{
	char *colon = strchr(line, ':'), *p;

	if (colon == NULL || colon == line)
		return (false);
	*colon = 0;
	for (p = line; *p != 0; p++)
		*p = g_ascii_tolower(*p);
	*value = g_strstrip(colon + 1);
	return (true);
}

static bool
read_fields(struct fields *f, char **line)
{
	char *value;
	int i;

	for (i = 0; line[i] != NULL; i++) {
		if (!split(line[i], &value))
			return (false);
		if (strcmp(line[i], "content-length") == 0)
			f->length = value;
		if (strcmp(line[i], "transfer-encoding") == 0)
			f->coding = value;
		if (strcmp(line[i], "connection") == 0)
			g_string_append_printf(f->options, ",%s", value);
		if (strcmp(line[i], "upgrade") == 0)
			f->upgrade = value;
		if (strcmp(line[i], "sec-websocket-key") == 0)
			f->key = value;
		if (strcmp(line[i], "expect") == 0)
			f->expects = true;
		if (strcmp(line[i], "host") == 0 && f->authority == NULL)
			f->authority = value;
	}
	for (i = 0; line[i] != NULL; i++) {
		value = line[i] + strlen(line[i]) + 1;
		while (g_ascii_isspace(*value))
			value++;
		if (value != f->authority && !is_hop(f, line[i], value))
			add(f, line[i], value);
	}
	return (true);
}

static void
submit_trailers(struct exchange *x)
{
	char **line = g_strsplit(x->trailers->str, "\r\n", -1), *value;
	struct fields f = { .nv = g_array_new(FALSE, FALSE, sizeof(nghttp2_nv)) };
	int i;

	for (i = 0; line[i] != NULL; i++)
		if (split(line[i], &value) && strcmp(line[i], "content-length") != 0)
			add(&f, line[i], value);
	nghttp2_submit_trailer(x->conn->h2, x->id, (nghttp2_nv *)(void *)f.nv->data, f.nv->len);
	g_array_free(f.nv, TRUE);
	g_strfreev(line);
}

/* A short body is held: the server may not take it. */
static void
forget(struct exchange *x)
{
	g_byte_array_remove_range(x->body, 0, x->given);
	x->given = 0;
	x->spent = true;
}

static ssize_t
give_body(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
    nghttp2_data_source *source, void *arg)
{
	struct exchange *x = source->ptr;
	size_t n = MIN(room, x->body->len - x->given);

	if (n == 0 && !x->body_end) {
		x->deferred = true;
		return (NGHTTP2_ERR_DEFERRED);
	}
	memcpy(buf, x->body->data + x->given, n);
	x->given += n;
	if (x->body->len > BUFFERED)
		forget(x);
	if (x->body->len == x->given && x->body_end) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (x->trailers->len > 0) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			submit_trailers(x);
		}
	}
	return (n);
}

static void
resume(struct exchange *x)
{
	if (!x->deferred || x->closed)
		return;
	x->deferred = false;
	nghttp2_session_resume_data(x->conn->h2, x->id);
}

static void
body_done(struct conn *c)
{
	c->part = PART_HEAD;
	if (c->upload == NULL)
		return;
	c->upload->body_end = true;
	resume(c->upload);
	c->upload = NULL;
}

/* What frames the body.  False if nothing can. */
static bool
body_begin(struct conn *c, struct exchange *x, const struct fields *f)
{
	x->body_end = true;
	c->part = PART_HEAD;
	if (x->tunnel) {
		c->part = PART_TUNNEL;
	} else if (f->coding != NULL) {
		if (g_ascii_strcasecmp(f->coding, "chunked") != 0)
			return (false);
		c->part = PART_SIZE;
	} else if (f->length != NULL) {
		c->left = strtoull(f->length, NULL, 10);
		if (c->left > 0)
			c->part = PART_BODY;
	}
	if (c->part == PART_HEAD)
		return (true);
	x->body_end = false;
	x->has_body = true;
	c->upload = x;
	return (true);
}

/* The target in its three forms. */
static void
add_target(struct fields *f, char *method, char *target)
{
	char *rest = strstr(target, "://");

	add(f, ":method", method);
	if (strcmp(method, "CONNECT") == 0) {
		add(f, ":authority", target);
		return;
	}
	if (rest == NULL || target[0] == '/') {
		add(f, ":scheme", "http");
		add(f, ":path", target);
		return;
	}
	*rest = 0;
	add(f, ":scheme", target);
	target = rest + 3;
	f->own = g_strndup(target, strcspn(target, "/"));
	f->authority = f->own;
	target += strlen(f->own);
	add(f, ":path", *target != 0 ? target : "/");
}

static bool
submit(struct conn *c, struct exchange *x, struct fields *f)
{
	nghttp2_data_provider body = { .source.ptr = x, .read_callback = give_body };

	if (!x->again && !body_begin(c, x, f))
		return (false);
	x->id = nghttp2_submit_request(c->h2, NULL, (nghttp2_nv *)(void *)f->nv->data, f->nv->len,
	    x->has_body ? &body : NULL, x);
	if (x->id < 0)
		x->broken = x->closed = true;
	return (true);
}

/* The pseudo-header fields come first.  False if nothing can frame the body. */
static bool
request_send(struct conn *c, struct exchange *x, char **word, struct fields *f)
{
	struct fields all = { .nv = g_array_new(FALSE, FALSE, sizeof(nghttp2_nv)) };
	bool ok;

	all.authority = f->authority;
	all.coding = f->coding;
	all.length = f->length;
	if (is_websocket(c, f, word[0])) {
		x->tunnel = x->close = true;
		g_free(x->accept);
		x->accept = accept_of(f->key);
	}
	add_target(&all, word[0], word[1]);
	/* HTTP/1.0 may leave it out. */
	if (all.authority == NULL && x->http10)
		all.authority = "localhost";
	if (x->tunnel) {
		g_array_index(all.nv, nghttp2_nv, 0).value = (uint8_t *)"CONNECT";
		g_array_index(all.nv, nghttp2_nv, 0).valuelen = strlen("CONNECT");
		add(&all, ":protocol", "websocket");
	}
	if (all.authority != NULL && strcmp(word[0], "CONNECT") != 0)
		add(&all, ":authority", all.authority);
	g_array_append_vals(all.nv, f->nv->data, f->nv->len);
	ok = submit(c, x, &all);
	g_array_free(all.nv, TRUE);
	g_free(all.own);
	return (ok);
}

/* The head is whole.  Its first line is the request line. */
static void
request_head(struct conn *c, struct exchange *x)
{
	char **line = g_strsplit(x->text, "\r\n", -1);
	struct fields f = { .nv = g_array_new(FALSE, FALSE, sizeof(nghttp2_nv)),
		.options = g_string_new(NULL) };
	char **word = g_strsplit(line[0], " ", -1);

	if (g_strv_length(word) != 3 || !g_str_has_prefix(word[2], "HTTP/1.") ||
	    !read_fields(&f, line + 1)) {
		reply_refuse(x, 400);
	} else {
		x->head = strcmp(word[0], "HEAD") == 0;
		x->http10 = strcmp(word[2], "HTTP/1.0") == 0;
		x->expects = f.expects && !x->again;
		x->close = has_token(f.options->str, "close") ||
			   (x->http10 && !has_token(f.options->str, "keep-alive"));
		if (!request_send(c, x, word, &f))
			reply_refuse(x, 501);
	}
	g_array_free(f.nv, TRUE);
	g_string_free(f.options, TRUE);
	g_strfreev(word);
	g_strfreev(line);
}

void
request_again(struct conn *c)
{
	GList *l;

	c->renewed = false;
	for (l = c->queue.head; l != NULL; l = l->next) {
		struct exchange *x = l->data;

		if (!x->refused)
			continue;
		x->refused = x->broken = x->closed = x->deferred = x->sent = false;
		x->given = 0;
		x->again = true;
		request_head(c, x);
	}
}

static void
drop(struct conn *c, size_t n)
{
	g_string_erase(c->in, 0, n);
}

static bool
take_head(struct conn *c)
{
	struct exchange *x;
	char *end;
	size_t n;

	while (g_str_has_prefix(c->in->str, "\r\n"))
		drop(c, 2);
	end = memmem(c->in->str, c->in->len, "\r\n\r\n", 4);
	if (end == NULL && c->in->len >= HEAD_MAX)
		reply_refuse(exchange_new(c), 431);
	if (end == NULL || g_queue_get_length(&c->queue) >= PIPELINED)
		return (false);
	n = end - c->in->str;
	x = exchange_new(c);
	x->text = g_strndup(c->in->str, n);
	drop(c, n + 4);
	if (strlen(x->text) < n)
		reply_refuse(x, 400);
	else
		request_head(c, x);
	return (true);
}

static bool
take_body(struct conn *c)
{
	size_t n = MIN(c->left, c->in->len);
	struct exchange *x = c->upload;

	if (n == 0 || (x != NULL && x->body->len - x->given >= BUFFERED))
		return (false);
	if (x != NULL) {
		x->expects = false;
		g_byte_array_append(x->body, (uint8_t *)c->in->str, n);
		resume(x);
	}
	drop(c, n);
	c->left -= n;
	if (c->left > 0)
		return (true);
	if (c->part == PART_CHUNK)
		c->part = PART_CHUNK_END;
	else if (c->part == PART_BODY)
		body_done(c);
	return (true);
}

static void
cancel(struct exchange *x)
{
	x->refused = false;
	if (!x->closed)
		nghttp2_submit_rst_stream(x->conn->h2, 0, x->id, NGHTTP2_CANCEL);
}

/* The body is no HTTP/1: the stream ends, and the client hears why unless the reply has begun. */
static bool
body_refuse(struct conn *c)
{
	struct exchange *x = c->upload;

	c->part = PART_NONE;
	c->upload = NULL;
	if (x == NULL)
		return (true);
	cancel(x);
	if (x->replied)
		x->broken = true;
	else
		reply_refuse(x, 400);
	return (true);
}

/* The line of a chunk's size, the end of a chunk, or a trailer. */
static bool
take_line(struct conn *c)
{
	char *end = strstr(c->in->str, "\r\n");

	if (end == NULL)
		return (false);
	if (c->part == PART_SIZE && !g_ascii_isxdigit(c->in->str[0]))
		return (body_refuse(c));
	if (c->part == PART_CHUNK_END && end != c->in->str)
		return (body_refuse(c));
	if (c->part == PART_SIZE) {
		c->left = strtoull(c->in->str, NULL, 16);
		c->part = c->left > 0 ? PART_CHUNK : PART_TRAILERS;
	} else if (c->part == PART_CHUNK_END) {
		c->part = PART_SIZE;
	} else if (end == c->in->str) {
		body_done(c);
	} else if (c->upload != NULL) {
		g_string_append_len(c->upload->trailers, c->in->str, end + 2 - c->in->str);
	}
	drop(c, end + 2 - c->in->str);
	return (true);
}

static bool
take_one(struct conn *c)
{
	struct exchange *last = g_queue_peek_tail(&c->queue);

	switch (c->part) {
	case PART_HEAD:
		if (!c->settled || c->goaway || c->server.fd < 0)
			return (false);
		if (last != NULL && last->close) {
			c->part = PART_NONE;
			return (true);
		}
		return (take_head(c));
	case PART_TUNNEL: c->left = c->in->len; return (take_body(c));
	case PART_BODY:
	case PART_CHUNK: return (take_body(c));
	case PART_NONE: drop(c, c->in->len); return (false);
	default: return (take_line(c));
	}
}

bool
request_take(struct conn *c)
{
	bool any = false;

	while (c->in->len > 0 && take_one(c))
		any = true;
	return (any);
}

void
request_eof(struct conn *c)
{
	struct exchange *x = c->upload;

	if (x != NULL && c->part == PART_TUNNEL) {
		body_done(c);
	} else if (x != NULL) {
		cancel(x);
		x->broken = true;
	}
	c->part = PART_NONE;
}
