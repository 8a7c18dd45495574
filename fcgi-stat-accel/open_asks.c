/* fcgi-stat-accel/open_asks.c -- see open_asks.h */
#include <glib.h>
#include <string.h>

#include "base/log.h"
#include "fcgi-stat-accel/open_asks.h"
#include "files/root.h"
#include "io/mounts.h"

#define LINES_MAX 8 /* a machine may have hundreds of mounts */

/* The first row that fits counts.  "fuse.*" fits each type that begins so.  ext4, xfs and others on
 * a local disk ask no other machine.  Servers of AFS and Ceph tell their clients what changes. */
#define OF_SMB                                                                           \
	"mount with actimeo=60,closetimeo=60 (Linux 6.0): open() takes the handle of a " \
	"file that was closed less than 60 s ago"
#define OF_FUSE                                                                                 \
	"a file system that answers OPEN with ENOSYS (no_open): the kernel then asks no more; " \
	"entry_timeout and attr_timeout spare look-ups, but no open()"
#define UNKNOWN "none known: measure open() with strace -T"

static const struct row {
	const char *type, *remedy;
} rows[] = {
	{ "nfs", "mount with nocto,actimeo=60: names and attributes are valid for 60 s, for open() "
		 "too" },
	{ "nfs4",
	    "mount with vers=3,nocto,actimeo=60; NFSv4 asks at each open() of a file without a "
	    "delegation, with nocto too" },
	{ "cifs", OF_SMB },
	{ "smb3", OF_SMB },
	{ "fuse.glusterfs", "gluster volume set VOLUME performance.open-behind on: the client then "
			    "answers open() itself" },
	{ "fuse.*", OF_FUSE },
	{ "fuse", OF_FUSE },
	{ "fuseblk", OF_FUSE },
	{ "virtiofs", OF_FUSE },
	{ "9p", "none: each open() asks, whatever cache= says" },
	{ "lustre", "lctl set_param llite.*.opencache_threshold_count=1 (Lustre 2.14)" },
	{ "beegfs", UNKNOWN },
	{ "orangefs", UNKNOWN },
	{ "gpfs", UNKNOWN },
};

struct found {
	char *root, *point, *type;
	const struct row *row;
};

struct open_asks {
	GPtrArray *v; /* struct found */
	const char *root;
};

static bool
fits(const char *pattern, const char *type)
{
	const char *star = strchr(pattern, '*');

	return (star != NULL ? strncmp(pattern, type, (size_t)(star - pattern)) == 0
			     : strcmp(pattern, type) == 0);
}

/* FUSE file systems of the desktop and of containers: a site is never on them. */
static bool
is_of_the_system(const char *point)
{
	return (g_str_has_prefix(point, "/run/") || g_str_has_prefix(point, "/sys/") ||
		g_str_has_prefix(point, "/proc/") || g_str_has_prefix(point, "/dev/"));
}

static void
see(void *arg, const char *point, const char *type)
{
	struct open_asks *o = arg;
	struct found *f;

	if (strcmp(o->root, "/") == 0 && is_of_the_system(point))
		return;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		if (!fits(rows[i].type, type))
			continue;
		f = g_new(struct found, 1);
		*f = (struct found){ g_strdup(o->root), g_strdup(point), g_strdup(type), &rows[i] };
		g_ptr_array_add(o->v, f);
		return;
	}
}

static void
found_free(gpointer p)
{
	struct found *f = p;

	g_free(f->root);
	g_free(f->point);
	g_free(f->type);
	g_free(f);
}

/* A root that cannot be opened is reported by its caller. */
static void
look_below(struct open_asks *o, const char *root)
{
	struct root r;

	if (root_open(root, &r) != 0)
		return;
	o->root = root;
	io_mounts_of(r.real.p, see, o);
	root_close(&r);
}

struct open_asks *
open_asks_find(const char *const *roots)
{
	struct open_asks *o = g_new0(struct open_asks, 1);

	o->v = g_ptr_array_new_with_free_func(found_free);
	for (; roots != NULL && *roots != NULL; roots++)
		look_below(o, *roots);
	return (o);
}

void
open_asks_log(const struct open_asks *o)
{
	for (guint i = 0; i < MIN(o->v->len, LINES_MAX); i++) {
		const struct found *f = g_ptr_array_index(o->v, i);

		log_event(LOG_WARN, NULL, "root.open-asks", LF_STR("root", f->root),
		    LF_STR("mount", f->point), LF_STR("type", f->type),
		    LF_STR("means", "the web server waits in open() for each file, warm or not"),
		    LF_STR("remedy", f->row->remedy),
		    LF_STR("otherwise",
			"pass these names on to accel-server, which opens in threads "
			"(examples/nginx, examples/lighttpd)"));
	}
	if (o->v->len > LINES_MAX)
		log_event(LOG_WARN, NULL, "root.open-asks",
		    LF_U64("further-mounts", o->v->len - LINES_MAX));
}

unsigned
open_asks_count(const struct open_asks *o)
{
	return (o->v->len);
}

void
open_asks_free(struct open_asks *o)
{
	if (o == NULL)
		return;
	g_ptr_array_free(o->v, TRUE);
	g_free(o);
}

void
open_asks_manual(struct manpage *p)
{
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		manpage_item(p, rows[i].type);
		manpage_text(p, rows[i].remedy);
	}
}
