/* proxy-core/own_5xx.c -- see own_5xx.h */
#include "proxy-core/own_5xx.h"

#include <errno.h>

const struct own_5xx_info own_5xx_infos[OWN_5XX_CAUSES] = {
#define O(name, status, metric, doc) { status, metric, doc },
	OWN_5XX(O)
#undef O
};

static enum own_5xx
before_a_socket(int status, int err)
{
	switch (-err) {
	case EBUSY: return (OWN_5XX_queue_full);
	case EHOSTDOWN:
	case ECANCELED: return (OWN_5XX_no_backend);
	case ETIMEDOUT: return (status == 504 ? OWN_5XX_connect_late : OWN_5XX_no_socket);
	default: return (OWN_5XX_connect);
	}
}

enum own_5xx
own_5xx_of(int status, int err, bool waits)
{
	if (waits)
		return (before_a_socket(status, err));
	if (status == 503)
		return (OWN_5XX_refused);
	switch (-err) {
	case ETIMEDOUT: return (OWN_5XX_reply_late);
	case EPROTO: return (OWN_5XX_bad_reply);
	case ENOMEM:
	case EINVAL: return (OWN_5XX_other);
	default: return (OWN_5XX_hang_up);
	}
}
