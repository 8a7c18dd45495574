/* wire/urlpath.c -- decodes a path once and removes segments while it copies. */
#include <errno.h>
#include <string.h>
#include "base/utf8.h"
#include "wire/urlpath.h"

/* Bytes that need no decoding and end no segment; most of a path is runs of these. */
static const bool plain[256] = {
	[1 ... '%' - 1] = true,
	['%' + 1 ... '/' - 1] = true,
	['/' + 1 ... '\\' - 1] = true,
	['\\' + 1 ... 255] = true,
};

/* Returns the byte at t.p[*i]; *i moves past it.  -EINVAL: bad escape or NUL. */
static int
next_byte(struct text t, size_t *i)
{
	int hi, lo, c;

	c = (unsigned char)t.p[(*i)++];
	if (c == '%') {
		if (t.n - *i < 2)
			return (-EINVAL);
		hi = text_hex_digit(t.p[*i]);
		lo = text_hex_digit(t.p[*i + 1]);
		if (hi < 0 || lo < 0)
			return (-EINVAL);
		*i += 2;
		c = hi << 4 | lo;
	}
	return (c != 0 ? c : -EINVAL);
}

struct text
urlpath_without_dots(struct text path)
{
	while (path.n != 0 && (path.p[path.n - 1] == '.' || path.p[path.n - 1] == ' '))
		path.n--;
	return (path);
}

int
urlpath_decode(struct text t, char *dst)
{
	size_t i = 0;
	int n = 0, c;

	if (t.n > INT32_MAX)
		return (-EINVAL);
	while (i < t.n) {
		c = next_byte(t, &i);
		if (c < 0)
			return (c);
		dst[n++] = (char)c;
	}
	dst[n] = '\0';
	return (n);
}

/* A servlet container cuts ";..." off each segment, so that "..;x" means ".." there, and "/;x/a"
 * means "/a": a path other than the one that conditions compare.  The last segment may be ";x". */
static bool
hides_a_step(const char *seg, int n, bool last)
{
	const char *end;

	if (n == 0 || (seg[0] != '.' && seg[0] != ';'))
		return (false);
	end = memchr(seg, ';', (size_t)n);
	if (end == NULL)
		return (false);
	n = (int)(end - seg);
	return (n == 0 ? !last : n == 1 || (n == 2 && seg[1] == '.'));
}

/* Checks the segment dst[start..n), after a '/'.  Returns where writing goes on: n for a name,
 * start for "." or an empty one, the start of the parent for "..", or -EPERM above the root. */
static int
end_segment(const char *dst, int start, int n, bool strict, bool last)
{
	if (strict && hides_a_step(dst + start, n - start, last))
		return (-EPERM);
	if (n - start == 1 && dst[start] == '.')
		return (start);
	if (n - start != 2 || dst[start] != '.' || dst[start + 1] != '.')
		return (n);
	if (start == 1)
		return (-EPERM);
	for (start--; dst[start - 1] != '/'; start--)
		;
	return (start);
}

/* dst is "/", or ends with a name; start is the start of the current segment.  The '/' before a
 * removed segment stays, which also keeps the slash of "/a/." and "/a/b/..".  Inlined twice, so
 * that the checks of strict cost nothing. */
static inline __attribute__((always_inline)) int
clean(struct text path, char *dst, bool strict)
{
	int n = 0, start = 1, c;
	bool raw_slash;
	size_t i = 0;

	if (path.n == 0 || path.n > INT32_MAX || path.p[0] != '/')
		return (-EINVAL);
	dst[n++] = path.p[i++];
	while (i < path.n) {
		if (plain[(unsigned char)path.p[i]]) {
			dst[n++] = path.p[i++];
			continue;
		}
		raw_slash = path.p[i] == '/';
		c = next_byte(path, &i);
		if (c < 0)
			return (c);
		if (strict && (c == '\\' || (c == '/' && !raw_slash)))
			return (-EPERM);
		if (c != '/') {
			dst[n++] = (char)c;
			continue;
		}
		n = end_segment(dst, start, n, strict, false);
		if (n < 0)
			return (n);
		if (dst[n - 1] != '/')
			dst[n++] = '/';
		start = n;
	}
	n = end_segment(dst, start, n, strict, true);
	if (n >= 0)
		dst[n] = '\0';
	return (n);
}

