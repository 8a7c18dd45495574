/* wire/codec/client_fields.h -- what every application gets about the client, in any protocol.
 *
 *   FORWARD_X          X-Forwarded-For: CLIENT, PROXY   one address for each hop, the last one is
 *                                                       the peer's
 *                      X-Forwarded-Proto: https
 *                      X-Forwarded-Host: example.org    and X-Host, as lighttpd 1.5
 *   FORWARD_STANDARD   Forwarded: for="[2001:db8::1]";host=example.org;proto=https  (RFC 7239)
 *   request_id         X-Request-ID: 4bf92f3577b34da6a3ce929d0e0e4736
 *   traceparent        traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01  (W3C)
 *
 * A client can send any value, and a proxy passes fields on that it does not know.  So only the
 * fields in claims are believed, and only from a trusted peer: lists are continued, others pass.
 * All others are replaced or, if applications take such values from a proxy, dropped: X-Real-IP,
 * X-Forwarded-Port, Front-End-Https and so on.
 *
 * Pure.  wire/forwarded.h reads such fields; this file writes them.
 */
#ifndef WIRE_CLIENT_FIELDS_H
#define WIRE_CLIENT_FIELDS_H

#include "wire/http1/fields.h"

/* Texts are valid during the call. */
typedef void client_field_put(void *arg, struct text name, struct text value);

/* Calls put once for each field that the configuration does not set itself.  index: of the
 * request's headers.  0 or -ENOMEM. */
int client_fields_write(const struct proxy_request *, const struct fields *index,
    client_field_put *, void *arg);
/* True for the field index->v[i] of the client that an application may get: header_passes() is
 * true, client_fields_write() does not write it, and it is not a claim of an untrusted peer about
 * the client; or the configuration sets it. */
bool client_field_passes(const struct proxy_request *, const struct fields *index, size_t i);

#endif
