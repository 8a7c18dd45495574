#include "accel-pool/kept.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/text.h"

struct file_id {
	uint64_t dev, ino;
};

struct file_kept {
	struct file_id id;
	uint64_t bytes;
	enum kept_reason why;
};

static guint
id_hash(gconstpointer p)
{
	const struct file_id *id = p;

	return ((guint)(id->ino * UINT64_C(0x9e3779b97f4a7c15) >> 32) ^ (guint)id->dev);
}

static gboolean
id_equal(gconstpointer a, gconstpointer b)
{
	return (memcmp(a, b, sizeof(struct file_id)) == 0);
}

void
kept_init(struct kept *k)
{
	memset(k, 0, sizeof(*k));
	pthread_mutex_init(&k->lock, NULL);
	k->files = g_hash_table_new_full(id_hash, id_equal, NULL, g_free);
}

void
kept_free(struct kept *k)
{
	g_hash_table_destroy(k->files);
	pthread_mutex_destroy(&k->lock);
}

void
kept_add(struct kept *k, enum kept_reason why, dev_t dev, ino_t ino, uint64_t bytes)
{
	struct file_kept *f;

	pthread_mutex_lock(&k->lock);
	k->sums[why].files++;
	k->sums[why].bytes += bytes;
	if (why == KEPT_other && g_hash_table_size(k->files) < KEPT_MAX) {
		f = g_new(struct file_kept, 1);
		*f = (struct file_kept){ { dev, ino }, bytes, why };
		g_hash_table_replace(k->files, &f->id, f);
	}
	pthread_mutex_unlock(&k->lock);
}

/* ---------------------------------------------------------------- mappings */

static void
name_process(struct kept_sum *s, const char *pid)
{
	char path[64], comm[32] = "";
	FILE *fh;

	if (s->by[0] != '\0')
		return;
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	fh = fopen(path, "re");
	if (fh != NULL && fgets(comm, sizeof(comm), fh) != NULL)
		comm[strcspn(comm, "\n")] = '\0';
	if (fh != NULL)
		fclose(fh);
	for (char *c = comm; *c != '\0'; c++) /* a process chooses its own name */
		if (!byte_is_alnum(*c) && strchr("-_.:/", *c) == NULL)
			*c = '?';
	snprintf(s->by, sizeof(s->by), "%s (%.10s)", comm, pid);
}

static void
move(struct kept *k, struct file_kept *f, enum kept_reason why, const char *pid)
{
	if (why > f->why || f->why == why)
		/* a file keeps the reason that says most: locked, then mapped, then other */
		return;
	k->sums[f->why].files--;
	k->sums[f->why].bytes -= f->bytes;
	f->why = why;
	k->sums[why].files++;
	k->sums[why].bytes += f->bytes;
	name_process(&k->sums[why], pid);
}

/* The file of "7f1c-7f1d r--p 00000000 fd:00 1234   /path", or NULL. */
static struct file_kept *
mapped_file(const struct kept *k, const char *line)
{
	unsigned long from, to, offset;
	unsigned major_no, minor_no;
	struct file_id id = { 0, 0 };
	char mode[5];

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %" SCNu64, &from, &to, mode, &offset, &major_no,
		&minor_no, &id.ino) != 7)
		return (NULL);
	id.dev = makedev(major_no, minor_no);
	return (g_hash_table_lookup(k->files, &id));
}

static bool
is_header(const char *line)
{
	return (
	    strspn(line, "0123456789abcdef") > 0 && line[strspn(line, "0123456789abcdef")] == '-');
}

static void
search_process(struct kept *k, const char *pid)
{
	struct file_kept *f = NULL;
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *fh;

	snprintf(path, sizeof(path), "/proc/%.20s/smaps", pid);
	fh = fopen(path, "re");
	while (fh != NULL && getline(&line, &room, fh) > 0) {
		if (is_header(line)) {
			f = mapped_file(k, line);
			if (f != NULL)
				move(k, f, KEPT_mapped, pid);
		} else if (f != NULL && strncmp(line, "Locked:", 7) == 0 &&
			   strtoul(line + 7, NULL, 10) > 0)
			move(k, f, KEPT_locked, pid);
	}
	free(line);
	if (fh != NULL)
		fclose(fh);
}

void
kept_explain(struct kept *k)
{
	DIR *proc = g_hash_table_size(k->files) > 0 ? opendir("/proc") : NULL;
	const struct dirent *de;

	while (proc != NULL && (de = readdir(proc)) != NULL)
		if (byte_is_digit(de->d_name[0]))
			search_process(k, de->d_name);
	if (proc != NULL)
		closedir(proc);
}
