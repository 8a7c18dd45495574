#include "t/bench/fload/answer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { END_REQUEST = 3, STDOUT = 6, STDERR = 7 };

void
answer_start(struct answer *a, uint16_t id)
{
	a->id = id;
	a->head_len = a->end_len = 0;
	a->text_len = 0;
}

static bool
head_sound(struct answer *a)
{
	unsigned type = a->head[1], id = a->head[2] << 8 | a->head[3];

	a->left = a->head[4] << 8 | a->head[5];
	a->padding = a->head[6];
	if (a->head[0] != 1 || id != a->id)
		return (false);
	return (
	    type == STDOUT || type == STDERR || (type == END_REQUEST && a->left == sizeof(a->end)));
}

static void
content_take(struct answer *a, const char *p, size_t n)
{
	if (a->head[1] == END_REQUEST) {
		memcpy(a->end + a->end_len, p, n);
		a->end_len += n;
	} else if (a->head[1] == STDOUT) {
		n = n < ANSWER_TEXT_MAX - a->text_len ? n : ANSWER_TEXT_MAX - a->text_len;
		memcpy(a->text + a->text_len, p, n);
		a->text_len += n;
	}
}

/* Some bytes of one record, at least one; how many. */
static size_t
record_take(struct answer *a, const char *p, size_t n)
{
	if (a->head_len < sizeof(a->head)) {
		n = n < sizeof(a->head) - a->head_len ? n : sizeof(a->head) - a->head_len;
		memcpy(a->head + a->head_len, p, n);
		a->head_len += n;
	} else if (a->left > 0) {
		n = n < a->left ? n : a->left;
		content_take(a, p, n);
		a->left -= n;
	} else {
		n = n < a->padding ? n : a->padding;
		a->padding -= n;
	}
	return (n);
}

static enum answer_result
answer_end(struct answer *a)
{
	static const uint8_t complete[8];

	a->text[a->text_len] = '\0';
	if (memcmp(a->end, complete, sizeof(complete)) != 0 || strstr(a->text, "\r\n\r\n") == NULL)
		return (ANSWER_BAD);
	return (ANSWER_WHOLE);
}

enum answer_result
answer_take(struct answer *a, const char *p, size_t n, size_t *used)
{
	bool in_head;

	for (*used = 0; *used < n;) {
		in_head = a->head_len < sizeof(a->head);
		*used += record_take(a, p + *used, n - *used);
		if (a->head_len < sizeof(a->head))
			continue;
		if (in_head && !head_sound(a))
			return (ANSWER_BAD);
		if (a->left > 0 || a->padding > 0)
			continue;
		a->head_len = 0;
		if (a->head[1] == END_REQUEST)
			return (answer_end(a));
	}
	return (ANSWER_MORE);
}

const char *
answer_field(const struct answer *a, const char *name, size_t *len)
{
	const char *p = a->text;
	size_t n = strlen(name);

	while (p != NULL && *p != '\r' && *p != '\0') {
		if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
			p += n + 1 + strspn(p + n + 1, " ");
			*len = strcspn(p, "\r\n");
			return (p);
		}
		p = strchr(p, '\n');
		p = p != NULL ? p + 1 : NULL;
	}
	return (NULL);
}

int
answer_status(const struct answer *a)
{
	size_t len;
	const char *value = answer_field(a, "Status", &len);

	return (value != NULL ? atoi(value) : 200);
}
