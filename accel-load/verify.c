#include "accel-load/verify.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "accel-load/hash_list.h"
#include "accel-load/input.h"
#include "base/must.h"
#include "base/pattern.h"
#include "io/io.h"
#include "io/read_whole.h"
#include "wire/urlpath.h"

enum kind { KIND_LENGTH, KIND_HASH, KIND_PATTERN, KIND_DIR };

/* What a URL's answers must be. */
struct verify_url {
	char *path;       /* decoded, without query */
	uint64_t size;    /* of the file, plus 1; 0: unknown.  Atomic. */
	uint64_t key;     /* of the pattern; 0: unknown.  Atomic. */
	const char *hash; /* of hashes */
	struct text file; /* dir:, of files */
};

struct verify_conf {
	enum kind kind;
	const struct urls *urls;
	struct verify_url *of; /* as many as URLs */
	struct hash_list list;
	GHashTable *files; /* path --> struct text, yours */
	unsigned *told;    /* messages so far; atomic */
};

/* ---------------------------------------------------------------- start */

static void
file_free(gpointer p)
{
	struct text *t = p;

	free((char *)t->p);
	g_free(t);
}

static int
path_of(struct verify_url *of, const char *path)
{
	struct text t = { path, strcspn(path, "?#") };
	int n;

	of->path = g_malloc(t.n + 1);
	n = urlpath_name(t, of->path);
	if (n < 0)
		load_message("%s: cannot be verified: the path has a bad escape, or .. above \"/\"",
		    path);
	return (n < 0 ? EX_DATAERR : 0);
}

static int
open_hashes(struct verify_conf *v, const char *name)
{
	struct buf text;
	const char *why;
	unsigned line;
	bool ok = false;
	int err;

	buf_init(&text, HASH_LIST_MAX);
	err = input_read(name, &text);
	if (err < 0)
		load_message("%s: %s", name,
		    err == -EFBIG ? "expected at most 256 MiB" : strerror(-err));
	else if (!(ok = hash_list_read(buf_as_text(&text), &v->list, &line, &why)))
		load_message("%s:%u: %s", name, line, why);
	buf_free(&text);
	if (!ok)
		return (err < 0 && err != -EFBIG ? EX_NOINPUT : EX_DATAERR);
	for (size_t i = 0; i < v->urls->n; i++) {
		v->of[i].hash = hash_list_find(&v->list, v->of[i].path);
		if (v->of[i].hash != NULL)
			continue;
		load_message("%s: no line for %s; a PATH in it is the end of a URL's path: "
			     "`cd ROOT && sha256sum FILE...`",
		    name, v->urls->url[i].path);
		return (EX_DATAERR);
	}
	return (0);
}

static int
read_one(struct verify_conf *v, struct verify_url *of, int root, uint64_t *left)
{
	struct text *file = g_hash_table_lookup(v->files, of->path);
	int err = 0;

	if (file == NULL) {
		file = g_new0(struct text, 1);
		*file = io_read_whole(root, of->path + 1, *left, &err);
		if (file->p == NULL) {
			g_free(file);
			return (err);
		}
		*left -= file->n;
		g_hash_table_insert(v->files, of->path, file);
	}
	of->file = *file;
	of->size = file->n + 1;
	return (0);
}

static int
open_dir(struct verify_conf *v, const char *dir)
{
	uint64_t left = VERIFY_DIR_MAX;
	int root, err = io_root_open(dir, &root);

	if (err < 0) {
		load_message("%s: %s", dir, strerror(-err));
		return (EX_NOINPUT);
	}
	v->files = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, file_free);
	for (size_t i = 0; i < v->urls->n && err == 0; i++) {
		err = read_one(v, &v->of[i], root, &left);
		if (err < 0)
			load_message("%s%s: %s", dir, v->of[i].path,
			    err == -EFBIG ? "all files have more than 4 GiB; --verify=pattern and "
					    "--verify=hash:FILE need no memory for them"
					  : strerror(-err));
	}
	close(root);
	return (err < 0 ? EX_NOINPUT : 0);
}

