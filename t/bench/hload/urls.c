/* t/bench/hload/urls.c -- what is asked: paths of the command line or a list, in turn or at
 * random. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "t/bench/hload/hload.h"

static struct url *urls;
static size_t n_urls;

uint64_t
random_u64(void)
{
	uint64_t z = opt.seed += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31));
}

const struct url *
url_next(void)
{
	static size_t turn;

	if (n_urls == 1)
		return (&urls[0]);
	return (&urls[opt.random ? random_u64() % n_urls : turn++ % n_urls]);
}

static void
url_expect(struct url *u)
{
	char path[4096];
	struct stat st;
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s%s", opt.check, u->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		die(path, strerror(errno));
	u->expect = "";
	u->expect_len = (size_t)st.st_size;
	if (st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			die(path, strerror(errno));
		u->expect = map;
	}
	close(fd);
}

void
url_add(const char *path)
{
	static size_t room;
	struct url *u;
	int len;

	if (n_urls == room) {
		room = room == 0 ? 64 : 2 * room;
		if ((urls = realloc(urls, room * sizeof(*urls))) == NULL)
			die("memory", strerror(errno));
	}
	u = &urls[n_urls++];
	memset(u, 0, sizeof(*u));
	u->path = strdup(path);
	/* Connection comes last: the floor program looks for it there. */
	len = asprintf(&u->request, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", opt.method, path,
	    opt.host, opt.headers, opt.close ? "Connection: close\r\n" : "");
	if (u->path == NULL || len < 0)
		die("memory", strerror(errno));
	u->request_len = (size_t)len;
	if (u->request_len > REQUEST_MAX)
		die(path, "the request is over 2048 bytes");
	if (opt.check != NULL && strcmp(opt.method, "GET") == 0)
		url_expect(u);
}

void
urls_read(const char *name)
{
	FILE *f = fopen(name, "r");
	char line[4096], *p;

	if (f == NULL)
		die(name, strerror(errno));
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		p = line;
		if (strncmp(p, "http://", 7) == 0)
			p += 7 + strcspn(p + 7, "/");
		if (*p == '/')
			url_add(p);
	}
	fclose(f);
	if (n_urls == 0)
		die(name, "no URL in it");
}
