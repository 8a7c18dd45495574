/* accel-load/main.c -- accel-load: requests URLs from servers, counts errors by kind, measures.
 *
 *	options --> URLs --> addresses --> a question --> the run --> the report
 */
#include <sysexits.h>
#include "accel-load/ask.h"
#include "accel-load/limits.h"
#include "accel-load/options.h"
#include "accel-load/report.h"
#include "accel-load/run.h"
#include "accel-load/verify.h"
#include "io/start/std_fds.h"

static int
check_targets(const struct load_conf *conf, const struct urls *urls)
{
	if (conf->pipeline > 1 && urls->targets->next != NULL) {
		load_message("--pipeline: expected URLs of one host, got more than one");
		return (EX_USAGE);
	}
	if (conf->http2 && urls->targets->next != NULL) {
		load_message("--http2: expected URLs of one host, got more than one");
		return (EX_USAGE);
	}
	return (ask_targets(conf, urls));
}

static int
load(struct load_conf *conf)
{
	struct verify_conf *checks = NULL;
	struct urls urls, beside;
	int code = urls_open(&urls, conf);

	beside = (struct urls){ .n = 0 };
	if (code == 0)
		code = urls_open_beside(&beside, conf, &urls);
	if (code == 0)
		code = check_targets(conf, &urls);
	if (code == 0)
		code = limits_raise(conf, &urls);
	if (code == 0 && conf->verify != NULL)
		code = verify_open(conf->verify, conf, &urls, &checks);
	conf->checks = checks;
	if (code == 0)
		code = run_load(conf, &urls, &beside);
	verify_close(&checks);
	urls_close(&beside);
	urls_close(&urls);
	return (code);
}

int
main(int argc, char **argv)
{
	struct load_conf conf;
	int code;

	if (io_open_std_fds() != 0)
		return (EX_OSERR);
	code = load_options_read(argv, &conf);
	if (code != OPTIONS_RUN)
		return (code);
	return (conf.merge ? merge_files(&conf, conf.words) : load(&conf));
}