int
urlpath_clean(struct text path, char *dst)
{
	return (clean(path, dst, true));
}

static bool
is_escaped_slash(struct text t, size_t i)
{
	return (t.n - i > 2 && t.p[i] == '%' && t.p[i + 1] == '2' && byte_lower(t.p[i + 2]) == 'f');
}

bool
urlpath_has_slashes(struct text path)
{
	size_t i;

	for (i = 0; i < path.n; i++)
		if (is_escaped_slash(path, i))
			return (true);
	return (false);
}

static size_t
decode_slashes(struct text path, char *dst)
{
	size_t i = 0, n = 0;

	while (i < path.n) {
		if (is_escaped_slash(path, i)) {
			dst[n++] = '/';
			i += 3;
		} else
			dst[n++] = path.p[i++];
	}
	return (n);
}

static bool
has_controls(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if ((unsigned char)t.p[i] < 32 || t.p[i] == 127)
			return (true);
	return (false);
}

static bool
is_allowed(struct text decoded, unsigned how)
{
	return (((how & URLPATH_NO_CONTROLS) == 0 || !has_controls(decoded)) &&
		((how & URLPATH_UTF8) == 0 || utf8_is_valid(decoded)));
}

/* Bad escapes of a query are bytes of it.  Uses dst as space. */
static bool
query_is_allowed(struct text t, unsigned how, char *dst)
{
	size_t i = 0, n = 0;
	int hi, lo;

	while (i < t.n) {
		hi = t.p[i] == '%' && t.n - i > 2 ? text_hex_digit(t.p[i + 1]) : -1;
		lo = hi >= 0 ? text_hex_digit(t.p[i + 2]) : -1;
		dst[n++] = lo >= 0 ? (char)(hi << 4 | lo) : t.p[i];
		i += lo >= 0 ? 3 : 1;
	}
	return (is_allowed((struct text){ dst, n }, how));
}

/* Cleans in place: a byte is written after it was read. */
int
urlpath_clean_as(struct text path, struct text query, unsigned how, char *dst)
{
	int n;

	if (!query_is_allowed(query, how, dst))
		return (-EPERM);
	if ((how & URLPATH_SLASHES) != 0) {
		path.n = decode_slashes(path, dst);
		path.p = dst;
	}
	if ((how & URLPATH_NO_STEPS) != 0 && urlpath_has_steps(path))
		return (-EPERM);
	n = clean(path, dst, true);
	if (n < 0)
		return (n);
	return (is_allowed((struct text){ dst, (size_t)n }, how) ? n : -EPERM);
}

int
urlpath_name(struct text path, char *dst)
{
	return (clean(path, dst, false));
}

bool
urlpath_has_steps(struct text path)
{
	static const struct text dot = TEXT("."), escaped = TEXT("%2e");
	struct text seg;
	int dots;

	while (text_next(&path, '/', &seg)) {
		if (seg.n > 0 && seg.p[0] != '.' && seg.p[0] != '%')
			continue;
		for (dots = 0; text_starts(seg, dot) || text_istarts(seg, escaped); dots++)
			text_take(&seg, seg.p[0] == '.' ? dot.n : escaped.n);
		if (seg.n == 0 && (dots == 1 || dots == 2))
			return (true);
	}
	return (false);
}

static bool
is_unreserved(int c)
{
	return (byte_is_alnum((char)c) || (c != 0 && strchr("-._~", c) != NULL));
}

