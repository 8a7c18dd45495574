/* accel-load/options.c -- see options.h */
#include "accel-load/options.h"

#include <math.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include "base/clock.h"
#include "wire/http1/headers.h"

#define FETCHES_MAX 1000000000000ull
#define SECONDS_MAX 86400.0
#define RATE_MAX    1e7
#define TIMEOUT_S   10.0
#define DEFAULT_S   10   /* without --fetches and --seconds */
#define BOUNDED_S   3600 /* with --fetches only: the run ends by then in any case */

static struct given {
	struct load_conf conf;
	double seconds, timeout, silence, warm_up;
	unsigned manual; /* 1: as text, 2: as roff */
	bool version;
} given;

#define AT(field) offsetof(struct given, field)

/* ---------------------------------------------------------------- values */

static bool
read_double(const char *text, double min, double max, double *out)
{
	char *end;
	double v;

	if (!byte_is_digit(*text) && *text != '.')
		return (false); /* no blanks, signs, "inf" and "nan" */
	v = strtod(text, &end);
	if (end == text || *end != '\0' || !(v >= min && v <= max))
		return (false);
	*out = v;
	return (true);
}

static bool
read_seconds(const char *text, void *at)
{
	return (read_double(text, 0.001, SECONDS_MAX, at));
}

static bool
read_rate(const char *text, void *at)
{
	return (read_double(text, 0.001, RATE_MAX, at));
}

static bool
read_percent(const char *text, void *at)
{
	return (read_double(text, 0, 100, at));
}

/* "NAME: value"; a line break would begin another field. */
static bool
read_header(const char *text, void *at)
{
	struct text t = text_of(text), name;

	return (text_next(&t, ':', &name) && t.p != NULL && header_is_token(name) &&
		header_value_ok(t));
}

/* "NAME=VALUE" */
static bool
read_setting(const char *text, void *at)
{
	const char *value = strchr(text, '=');

	return (value != NULL && value != text && (size_t)(value - text) <= TLS_SETTING_MAX);
}

/* "100-199", "100-", "random:4k" */
static bool
read_range(const char *text, void *at)
{
	struct text t = text_of(text), first;
	struct load_range r = { .kind = RANGE_FIXED, .last = UINT64_MAX };

	if (text_starts(t, TEXT("random:"))) {
		text_take(&t, 7);
		r.kind = RANGE_RANDOM;
		if (!text_size(t, 1, INT64_MAX, &r.bytes))
			return (false);
	} else if (!text_next(&t, '-', &first) || t.p == NULL || text_u64(first, &r.first) != 0 ||
		   (t.n > 0 && text_u64(t, &r.last) != 0) || r.first > r.last ||
		   r.first > INT64_MAX)
		return (false);
	*(struct load_range *)at = r;
	return (true);
}

static bool
read_priority(const char *text, void *at)
{
	return (strncmp(text, "u=", 2) == 0 && text[2] >= '0' && text[2] <= '7' &&
		(text[3] == '\0' || strcmp(text + 3, ",i") == 0));
}

static bool
read_from(const char *text, void *at)
{
	struct in6_addr a;

	return (inet_pton(strchr(text, ':') != NULL ? AF_INET6 : AF_INET, text, &a) == 1);
}

/* ---------------------------------------------------------------- the table */

