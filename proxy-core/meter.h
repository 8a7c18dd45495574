/* proxy-core/meter.h -- what all pools of the process have done with one backend of one block, for status pages.
 *
 * A meter is made by the first that wants it and never freed: it keeps counting through a reload, and may be read
 * without a lock.  There are as many as backends were ever configured.
 *
 * Thread   any.  The counts are atomic; a request to an application takes six of them.
 */
#ifndef PROXY_CORE_METER_H
#define PROXY_CORE_METER_H

#include <stdint.h>

struct meter {
	unsigned block;           /* proxy_conf.number */
	const char *name;         /* "unix:/run/a.sock" */
	uint64_t requests;        /* that had a socket and are over */
	uint64_t failed;          /* connects that failed, replies that broke off, were malformed or too late */
	unsigned connecting, idle, busy; /* sockets */
	unsigned waiting;         /* requests without a socket */
	unsigned down;            /* pools that found it out of reach and pause */
	unsigned users;           /* pools and configurations; 0: not configured any more */
	struct meter *next;
};

struct meter *meter_get(unsigned block, const char *name); /* NULL: no memory */
void meter_put(struct meter *);
struct meter *meter_first(void); /* any order; then ->next */

#define meter_add(m, field, v) ((void)__atomic_add_fetch(&(m)->field, (v), __ATOMIC_RELAXED))
#define meter_read(m, field) __atomic_load_n(&(m)->field, __ATOMIC_RELAXED)

#endif
