/* t/fuzz/fuzz_words.c -- what people and other programs write for fcgi-stat-accel and accel-warm:
 * words of a command line (quantities and --warm), addresses of clients and of sockets, entries of
 * a --list, a --state file.
 *
 * One word, address or entry a line; the whole is a state file, too, and the keys of one.  What is
 * accepted lies in its bounds. */
#include <arpa/inet.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "base/address.h"
#include "base/client_addr.h"
#include "base/must.h"
#include "base/text.h"
#include "walk/batch.h"
#include "walk/list.h"
#include "walk/state.h"
#include "files/warm/mode.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("0\n4096\n64k\n16M\n1g\nread:all\nread:128k\nopen\nstat"),
	SEED("18446744073709551615\n18446744073709551616\n9223372036854775807k\n-1\n+1\n 1\n1 "
	     "\n0x10\n1e3"),
	SEED("read:\nread:k\nread:1024g\nread:99999999999g\nlighttpd\nnginx"),
	SEED("192.0.2.1\n::ffff:192.0.2.1\n2001:db8::7\n1.2.3\n::1%lo\n/a/../b\nhttp://h/"
	     "%61?q#f\r\nhttp://h\n/%2e%2e/x\n//\na\0b"),
	SEED("accel-warm state 1\nwarm=open\npath=/srv\n\n00112233445566778899aabbccddeeff\n0011"),
	SEED("accel-warm state 1\nwarm=stat\n\n"),
	SEED("00112233445566778899aabbccddeeff\nFFEEDDCCBBAA99887766554433221100\n00112233445566778"
	     "899aabbccddeefg\n"),
	SEED("unix:/run/a\n/run/"
	     "a\nunix:\nlocalhost:80\n[::1]:80\n[fe80::1%lo]:1\n:80\n*:65536\n::1\n[::1\n[::1]x:"
	     "1\na:1:2\n[]:0"),
	{ NULL, 0 },
};

static void
check_word(const char *word)
{
	static const uint64_t bounds[][2] = { { 0, UINT64_MAX }, { 1, 1024 }, { 1, 1ull << 50 },
		{ 4096, 1ull << 31 } };
	struct warm_conf conf;
	enum warm_how how;
	uint64_t n;
	size_t i;

	for (i = 0; i < NELEM(bounds); i++) {
		n = UINT64_MAX - 1;
		if (text_size(text_of(word), bounds[i][0], bounds[i][1], &n))
			must(n >= bounds[i][0] && n <= bounds[i][1] && word[0] >= '0' &&
			     word[0] <= '9');
		else
			must(n == UINT64_MAX - 1);
	}
	if (warm_mode_parse(word, &how, &n))
		must(how == WARM_STAT || how == WARM_OPEN ||
		     (how == WARM_READ && strncmp(word, "read:", 5) == 0));
	if (warm_mode_parse_auto(word, &conf) && conf.soon != 0)
		must(conf.how == WARM_READ && strncmp(word, "auto", 4) == 0);
}

/* The address as accept(2) would give it; its family is unknown if the word is not an address. */
static struct client_addr
accepted(const char *word)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = { .sa = { .sa_family = AF_UNIX } };

	if (inet_pton(AF_INET, word, &a.in.sin_addr) == 1)
		a.sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, word, &a.in6.sin6_addr) == 1)
		a.sa.sa_family = AF_INET6;
	return (client_addr_of(&a.sa));
}

/* The name of an address is read as the same client. */
static void
check_address(const char *word)
{
	struct client_addr a = client_addr_written(word), again;
	char name[CLIENT_ADDR_MAX], *slash;

	must(client_addr_same(a, accepted(word)));
	must(strlen(client_addr_name(a, name)) < sizeof(name));
	must((a.host == 0) == (client_addr_key(a) == 0));
	if (a.host == 0)
		return;
	slash = strchr(name, '/');
	if (slash != NULL)
		*slash = '\0';
	again = client_addr_written(name);
	must(client_addr_same(a, again) && client_addr_key(a) == client_addr_key(again));
}