static const struct option rows[] = {
	{ "parallel", 'c', "N", OPTION_NUMBER, AT(conf.connections), 1, LOAD_CONNECTIONS_MAX, "1",
	    .prose = "Connections." },
	{ "fetches", 'n', "N", OPTION_SIZE, AT(conf.fetches), 1, FETCHES_MAX,
	    .prose = "Ends after N requests; suffixes k m g." },
	{ "seconds", 'd', "S", OPTION_OWN, AT(seconds), .read = read_seconds,
	    .expected = "seconds from 0.001 to 86400",
	    .prose = "Ends after S seconds.  Default: 10; with --fetches and --hold 3600." },
	{ "warm-up", '\0', "S", OPTION_OWN, AT(warm_up), .read = read_seconds,
	    .expected = "seconds from 0.001 to 86400",
	    .prose = "S seconds before those of --seconds, which the report leaves out: "
		     "connections are made, and files are read for the first time." },
	{ "rate", 'r', "R", OPTION_OWN, AT(conf.rate), .read = read_rate,
	    .expected = "requests a second, 0.001 to 10000000",
	    .prose = "Open loop: starts R requests a second by the clock, answered or not." },
	{ "pipeline", 'p', "N", OPTION_NUMBER, AT(conf.pipeline), 1, LOAD_PIPELINE_MAX, "1",
	    .prose = "Sends N requests at once, then reads N answers." },
	{ "http2", '\0', NULL, OPTION_FLAG, AT(conf.http2),
	    .prose = "HTTP/2: with https:// by ALPN, with http:// at once (prior knowledge)." },
	{ "streams", '\0', "N", OPTION_NUMBER, AT(conf.streams), 1, LOAD_STREAMS_MAX, "1",
	    .prose = "HTTP/2: N requests at the same time on each connection." },
	{ "priority", '\0', "u=N[,i]", OPTION_TEXT, AT(conf.priority), .read = read_priority,
	    .expected = "u=0 to u=7, or the same with ,i",
	    .prose = "HTTP/2: sends this field \"priority\" (RFC 9218)." },
	{ "beside", '\0', "FILE", OPTION_TEXT, AT(conf.beside),
	    .prose = "HTTP/2: other streams of each connection request the URLs of FILE, all the "
		     "time; the report has them apart." },
	{ "beside-priority", '\0', "u=N[,i]", OPTION_TEXT, AT(conf.beside_priority),
	    .read = read_priority, .expected = "u=0 to u=7, or the same with ,i",
	    .prose = "As --priority, for the requests of --beside." },
	{ "beside-streams", '\0', "N", OPTION_NUMBER, AT(conf.beside_streams), 1, LOAD_STREAMS_MAX,
	    .prose = "Streams of each connection for --beside. Default: 1." },
	{ "close", '\0', NULL, OPTION_FLAG, AT(conf.close),
	    .prose = "A new connection for each request." },
	{ "urls", 'u', "FILE", OPTION_TEXT, AT(conf.list),
	    .prose =
		"Reads URLs from FILE, one per line; - is standard input. A line may be a "
		"path: it is requested from the host of the URL before it, or of the argument." },
	{ "random", '\0', NULL, OPTION_FLAG, AT(conf.random),
	    .prose = "Takes the URLs at random instead of in turn." },
	{ "seed", '\0', "N", OPTION_SIZE, AT(conf.seed), 0, FETCHES_MAX, "1",
	    .prose = "Another order for --random, --range random and --abort. The same seed gives "
		     "the same order." },
	{ "timeout", 't', "S", OPTION_OWN, AT(timeout), .read = read_seconds,
	    .expected = "seconds from 0.001 to 86400",
	    .prose = "A request without its whole answer after S seconds is an error. Default: "
		     "10." },
	{ "silence", '\0', "S", OPTION_OWN, AT(silence), .read = read_seconds,
	    .expected = "seconds from 0.001 to 86400",
	    .prose = "In place of --timeout: a request is an error when no byte arrives for S "
		     "seconds. This is -timeout of http_load." },
	{ "header", 'H', "LINE", OPTION_REPEAT, AT(conf.headers), .read = read_header,
	    .expected = "\"NAME: value\"",
	    .prose = "Adds a field to each request; may be repeated. Host and User-Agent are "
		     "replaced." },
	{ "head", '\0', NULL, OPTION_FLAG, AT(conf.head), .prose = "HEAD instead of GET." },
	{ "range", '\0', "A-B|random:BYTES", OPTION_OWN, AT(conf.range), .read = read_range,
	    .expected = "A-B, A- or random:BYTES",
	    .prose = "Requests bytes A to B of each file, or BYTES anywhere in it." },
	{ "threads", '\0', "N", OPTION_NUMBER, AT(conf.threads), 1, LOAD_THREADS_MAX, "1",
	    .prose = "Threads; connections, requests and the rate are divided among them." },
	{ "unix", '\0', "PATH", OPTION_TEXT, AT(conf.unix_path),
	    .prose = "Connects to a unix socket; the host of a URL is sent as Host." },
	{ "from", '\0', "ADDRESS", OPTION_TEXT, AT(conf.from), .read = read_from,
	    .expected = "a numeric address of this host",
	    .prose = "Connects from ADDRESS, which must be an address of this host." },
	{ "status", '\0', "N", OPTION_NUMBER, AT(conf.status), 100, 599,
	    .prose = "The status that is not an error; without it any 2xx." },
	{ "verify", '\0', "length|hash:FILE|pattern|dir:DIR", OPTION_TEXT, AT(conf.verify),
	    .prose = "Checks each body; see VERIFICATION." },
	{ "abort", '\0', "PCT", OPTION_OWN, AT(conf.abort_percent), .read = read_percent,
	    .expected = "a percentage from 0 to 100",
	    .prose = "Leaves this share of the answers in the middle of their body." },
	{ "hold", '\0', NULL, OPTION_FLAG, AT(conf.hold),
	    .prose = "One request on each connection, then the line \"held N\"; the connections "
		     "stay open and silent until standard input ends, or --seconds are over." },
	{ "tls-resume", '\0', NULL, OPTION_FLAG, AT(conf.tls_resume),
	    .prose = "https: resumes sessions with tickets of the server. Without it each "
		     "connection makes a full handshake. Certificates are not checked." },
	{ "tls-conf", '\0', "NAME=VALUE", OPTION_REPEAT, AT(conf.tls_conf), .read = read_setting,
	    .expected = "NAME=VALUE, a command of SSL_CONF_cmd(3)",
	    .prose = "https: a setting of OpenSSL, such as MaxProtocol=TLSv1.2, "
		     "CipherString=ECDHE-RSA-AES128-GCM-SHA256, "
		     "Ciphersuites=TLS_AES_128_GCM_SHA256, Groups=P-256; may be repeated." },
	{ "yes", '\0', NULL, OPTION_FLAG, AT(conf.yes),
	    .prose = "Loads addresses of other hosts without a question." },
	{ "fastcgi", '\0', NULL, OPTION_FLAG, AT(conf.fastcgi),
	    .prose = "Asks a FastCGI application; the argument is unix:SOCKET or HOST:PORT." },
	{ "expect", '\0', "NAME", OPTION_TEXT, AT(conf.expect),
	    .prose = "With --fastcgi: the field NAME of an answer 200 must be the path that was "
		     "asked for." },
	{ "json", '\0', NULL, OPTION_FLAG, AT(conf.json),
	    .prose = "Prints the report as JSON in one line." },
	{ "merge", '\0', NULL, OPTION_FLAG, AT(conf.merge),
	    .prose = "Adds up reports of --json: the arguments are files; - is standard input." },
	{ "quiet", 'q', NULL, OPTION_FLAG, AT(conf.quiet), .prose = "No line of progress." },
	{ "verbose", 'v', NULL, OPTION_FLAG, AT(conf.verbose),
	    .prose = "Prints the progress each second, even if standard error is not a terminal." },
	{ "manual", '\0', "text|roff", OPTION_WORD, AT(manual), 1, .alone = "text",
	    .prose = "Print the manual page, as text or for man(1)." },
	{ "version", 'V', NULL, OPTION_FLAG, AT(version), .prose = "Print the version." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command load_command = { "accel-load", "[OPTION]... URL... | --urls FILE [URL]",
	"Requests URLs from HTTP/1.1 and HTTP/2 servers, counts errors by kind and prints "
	"latencies.\n"
	"\n"
	"    accel-load -c 100 -d 10 http://127.0.0.1:8080/index.html\n"
	"    accel-load -r 500 -d 60 -u urls.txt http://127.0.0.1:8080/\n"
	"    accel-load -parallel 100 -fetches 100k --random --urls urls.txt\n"
	"    accel-load --json ... >one.json; accel-load --merge one.json two.json\n",
	rows };

/* ---------------------------------------------------------------- the command line */

/* The spelling of http_load: "-parallel" is "--parallel".  Only these: "-v" keeps its meaning. */
static void
translate(char **argv)
{
	static const char *const names[] = { "-parallel", "-fetches", "-seconds", "-rate",
		"-timeout", "-verbose" };
	static char words[][12] = { "--parallel", "--fetches", "--seconds", "--rate", "--silence",
		"--verbose" };

	for (argv++; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strcmp(*argv, names[i]) == 0)
				*argv = words[i];
}

static const char *
contradiction_of_http2(const struct load_conf *c)
{
	if (!c->http2 && (c->streams > 1 || c->priority != NULL || c->beside != NULL))
		return ("--streams, --priority and --beside need --http2");
	if (c->beside == NULL && (c->beside_streams > 0 || c->beside_priority != NULL))
		return ("--beside-streams and --beside-priority need --beside");
	if (c->http2 && (c->fastcgi || c->pipeline > 1))
		return ("--http2 cannot be used with --fastcgi or --pipeline");
	if (c->hold && (c->streams > 1 || c->beside != NULL))
		return ("--hold cannot be used with --streams or --beside");
	return (NULL);
}

/* Options that exclude each other; NULL: none. */
static const char *
contradiction(const struct load_conf *c)
{
	if (c->words == NULL && (c->list == NULL || c->merge))
		return (c->merge ? "--merge: expected files" : "expected a URL or --urls FILE");
	if (c->merge)
		return (NULL);
	if (c->pipeline > 1 && (c->close || c->rate > 0 || c->hold))
		return (
		    "--pipeline is for the closed loop with keep-alive: without --close, --rate "
		    "and --hold");
	if (c->hold && (c->rate > 0 || c->close || c->fetches != 0))
		return ("--hold is without --rate, --close and --fetches");
	if (given.warm_up > 0 && (c->hold || c->fetches != 0))
		return ("--warm-up is without --hold and --fetches");
	if (c->unix_path != NULL && c->from != NULL)
		return ("--unix and --from exclude each other");
	if (given.timeout > 0 && given.silence > 0)
		return ("--timeout and --silence exclude each other");
	if (c->fastcgi && (c->tls_resume || c->tls_conf != NULL))
		return ("--fastcgi cannot be used with --tls-resume or --tls-conf");
	if (c->fastcgi && (c->pipeline > 1 || c->head || c->unix_path != NULL))
		return ("--fastcgi cannot be used with --pipeline, --head or --unix");
	if (c->expect != NULL && !c->fastcgi)
		return ("--expect needs --fastcgi");
	if (c->head && c->verify != NULL)
		return ("--head has no body for --verify");
	return (contradiction_of_http2(c));
}

static void
complete(struct load_conf *c)
{
	double s = given.seconds;

	if (s <= 0)
		s = c->fetches != 0 || c->hold ? BOUNDED_S : DEFAULT_S;
	c->run_ns = (uint64_t)(s * (double)NS_PER_S);
	c->warm_ns = (uint64_t)(given.warm_up * (double)NS_PER_S);
	c->silence = given.silence > 0;
	if (given.timeout <= 0)
		given.timeout = given.silence > 0 ? given.silence : TIMEOUT_S;
	c->timeout_ns = (uint64_t)(given.timeout * (double)NS_PER_S);
	if (c->beside != NULL && c->beside_streams == 0)
		c->beside_streams = 1;
	if (c->threads > c->connections)
		c->threads = c->connections;
}

int
load_options_read(char **argv, struct load_conf *conf)
{
	const char *wrong;
	int code;

	translate(argv);
	code = options_parse(&load_command, argv, &given, &given.conf.words);
	if (code != OPTIONS_RUN)
		return (code);
	if (given.version)
		return (puts("accel-load " STAT_ACCEL_VERSION) < 0 ? EX_IOERR : 0);
	if (given.manual != 0)
		return (options_print(load_manual, given.manual == 2));
	wrong = contradiction(&given.conf);
	if (wrong != NULL)
		return (options_wrong(&load_command, "%s (--help lists the options)", wrong));
	complete(&given.conf);
	*conf = given.conf;
	return (OPTIONS_RUN);
}
