/* t/unit/walk/state.c -- the state file: its head, what a run reads back, and what a crash,
 * a full disk or another run does to it. */
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "t/unit/test.h"
#include "walk/batch.h"
#include "walk/state.h"

static const char *const roots[] = { "/srv/www", "new\nline", NULL };
static const struct walk_conf some = {
	.how = WARM_READ, .before = 4096, .threads = 3, .roots = roots
};

static char *
head_of(const struct walk_conf *conf)
{
	GString *s = g_string_new(NULL);

	walk_state_head(conf, "/here", s);
	return (g_string_free(s, FALSE));
}

static void
make_key(unsigned n, char *key)
{
	snprintf(key, WALK_KEY_CHARS + 1, "%032x", n);
}

TEST("/state/head")
{
	g_autofree char *head = head_of(&some);

	g_assert_cmpstr(head, ==,
	    "accel-warm state 1\nwarm=read:4096\npath=/srv/www\npath=/here/new\\nline\n\n");
}

/* Options that change the work change the head; those that change only its speed do not. */
TEST("/state/head-options")
{
	static const char *const globs[] = { "*.jpg", NULL };
	struct walk_conf c[] = { some, some, some, some, some, some, some };
	char *head = head_of(&some), *other;

	c[0].how = WARM_OPEN;
	c[1].before = WARM_ALL;
	c[2].follow = true;
	c[3].one_fs = true;
	c[4].include = globs;
	c[5].exclude = globs;
	c[6].roots = roots + 1;
	for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
		other = head_of(&c[i]);
		g_assert_cmpstr(other, !=, head);
		g_free(other);
	}
	c[0] = some;
	c[0].threads = 64;
	c[0].files_per_s = 10;
	c[0].quiet = true;
	other = head_of(&c[0]);
	g_assert_cmpstr(other, ==, head);
	g_free(other);
	g_free(head);
}

/* Length that is valid, or -errno; *keys: how many there are. */
static gssize
parse(const char *text, unsigned *keys, char **why)
{
	GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autofree char *head = head_of(&some);
	gssize n = walk_state_parse(text, strlen(text), head, set, why);

	*keys = g_hash_table_size(set);
	g_hash_table_destroy(set);
	return (n);
}

#define HEAD "accel-warm state 1\nwarm=read:4096\npath=/srv/www\npath=/here/new\\nline\n\n"
#define KEY1 "00112233445566778899aabbccddeeff\n"
#define KEY2 "ff112233445566778899aabbccddeeff\n"

TEST("/state/parse")
{
	static const struct {
		const char *text;
		gssize good;
		unsigned keys;
	} cases[] = {
		{ HEAD, sizeof(HEAD) - 1, 0 },
		{ HEAD KEY1 KEY2, sizeof(HEAD KEY1 KEY2) - 1, 2 },
		{ HEAD KEY1 KEY1, sizeof(HEAD KEY1 KEY1) - 1, 1 },
		{ HEAD KEY1 "ff1122", sizeof(HEAD KEY1) - 1, 1 },
		{ HEAD KEY1 "gg112233445566778899aabbccddeeff\n" KEY2, sizeof(HEAD KEY1) - 1, 1 },
		{ HEAD "00112233445566778899aabbccddeeff", sizeof(HEAD) - 1, 0 },
		{ "", -EPROTO, 0 },
		{ "accel-warm state 1\n", -EPROTO, 0 },
		{ "something else\n\n" KEY1, -EPROTO, 0 },
		{ "accel-warm state 2\nwarm=read:4096\n\n" KEY1, -EBUSY, 0 },
		{ "accel-warm state 1\nwarm=open\npath=/srv/www\n\n" KEY1, -EBUSY, 0 },
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		char *why = NULL;
		unsigned keys;

		g_assert_cmpint(parse(cases[i].text, &keys, &why), ==, cases[i].good);
		g_assert_cmpuint(keys, ==, cases[i].keys);
		g_assert_cmpint(why != NULL, ==, cases[i].good < 0);
		g_free(why);
	}
}

TEST("/state/difference")
{
	char *why = NULL;
	unsigned keys;

	g_assert_cmpint(parse("accel-warm state 1\nwarm=read:4096\npath=/srv/ftp\n\n", &keys, &why),
	    ==, -EBUSY);
	g_assert_cmpstr(why, ==,
	    "it was written for \"path=/srv/ftp\", now it is \"path=/srv/www\"");
	g_free(why);
}

static struct walk_state *
open_state(const char *path, const char *head, int expected)
{
	struct walk_state *s;
	char *why = NULL;

	g_assert_cmpint(walk_state_open(path, head, &s, &why), ==, expected);
	g_assert_cmpint(why != NULL, ==, expected != 0);
	g_free(why);
	return (s);
}

TEST("/state/file")
{
	g_autofree char *dir = g_dir_make_tmp("state-XXXXXX", NULL),
			*path = g_build_filename(dir, "state", NULL), *head = head_of(&some);
	struct walk_state *s = open_state(path, head, 0);
	char key[WALK_KEY_CHARS + 1];

	for (unsigned i = 0; i < 100; i++) {
		make_key(i, key);
		g_assert_false(walk_state_knows(s, key));
		walk_state_note(s, key);
		if (i % 7 == 0)
			g_assert_cmpint(walk_state_save(s), ==, 0);
	}
	open_state(path, head, -EAGAIN); /* another process has it */
	walk_state_close(&s);
	s = open_state(path, head, 0);
	for (unsigned i = 0; i < 100; i++) { /* the last one was not saved */
		make_key(i, key);
		g_assert_cmpint(walk_state_knows(s, key), ==, i < 99);
	}
	walk_state_note(s, key);
	g_assert_cmpint(walk_state_save(s), ==, 0); /* the second run goes on in the file */
	walk_state_close(&s);
	s = open_state(path, head, 0);
	g_assert_true(walk_state_knows(s, key));
	walk_state_remove(&s);
	g_assert_cmpint(access(path, F_OK), !=, 0);
	g_assert_cmpint(g_rmdir(dir), ==, 0);
}

/* A write that stops in the middle: earlier bytes stay, and the next write overwrites the broken
 * line. */
TEST("/state/no-room")
{
	g_autofree char *dir = g_dir_make_tmp("state-XXXXXX", NULL),
			*path = g_build_filename(dir, "state", NULL), *head = head_of(&some);
	struct walk_state *s = open_state(path, head, 0);
	struct rlimit old, room;
	char key[WALK_KEY_CHARS + 1];

	make_key(1, key);
	walk_state_note(s, key);
	g_assert_cmpint(walk_state_save(s), ==, 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	room = old;
	room.rlim_cur = strlen(head) + 33 + 10;
	setrlimit(RLIMIT_FSIZE, &room);
	make_key(2, key);
	walk_state_note(s, key);
	g_assert_cmpint(walk_state_save(s), ==, -EFBIG);
	make_key(3, key);
	walk_state_note(s, key);
	g_assert_cmpint(walk_state_save(s), ==, -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	g_assert_cmpint(walk_state_save(s), ==, 0);
	walk_state_close(&s);
	s = open_state(path, head, 0);
	for (unsigned i = 1; i <= 3; i++) {
		make_key(i, key);
		g_assert_true(walk_state_knows(s, key));
	}
	walk_state_remove(&s);
	g_rmdir(dir);
}