/* The pieces are slices of the text and together make it; a refusal has a reason, and an address is
 * the same as itself. */
static void
check_socket(struct text line)
{
	struct text host, port;
	struct address_parts a;
	const char *fault;
	int err = address_read(line, &a, &fault);

	must((err == 0) == (fault == NULL) && (err == 0 || err == -EINVAL || err == -ENAMETOOLONG));
	if (err == 0) {
		must(address_same(line, line));
		must((a.path.p == NULL) != (a.host.p == NULL) && a.path.n <= ADDRESS_PATH_MAX);
		must(a.port.p == NULL ? a.port_number == 0
				      : a.port.n > 0 && a.port.p + a.port.n == line.p + line.n);
	}
	if (!address_cut(line, &host, &port))
		return;
	must(host.p == line.p && host.n + (port.p != NULL ? port.n + 1 : 0) == line.n);
	must(address_bare(host).n == host.n || address_bare(host).n + 2 == host.n);
}

/* Below a root it has no slash at its start; a URL has no ".." either. */
static void
check_entry(struct text line, bool urls, const char *below)
{
	struct walk_conf conf = { .urls = urls, .below = below };
	g_autoptr(GString) path = g_string_new("rest of the last one");
	int err = walk_list_entry(&conf, line.p, line.n, path);

	must(err == 0 || err == -EINVAL || (err == -ENOENT && line.n <= 1));
	if (err == 0) {
		must(path->len > 0 && strlen(path->str) == path->len && path->len <= line.n &&
		     path->len < PATH_MAX);
		must(below == NULL || path->str[0] != '/');
		must(!urls || (strcmp(path->str, "..") != 0 && strstr(path->str, "/../") == NULL &&
				  !g_str_has_prefix(path->str, "../")));
	}
}

static void
check_line(struct text line)
{
	char *word = strndup(line.p, line.n);

	must(word != NULL);
	check_word(word);
	check_address(word);
	check_socket(line);
	check_entry(line, false, NULL);
	check_entry(line, false, "/srv");
	check_entry(line, true, "/srv");
	free(word);
}

/* The head is that of this run, or of another one; the lines are whole and have keys, at most as
 * many as there are lines. */
static void
check_state(const char *text, size_t n, const char *head, bool head_is_good)
{
	GHashTable *keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	char *why = NULL;
	gssize end = walk_state_parse(text, n, head, keys, &why);

	must(end == -EPROTO || end == -EBUSY || (end > 0 && (size_t)end <= n));
	must((end < 0) == (why != NULL) && (end > 0 || !head_is_good));
	if (end > 0) {
		must(memcmp(text, head, strlen(head)) == 0 && text[end - 1] == '\n');
		must(((size_t)end - strlen(head)) % (WALK_KEY_CHARS + 1) == 0);
		must(
		    g_hash_table_size(keys) <= ((size_t)end - strlen(head)) / (WALK_KEY_CHARS + 1));
	} else {
		must(g_hash_table_size(keys) == 0);
		must(g_utf8_validate(why, -1, NULL) && strpbrk(why, "\n\33") == NULL);
	}
	g_hash_table_destroy(keys);
	g_free(why);
}

static void
check_states(struct text in)
{
	static const char *const roots[] = { "/srv", NULL };
	struct walk_conf conf = { .how = WARM_OPEN, .roots = roots };
	GString *head = g_string_new(NULL), *with_head;

	walk_state_head(&conf, "/", head);
	with_head = g_string_new(head->str);
	g_string_append_len(with_head, in.p, (gssize)in.n);
	check_state(with_head->str, with_head->len, head->str, true);
	g_string_truncate(with_head, 0);
	g_string_append_len(with_head, in.p, (gssize)in.n);
	check_state(with_head->str, with_head->len, head->str, false);
	g_string_free(with_head, TRUE);
	g_string_free(head, TRUE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct text in = { (const char *)p, n }, line;

	check_states(in);
	while (text_next(&in, '\n', &line))
		check_line(line);
	return (0);
}
