/* proxy-core/check.h -- asks each backend of a block for a URL from time to time.
 *
 *   tick --check_ms over--> GET check_url, by an exchange at that backend alone
 *            2xx, 3xx: good                 any other head, no reply in check_ms, 502: sick
 *            no free socket: nothing is known
 *
 * check_url "*" is a ping of the protocol (wire/codec/codec.h) instead, whose answer is good.
 *
 * A sick backend gets no requests.  One good check ends that, and the pause after a failed connect.
 * The result is in struct backend, for all workers: one of them asks for all.
 *
 * Bounds   one check of a backend at a time; it waits for a socket like a request.
 * Thread   the worker's.
 */
#ifndef PROXY_CORE_CHECK_H
#define PROXY_CORE_CHECK_H

#include "base/list.h"
#include "io/io.h"

struct upstream;

/* Call it at each tick.  True: this worker makes checks. */
bool checks_tick(struct upstream *, uint64_t now_ns);
void checks_stop(struct upstream *); /* no check is running after it */

#endif
