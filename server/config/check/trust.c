/* server/config/check/trust.c -- see trust.h */
#include <stdlib.h>

#include "server/config/check/trust.h"

/* ---- from the settings, which server/config/language/table.c has checked */

static void
add(struct trust_list *l, struct text name)
{
	if (text_eq(name, TEXT("all")))
		l->all = true;
	else if (text_eq(name, TEXT("unix")))
		l->local = true;
	else if (ip_net_read(name, &l->nets[l->n]))
		l->n++;
}

static bool
room(struct trust_list *l, size_t n)
{
	l->nets = calloc(n + 1, sizeof(*l->nets));
	return (l->nets != NULL);
}

static bool
fill(struct trust *t, const struct conf *conf)
{
	const struct conf_list *list = &conf->proxy_protocol_peers;
	const struct conf_map *map = &conf->forwarders;
	bool trusted;
	size_t i;

	if (!room(&t->proxies, list->n + map->n) || !room(&t->forwarders, map->n) ||
	    !room(&t->strangers, map->n))
		return (false);
	for (i = 0; i < list->n; i++)
		add(&t->proxies, list->v[i]);
	for (i = 0; i < map->n; i++) {
		trusted = text_eq(map->v[i].value, TEXT("trust"));
		add(trusted ? &t->forwarders : &t->strangers, map->v[i].key);
		if (trusted && conf->hap_proxy)
			add(&t->proxies, map->v[i].key);
	}
	t->fields = conf->forward_fields;
	return (true);
}

struct trust *
trust_new(const struct config *cfg, const char *socket)
{
	struct trust *t = calloc(1, sizeof(*t));
	struct conf conf;

	config_socket(cfg, socket, &conf);
	if (t != NULL && !fill(t, &conf)) {
		trust_free(t);
		return (NULL);
	}
	return (t);
}

void
trust_free(struct trust *t)
{
	if (t == NULL)
		return;
	free(t->proxies.nets);
	free(t->forwarders.nets);
	free(t->strangers.nets);
	free(t);
}

/* ---- asking */

static bool
has_ip(const struct trust_list *l, const struct ip *ip)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (ip_net_has(&l->nets[i], ip))
			return (true);
	return (false);
}

static bool
has_peer(const struct trust_list *l, const union io_addr *peer)
{
	struct ip ip;

	if (l->all)
		return (true);
	return (ip_of_sockaddr(&peer->sa, &ip) ? has_ip(l, &ip) : l->local);
}

bool
trust_proxies(const struct trust *t, const union io_addr *peer)
{
	return (t != NULL && has_peer(&t->proxies, peer));
}

bool
trust_forwards(const struct trust *t, const union io_addr *peer)
{
	return (t != NULL && has_peer(&t->forwarders, peer) && !has_peer(&t->strangers, peer));
}

bool
trust_hop(const void *trust, const struct ip *ip)
{
	const struct trust *t = trust;

	return (has_ip(&t->forwarders, ip) && !has_ip(&t->strangers, ip));
}