static int
open_kind(struct verify_conf *v, const char *spec, const struct load_conf *conf)
{
	if (strcmp(spec, "length") == 0)
		v->kind = KIND_LENGTH;
	else if (strcmp(spec, "pattern") == 0)
		v->kind = KIND_PATTERN;
	else if (strncmp(spec, "dir:", 4) == 0)
		v->kind = KIND_DIR;
	else if (strncmp(spec, "hash:", 5) == 0)
		v->kind = KIND_HASH;
	else {
		load_message("--verify: expected length, hash:FILE, pattern or dir:DIR, got \"%s\"",
		    spec);
		return (EX_USAGE);
	}
	if (conf->head)
		load_message("--verify: an answer to --head has no body");
	else if (v->kind == KIND_HASH && conf->range.kind != RANGE_NONE)
		load_message("--verify: a hash is of a whole file; ranges need pattern or dir:DIR");
	else
		return (0);
	return (EX_USAGE);
}

int
verify_open(const char *spec, const struct load_conf *conf, const struct urls *urls,
    struct verify_conf **vp)
{
	struct verify_conf *v = g_new0(struct verify_conf, 1);
	int code;

	v->urls = urls;
	v->of = g_new0(struct verify_url, urls->n);
	v->told = g_new0(unsigned, 1);
	code = open_kind(v, spec, conf);
	for (size_t i = 0; i < urls->n && code == 0; i++)
		code = path_of(&v->of[i], urls->url[i].path);
	if (code == 0 && v->kind == KIND_HASH)
		code = open_hashes(v, spec + 5);
	if (code == 0 && v->kind == KIND_DIR)
		code = open_dir(v, spec + 4);
	*vp = v;
	if (code != 0)
		verify_close(vp);
	return (code);
}

void
verify_close(struct verify_conf **vp)
{
	struct verify_conf *v = *vp;

	*vp = NULL;
	if (v == NULL)
		return;
	if (v->files != NULL)
		g_hash_table_destroy(v->files);
	hash_list_free(&v->list);
	for (size_t i = 0; i < v->urls->n; i++)
		g_free(v->of[i].path);
	g_free(v->of);
	g_free(v->told);
	g_free(v);
}

bool
verify_wants_bytes(const struct verify_conf *v)
{
	return (v != NULL && v->kind != KIND_LENGTH);
}

/* ---------------------------------------------------------------- a body */

static uint64_t
get(const uint64_t *v)
{
	return (__atomic_load_n(v, __ATOMIC_RELAXED));
}

void
verify_begin(struct verify *v, const struct verify_conf *conf, const struct url *url,
    uint64_t first, int64_t total)
{
	v->conf = conf;
	if (conf == NULL)
		return;
	v->url = url;
	v->of = &conf->of[url - conf->urls->url];
	v->first = first;
	v->total = total;
	v->received = 0;
	v->wrong_at = UINT64_MAX;
	v->key = get(&v->of->key);
	if (conf->kind != KIND_HASH)
		return;
	if (v->sum != NULL)
		g_checksum_reset(v->sum);
	else
		v->sum = g_checksum_new(conf->list.type);
}

/* The first n bytes of this body show its key, unless another body of the URL has shown it
 * meanwhile.  Fewer than 8 bytes may fit a wrong key by chance, and other bodies must not take that
 * key over.  False: they are wrong. */
static bool
key_find(struct verify *v, size_t n)
{
	uint64_t key = get(&v->of->key);
	size_t right = 0;

	if (key != 0)
		right = pattern_check(key, v->first, v->head, n);
	else if (pattern_find(v->of->path, strlen(v->of->path), v->first, v->head, n, &key))
		right = n;
	if (right < n) {
		v->wrong_at = v->first + right;
		return (false);
	}
	if (n == sizeof(v->head))
		__atomic_store_n(&v->of->key, key, __ATOMIC_RELAXED);
	v->key = key;
	return (true);
}

