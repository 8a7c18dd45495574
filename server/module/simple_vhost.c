/* server/module/simple_vhost.c -- simple-vhost.*: a directory for each host.
 *
 *   server-root + host         + document-root   if it is a directory
 *   server-root + default-host + document-root   otherwise, and without a host
 *   server.document-root                         otherwise
 */
#include "base/log.h"
#include "files/root.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/request/client.h"
#include "server/module/module.h"
#include "server/module/vhost.h"
#include "server/request/request.h"
#include "server/worker/base.h"

static bool
is_used(const struct conf *c)
{
	return (c->vhost_root != NULL);
}

static struct vhost_dir
dir_of(struct request *r, struct text host)
{
	const struct conf *c = r->conf;
	const struct text parts[] = { host, text_of(c->vhost_docroot) };
	struct vhost_dir d = { .root = resources_root(r->worker->conf.resources, c->vhost_root) };

	if (host.n != 0)
		d.name = vhost_join(r, parts, c->vhost_docroot != NULL ? 2 : 1);
	d.base = d.name.n;
	return (d);
}

static enum vhost_is
find(struct request *r, struct vhost_dir *d)
{
	enum vhost_is is;

	*d = dir_of(r, vhost_host(r));
	is = vhost_find(r, d);
	if (is != VHOST_NO)
		return (is);
	*d = dir_of(r, text_of(r->conf->vhost_default));
	return (vhost_find(r, d));
}

static const struct handler *
route_simple_vhost(struct request *r)
{
	struct vhost_dir d;
	enum vhost_is is = find(r, &d);

	if (r->conf->vhost_debug && is != VHOST_ASK)
		log_limited(100, LOG_INFO, conn_id(r), "vhost.found", LF_TEXT("host", r->http.host),
		    LF_TEXT("below", is == VHOST_YES ? d.root->name : TEXT_NONE),
		    LF_TEXT("directory", is == VHOST_YES ? d.name : TEXT("server.document-root")),
		    conn_client(r));
	return (vhost_route(r, is));
}

static int
place_simple_vhost(struct request *r)
{
	struct vhost_dir d;

	return (find(r, &d) == VHOST_YES ? vhost_place(r, &d, request_path(r)) : 0);
}

const struct module module_simple_vhost = {
	.name = "simple_vhost",
	.is_used = is_used,
	.route = route_simple_vhost,
	.place = place_simple_vhost,
};
