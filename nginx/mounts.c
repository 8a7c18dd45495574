/* nginx/mounts.c -- which mount a path is on, whether each open() asks another program or machine
 * there, whatever is in memory, and whether all of it is in memory.
 *
 * The kernel's table of mounts is read again when it has changed; neither waits for a mount.  A
 * symbolic link that leads into such a mount from elsewhere is not seen. */
#include "nginx/stat_accel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TABLE_MAX (1u << 20)

struct mount {
	ngx_str_t point;
	uint32_t id; /* of the point, which stays when the table is read again */
	dev_t dev;
	bool asks, memory;
};

/* Those of fcgi-stat-accel/open_asks.c (t/nginx/mounts.t), and two where open() of a name in memory
 * asks only sometimes, which is too often for an event loop: ceph, afs. */
static const char *const types[] = { "nfs", "nfs4", "cifs", "smb3", "fuse", "fuseblk", "virtiofs",
	"9p", "lustre", "beegfs", "orangefs", "gpfs", "ceph", "afs" };

static int table = -1;
static char *text; /* of the table; the points lie in it */
static struct mount *mounts;
static ngx_uint_t n_mounts;
static time_t looked;

static bool
type_asks(const char *type)
{
	if (strncmp(type, "fuse.", 5) == 0)
		return (true);
	for (ngx_uint_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(type, types[i]) == 0)
			return (true);
	return (false);
}

/* Or in swap.  It does not know RWF_NOWAIT, and statfs(2) may ask the others. */
static bool
type_is_memory(const char *type)
{
	return (strcmp(type, "tmpfs") == 0 || strcmp(type, "ramfs") == 0);
}

/* "\040" is a space. */
static size_t
decode(char *s)
{
	char *to = s, *from = s;

	for (; *from != '\0'; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] != '\0' &&
		    from[3] != '\0') {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else
			*to = *from++;
	}
	*to = '\0';
	return ((size_t)(to - s));
}

/* 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
 *       dev        point                       type */
static void
take_line(char *line)
{
	char *save = NULL, *word = strtok_r(line, " ", &save), *point = NULL, *type;
	unsigned major = 0, minor = 0;

	for (unsigned i = 0; word != NULL && strcmp(word, "-") != 0; i++) {
		if (i == 2)
			sscanf(word, "%u:%u", &major, &minor);
		if (i == 4)
			point = word;
		word = strtok_r(NULL, " ", &save);
	}
	type = strtok_r(NULL, " ", &save);
	if (point == NULL || type == NULL)
		return;
	mounts[n_mounts] = (struct mount){
		.point = { decode(point), (u_char *)point },
		.dev = makedev(major, minor),
		.asks = type_asks(type),
		.memory = type_is_memory(type),
	};
	mounts[n_mounts].id = ngx_crc32_short((u_char *)point, mounts[n_mounts].point.len);
	n_mounts++;
}

static void
read_table(void)
{
	size_t n = 0, lines = 1;
	ssize_t got;
	char *save = NULL;

	n_mounts = 0;
	if (text == NULL)
		text = ngx_alloc(TABLE_MAX, ngx_cycle->log);
	if (text == NULL || lseek(table, 0, SEEK_SET) != 0)
		return;
	while (n < TABLE_MAX - 1 && (got = read(table, text + n, TABLE_MAX - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	ngx_free(mounts);
	mounts = ngx_alloc(lines * sizeof(*mounts), ngx_cycle->log);
	if (mounts == NULL)
		return;
	for (char *l = strtok_r(text, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save))
		take_line(l);
}

void
accel_mounts_init(void)
{
	if (table < 0)
		table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (table >= 0)
		read_table();
}

/* Once a second. */
static void
look_for_changes(void)
{
	struct pollfd p = { .fd = table, .events = POLLPRI };

	if (looked == ngx_time() || table < 0)
		return;
	looked = ngx_time();
	if (poll(&p, 1, 0) > 0)
		read_table();
}

static bool
lies_below(const ngx_str_t *path, const ngx_str_t *point)
{
	if (point->len == 1)
		return (true);
	return (path->len >= point->len && ngx_memcmp(path->data, point->data, point->len) == 0 &&
		(path->len == point->len || path->data[point->len] == '/'));
}

/* The last mount with the longest point counts: it hides the others.  NULL: unknown. */
static const struct mount *
mount_of(const ngx_str_t *path)
{
	const struct mount *best = NULL;

	look_for_changes();
	for (ngx_uint_t i = 0; i < n_mounts; i++)
		if (lies_below(path, &mounts[i].point) &&
		    (best == NULL || mounts[i].point.len >= best->point.len))
			best = &mounts[i];
	return (best);
}

bool
accel_mount_asks(const ngx_str_t *path)
{
	const struct mount *m = mount_of(path);

	return (m != NULL && m->asks);
}

bool
accel_mount_is_memory(dev_t dev)
{
	for (ngx_uint_t i = 0; i < n_mounts; i++)
		if (mounts[i].dev == dev)
			return (mounts[i].memory);
	return (false);
}

uint32_t
accel_mount_id(const ngx_str_t *path)
{
	const struct mount *m = mount_of(path);

	return (m != NULL ? m->id : 0);
}
