/* accel-load/asks.c -- HTTP/2: fields of requests, one table for all requests of a thread. */
#include <stdlib.h>
#include "accel-load/streams_impl.h"

enum { METHOD, SCHEME, AUTHORITY, PATH, FIXED };

#define MORE 3 /* user-agent, priority, range */

static nghttp2_nv
field(const char *name, struct text value)
{
	return ((nghttp2_nv){ .name = (uint8_t *)name,
	    .namelen = strlen(name),
	    .value = (uint8_t *)value.p,
	    .valuelen = value.n,
	    .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE });
}

static size_t
count_lines(const char *const *lines)
{
	size_t n = 0;

	while (lines != NULL && lines[n] != NULL)
		n++;
	return (n);
}

/* A field of --header.  Host replaces the name of the URL. */
static bool
add_line(struct asks *h, const char *line, char **name, bool *agent)
{
	const char *colon = strchr(line, ':');
	struct text value = text_trim(text_of(colon + 1));

	if ((*name = strndup(line, (size_t)(colon - line))) == NULL)
		return (false);
	for (char *p = *name; *p != '\0'; p++)
		*p = byte_lower(*p);
	if (strcmp(*name, "host") == 0) {
		h->fields[AUTHORITY] = field(":authority", value);
		return (true);
	}
	*agent |= strcmp(*name, "user-agent") == 0;
	h->fields[h->n++] = field(*name, value);
	return (true);
}

static bool
set_fields(struct asks *h, const struct load_conf *conf, const struct target *target)
{
	size_t lines = count_lines(conf->headers), i;
	bool good = true, agent = false;

	h->fields = calloc(FIXED + lines + MORE, sizeof(*h->fields));
	h->names = calloc(lines + 1, sizeof(*h->names));
	if (h->fields == NULL || h->names == NULL)
		return (false);
	h->fields[METHOD] = field(":method", conf->head ? TEXT("HEAD") : TEXT("GET"));
	h->fields[SCHEME] = field(":scheme", target->host != NULL ? TEXT("https") : TEXT("http"));
	h->fields[AUTHORITY] = field(":authority", text_of(target->authority));
	h->fields[PATH] = field(":path", TEXT("/"));
	h->n = FIXED;
	for (i = 0; good && i < lines; i++)
		good = add_line(h, conf->headers[i], &h->names[i], &agent);
	if (!agent)
		h->fields[h->n++] = field("user-agent", TEXT("accel-load"));
	h->priority[false] = conf->priority;
	h->priority[true] = conf->beside_priority;
	return (good);
}

struct asks *
asks_new(const struct load_conf *conf, const struct target *target)
{
	struct asks *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return (NULL);
	if (nghttp2_session_callbacks_new(&h->callbacks) != 0 || !set_fields(h, conf, target)) {
		asks_free(h);
		return (NULL);
	}
	session_set_callbacks(h->callbacks);
	return (h);
}

void
asks_free(struct asks *h)
{
	if (h == NULL)
		return;
	nghttp2_session_callbacks_del(h->callbacks);
	for (char **name = h->names; name != NULL && *name != NULL; name++)
		free(*name);
	free(h->names);
	free(h->fields);
	free(h);
}

static struct text
range_of(struct stream *s)
{
	const struct request *r = &s->asked;
	int n = r->length == UINT64_MAX
		    ? snprintf(s->range, sizeof(s->range), "bytes=%" PRIu64 "-", r->offset)
		    : snprintf(s->range, sizeof(s->range), "bytes=%" PRIu64 "-%" PRIu64, r->offset,
			  r->offset + r->length - 1);

	return ((struct text){ s->range, (size_t)n });
}

size_t
asks_fields(struct asks *h, struct stream *s, const struct url *u)
{
	const char *priority = h->priority[s->reading.beside];
	size_t n = h->n;

	h->fields[PATH].value = (uint8_t *)u->path;
	h->fields[PATH].valuelen = u->path_len;
	if (priority != NULL)
		h->fields[n++] = field("priority", text_of(priority));
	if (s->asked.length != 0)
		h->fields[n++] = field("range", range_of(s));
	return (n);
}