size_t
urlpath_plain(struct text t, char *dst)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t i = 0, n = 0;
	int hi, lo;

	while (i < t.n) {
		hi = t.p[i] == '%' && t.n - i > 2 ? text_hex_digit(t.p[i + 1]) : -1;
		lo = hi >= 0 ? text_hex_digit(t.p[i + 2]) : -1;
		if (lo < 0) {
			dst[n++] = t.p[i++];
			continue;
		}
		if (is_unreserved(hi << 4 | lo))
			dst[n++] = (char)(hi << 4 | lo);
		else {
			dst[n++] = '%';
			dst[n++] = hex[hi];
			dst[n++] = hex[lo];
		}
		i += 3;
	}
	return (n);
}

/* ---- escaping */

#define URL_UNRESERVED 1u

static const uint8_t url_class[256] = {
	['0' ... '9'] = URL_UNRESERVED,
	['A' ... 'Z'] = URL_UNRESERVED,
	['a' ... 'z'] = URL_UNRESERVED,
	['-'] = URL_UNRESERVED,
	['.'] = URL_UNRESERVED,
	['_'] = URL_UNRESERVED,
	['~'] = URL_UNRESERVED,
	['/'] = URL_SLASH,
	['!'] = URL_DELIMS,
	['$'] = URL_DELIMS,
	['&'] = URL_DELIMS,
	['\''] = URL_DELIMS,
	['('] = URL_DELIMS,
	[')'] = URL_DELIMS,
	['*'] = URL_DELIMS,
	['+'] = URL_DELIMS,
	[','] = URL_DELIMS,
	[':'] = URL_DELIMS,
	[';'] = URL_DELIMS,
	['='] = URL_DELIMS,
	['@'] = URL_DELIMS,
	['?'] = URL_QUESTION,
	['#'] = URL_OUTSIDE,
	['['] = URL_OUTSIDE,
	[']'] = URL_OUTSIDE,
};

/* The byte that t, after a '%', stands for, or -1. */
static int
escaped_byte(struct text t)
{
	int hi = t.n > 1 ? text_hex_digit(t.p[0]) : -1, lo = hi >= 0 ? text_hex_digit(t.p[1]) : -1;

	return (lo >= 0 ? hi << 4 | lo : -1);
}

size_t
urlpath_escape(struct text t, unsigned keep, char *dst)
{
	static const char hex[] = "0123456789ABCDEF";
	unsigned char c;
	size_t n = 0;
	int byte;

	while (t.n != 0) {
		c = (unsigned char)text_take(&t, 1).p[0];
		byte = c == '%' && (keep & URL_ESCAPES) != 0 ? escaped_byte(t) : -1;
		if (byte >= 0)
			text_take(&t, 2);
		if (byte < 0 ? (url_class[c] & (keep | URL_UNRESERVED)) != 0
			     : url_class[byte] == URL_UNRESERVED) {
			dst[n++] = (char)(byte < 0 ? c : byte);
			continue;
		}
		c = byte < 0 ? c : (unsigned char)byte;
		dst[n++] = '%';
		dst[n++] = hex[c >> 4];
		dst[n++] = hex[c & 15];
	}
	return (n);
}

bool
urlpath_is_plain(struct text t, unsigned keep)
{
	size_t i = 0;

	while (i < t.n && (url_class[(unsigned char)t.p[i]] & (keep | URL_UNRESERVED)) != 0)
		i++;
	return (i == t.n);
}

size_t
urlpath_drop_steps(char *path, size_t n)
{
	int start = 1, to = 1;
	size_t i;

	for (i = 1; i <= n; i++) {
		if (i < n && path[i] != '/') {
			path[to++] = path[i];
			continue;
		}
		to = end_segment(path, start, to, false, i == n);
		if (to < 0)
			return (0);
		if (i < n && path[to - 1] != '/')
			path[to++] = '/';
		start = to;
	}
	return ((size_t)to);
}