static void
check_pattern(struct verify *v, const char *bytes, size_t n)
{
	size_t have, right;

	if (v->key == 0 && v->received < sizeof(v->head)) {
		have = (size_t)v->received;
		right = n < sizeof(v->head) - have ? n : sizeof(v->head) - have;
		memcpy(v->head + have, bytes, right);
		if (have + right < sizeof(v->head) || !key_find(v, sizeof(v->head)))
			return;
	}
	right = pattern_check(v->key, v->first + v->received, bytes, n);
	if (right < n)
		v->wrong_at = v->first + v->received + right;
}

static void
check_file(struct verify *v, const char *bytes, size_t n)
{
	uint64_t at = v->first + v->received;
	struct text f = v->of->file;
	size_t i = 0;

	if (at > f.n || n > f.n - at)
		n = at > f.n ? 0 : f.n - at; /* the rest is too long, not wrong */
	if (n == 0 || memcmp(f.p + at, bytes, n) == 0)
		return;
	while (f.p[at + i] == bytes[i])
		i++;
	v->wrong_at = at + i;
}

void
verify_bytes(struct verify *v, const char *bytes, size_t n)
{
	if (v->conf == NULL)
		return;
	if (bytes != NULL && n > 0 && v->wrong_at == UINT64_MAX) {
		switch (v->conf->kind) {
		case KIND_LENGTH: break;
		case KIND_HASH: g_checksum_update(v->sum, (const guchar *)bytes, (gssize)n); break;
		case KIND_PATTERN: check_pattern(v, bytes, n); break;
		case KIND_DIR: check_file(v, bytes, n); break;
		}
	}
	v->received += n;
}

static bool
may_tell(const struct verify_conf *c)
{
	unsigned nth = __atomic_fetch_add(c->told, 1, __ATOMIC_RELAXED);

	if (nth == VERIFY_MESSAGES)
		load_message("further answers that are not as expected are counted, not listed");
	return (nth < VERIFY_MESSAGES);
}

/* Compares the length of the file in this answer with the known length. */
static enum load_error
check_length(struct verify *v)
{
	uint64_t end = v->first + v->received, known = 0,
		 size = v->total >= 0 ? (uint64_t)v->total : end;

	/* A part of a file of unknown length says nothing about its end. */
	if (v->total < 0 && v->first > 0)
		size = get(&v->of->size) > end ? get(&v->of->size) - 1 : end;
	if (__atomic_compare_exchange_n(&v->of->size, &known, size + 1, false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED) ||
	    known == size + 1)
		return (LOAD_OK);
	if (may_tell(v->conf))
		load_message("%s: %" PRIu64 " bytes, expected %" PRIu64, v->url->path, size,
		    known - 1);
	return (size + 1 < known ? LOAD_SHORT : LOAD_LONG);
}

static bool
content_is_right(struct verify *v)
{
	const char *hash;

	if (v->conf->kind == KIND_PATTERN && v->key == 0 && v->received > 0 &&
	    v->received < sizeof(v->head))
		key_find(v, (size_t)v->received);
	if (v->wrong_at != UINT64_MAX) {
		if (may_tell(v->conf))
			load_message("%s: wrong byte at %" PRIu64, v->url->path, v->wrong_at);
		return (false);
	}
	if (v->conf->kind != KIND_HASH)
		return (true);
	hash = g_checksum_get_string(v->sum);
	if (strcmp(hash, v->of->hash) == 0)
		return (true);
	if (may_tell(v->conf))
		load_message("%s: hash %s, expected %s", v->url->path, hash, v->of->hash);
	return (false);
}

enum load_error
verify_end(struct verify *v)
{
	enum load_error how;

	if (v->conf == NULL)
		return (LOAD_OK);
	how = check_length(v);
	if (how == LOAD_OK && !content_is_right(v))
		how = LOAD_WRONG;
	v->conf = NULL;
	return (how);
}

void
verify_free(struct verify *v)
{
	if (v->sum != NULL)
		g_checksum_free(v->sum);
	v->sum = NULL;
}
