/* server/process/renew.c -- certificates that change while the server runs.
 *
 *   main thread --digest of what is known--> helper process --fork--> a child waits for a change
 *   server/config/certificates.h <--- main thread <------- record of all files
 *        '--> new connections get the new certificate
 *
 * Only the newest generation is looked after.  A certificate that cannot be used leaves the last
 * one in use, and is logged once.
 */
#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/config/certificates.h"
#include "server/config/record.h"
#include "server/config/resources.h"
#include "server/config/verifiers.h"
#include "server/process/impl.h"

#define AGAIN_MS 1000u /* the helper has died, or has too much to do */

static struct certificates *
certificates_of(const struct process *ps)
{
	return (resources_certificates(process_newest(ps)->resources));
}

static struct verifiers *
verifiers_of(const struct process *ps)
{
	return (resources_verifiers(process_newest(ps)->resources));
}

/* For status pages. */
static void
note(struct process *ps)
{
	struct certificates_state now = certificates_state(certificates_of(ps));
	unsigned verifiers = verifiers_refused(verifiers_of(ps));

	shared_set(ps->counters_list.certificates, now.n);
	shared_set(ps->counters_list.certificates_refused, now.refused + verifiers);
	shared_set(ps->counters_list.certificates_end_s, now.ends_s);
}

/* ---- one record */

static void
renewed(void *arg, const char *file, const char *why, const char *unstapled)
{
	struct counters_list *all = &((struct process *)arg)->counters_list;

	if (why == NULL) {
		shared_set(all->renewals, all->renewals + 1);
		log_event(LOG_INFO, NULL, "certificate.renewed", LF_STR("file", file));
		if (unstapled != NULL)
			log_event(LOG_WARN, NULL, "certificate.unstapled", LF_STR("why", unstapled),
			    LF_STR("then", "clients do not get the OCSP response"),
			    LF_STR("do", "renew the file; it is read again when it changes"));
		return;
	}
	shared_set(all->renewals_refused, all->renewals_refused + 1);
	log_event(LOG_ERROR, NULL, "certificate.refused", LF_STR("why", why),
	    LF_STR("then", "the last certificate stays in use"),
	    LF_STR("do", "correct the files; they are read again when they change"));
}

static void
take(struct process *ps, struct sources *sources)
{
	g_free(ps->renewal.known);
	ps->renewal.known = sources_digest(sources);
	certificates_renew(certificates_of(ps), process_newest(ps)->config, sources, renewed, ps);
	verifiers_renew(verifiers_of(ps), process_newest(ps)->config, sources, renewed, ps);
	note(ps);
}

/* ---- asking */

/* A helper that waited for a while, and then ended, has not failed: it does so once a day, and when
 * another one takes its place. */
static void
failed(struct process *ps, const char *why)
{
	struct renewal *r = &ps->renewal;
	uint64_t now = clock_mono_ns();

	if (now - r->asked_ns > AGAIN_MS * NS_PER_MS)
		r->failed = 0;
	r->again_ns = now + AGAIN_MS * NS_PER_MS;
	if (r->failed++ == 1) /* one may be because the helper died */
		log_event(LOG_WARN, NULL, "certificate.unwatched", LF_STR("why", why),
		    LF_STR("then", "a renewed certificate is used after a reload"));
}

static void
ask(struct process *ps)
{
	struct renewal *r = &ps->renewal;
	int err;

	r->asked_ns = clock_mono_ns();
	r->again_ns = 0;
	err = helper_renew_start(ps->helper, r->known != NULL ? r->known : "-", &r->load);
	if (err != 0)
		failed(ps, strerror(-err));
}

void
process_renew_stop(struct process *ps)
{
	helper_load_stop(&ps->renewal.load);
	g_free(ps->renewal.known);
	ps->renewal = (struct renewal){ .load.fd = -1 };
}

void
process_renew_begin(struct process *ps)
{
	process_renew_stop(ps);
	note(ps);
	if (ps->helper != NULL && shared_get(ps->counters_list.certificates) != 0)
		ask(ps);
}

/* ---- for the main thread */

int
process_renew_fd(const struct process *ps, int *timeout_ms)
{
	uint64_t now = clock_mono_ns(), at = ps->renewal.again_ns;
	int ms = at <= now ? 0 : (int)((at - now) / NS_PER_MS) + 1;

	if (at != 0 && (*timeout_ms < 0 || ms < *timeout_ms))
		*timeout_ms = ms;
	return (ps->renewal.load.fd);
}

void
process_renew_more(struct process *ps)
{
	struct renewal *r = &ps->renewal;
	struct sources *sources;
	char why[1024];

	if (ps->draining || ps->helper_gone) {
		process_renew_stop(ps);
		return;
	}
	if (r->load.fd < 0) {
		if (r->again_ns != 0 && r->again_ns <= clock_mono_ns())
			ask(ps);
		return;
	}
	if (!helper_load_more(&r->load, why, sizeof(why)))
		return;
	sources = r->load.sources;
	r->load.sources = NULL;
	if (sources == NULL) {
		failed(ps, why);
		return;
	}
	r->failed = 0;
	take(ps, sources);
	sources_free(sources);
	ask(ps);
}
