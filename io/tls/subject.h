/* io/tls/subject.h -- the subject and the number of a client's certificate, as facts.
 *
 *   C=DE, O=Org, CN=alice  -->  SSL_CLIENT_S_DN      C = DE, O = Org, CN = alice
 *                               SSL_CLIENT_S_DN_C    DE
 *                               SSL_CLIENT_S_DN_O    Org
 *                               SSL_CLIENT_S_DN_CN   alice
 *                               SSL_CLIENT_M_SERIAL  4D
 *
 * An authority has signed it, but the client may have chosen the words.  Of a part that comes twice
 * the last one counts.  Values are UTF-8.  A value with a control byte, or a longer one, is empty:
 * cut, it could be the name of another client.
 */
#ifndef IO_TLS_SUBJECT_H
#define IO_TLS_SUBJECT_H

#include <openssl/x509.h>

struct tls_draft;

#define TLS_SUBJECT_PARTS 24u /* of one with more there are none */
#define TLS_SUBJECT_VALUE 256u
#define TLS_SUBJECT_MAX   1024u /* bytes of SSL_CLIENT_S_DN */

void tls_subject_add(struct tls_draft *, const X509 *);
/* ... the rows of a name */
void tls_subject_names(struct tls_draft *, const X509_NAME *);

#endif
