/* proxy-core/app.h -- what all pools of the process know about one application.
 *
 * A threaded application made with libfcgi binds a thread to each kept socket.  Once as many
 * sockets are kept as it has threads, the next connection waits in the listen queue until a kept
 * socket is closed - and it need not be the same worker, nor the same block of the configuration,
 * that keeps them.  No number of one pool can cure that.  So the pool that notices (pool.h says
 * how) calls the application crowded for a while: all pools then close their idle sockets and keep
 * none, the listen queue serves everybody in turn, and nobody waits for longer than the noticing
 * takes.  Each time it happens again the while doubles.  If the guess was wrong, the price is a
 * connect per request for a second.
 *
 * Thread   any.
 */
#ifndef PROXY_CORE_APP_H
#define PROXY_CORE_APP_H

#include <stdbool.h>
#include <stdint.h>

#define APP_CROWDED_MIN_MS 1000
#define APP_CROWDED_MAX_MS 64000

struct app;

struct app *app_get(const char *address); /* the same one for the same address; NULL: no memory */
void app_put(struct app **);

void app_idle_add(struct app *, int n);            /* idle sockets, in all pools */
void app_kept(struct app *, uint64_t now_ns);      /* a socket was kept after its reply */
/* Some socket is idle, or was kept since: the application answers those while others wait. */
bool app_keeps_since(const struct app *, uint64_t since_ns);

bool app_crowded(const struct app *, uint64_t now_ns);
/* True when this is news, false while it is crowded already; *first: never seen before. */
bool app_set_crowded(struct app *, uint64_t now_ns, bool *first);

#endif
