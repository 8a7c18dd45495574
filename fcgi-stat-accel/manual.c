#include "fcgi-stat-accel/manual.h"

#include <errno.h>
#include <string.h>

#include "fcgi-stat-accel/dialect.h"
#include "base/manual_part.h"

static const struct manual_said environment[] = {
	{ "FCGI_STAT_THREADS, PHP_FCGI_CHILDREN", "Number of threads if --threads is not given; the "
	    "first that is set to a number from 1 to 1024 counts. spawn-fcgi -C sets the second." },
	{ "FCGI_WEB_SERVER_ADDRS", "Addresses of the web servers that may connect by TCP, with "
	    "commas between them. Not set: all may, and a wildcard address needs --allow-any." },
	{ "LISTEN_FDS, LISTEN_PID", "Descriptor 3 is a listening socket, see sd_listen_fds(3). "
	    "Without them and --listen it is descriptor 0." },
	{ "NOTIFY_SOCKET", "Socket of systemd for the messages \"ready\" and \"stopping\", see sd_notify(3)." },
	{ NULL },
};

static const struct manual_said statuses[] = {
	{ "0", "Stopped as asked." },
	{ "64", "The command line was not understood, or there is nothing to listen on." },
	{ "67", "There is no such --peer-user, or --user." },
	{ "69", "The address is in use, or not of this machine." },
	{ "71", "The system refused something: threads, epoll, openat2, the sandbox." },
	{ "73", "The socket could not be made where --listen wants it, or the file of --log." },
	{ "77", "A root may not be opened, --listen may not have its address, or --user is not for us to become." },
	{ "78", "A root is not there, descriptor 3 is no listening socket, or the socket is open to "
	    "everyone without --allow-any." },
	{ "128 + N", "Signal N came a second time." },
	{ NULL },
};

static const struct manual_said signals[] = {
	{ "TERM, INT, QUIT, USR1", "Stop listening, answer the requests that are running, then stop; "
	    "after a second and a half it stops in any case. A second one stops at once." },
	{ "HUP", "Open the log anew." },
	{ "USR2", "Write the statistics to the log." },
	{ NULL },
};

static const char *const with_spawn_fcgi[] = {
	"spawn-fcgi -s /run/stat-accel.sock -u www-data -U www-data -- /usr/local/bin/fcgi-stat-accel \\",
	"    --mode=auth --root /srv/www",
	NULL,
};

static const char *const by_itself[] = {
	"fcgi-stat-accel --listen unix:/run/stat-accel.sock --for=nginx --map /srv/www=/protected",
	NULL,
};

static const char *const with_nginx[] = {
	"location / {",
	"    set $warm_path $document_root$uri;",
	"    auth_request /warm;",
	"}",
	"location = /warm {",
	"    internal;",
	"    fastcgi_pass unix:/run/stat-accel.sock;",
	"    fastcgi_pass_request_body off;",
	"    fastcgi_param WARM_PATH $warm_path;",
	"    fastcgi_param REQUEST_METHOD $request_method;",
	"}",
	NULL,
};

static const char *const with_lighttpd[] = {
	"fastcgi.server = ( \"/\" => (( \"socket\" => \"/run/stat-accel.sock\",",
	"    \"mode\" => \"authorizer\", \"docroot\" => \"/srv/www\",",
	"    \"check-local\" => \"disable\" )) )",
	NULL,
};

static void
head(struct manpage *p)
{
	manpage_title(p, "fcgi-stat-accel", "1");
	manpage_heading(p, "NAME");
	manpage_para(p, "fcgi-stat-accel - make files warm before a web server opens them");
	manpage_heading(p, "SYNOPSIS");
	manpage_para(p, "fcgi-stat-accel [OPTION]...");
	manpage_para(p, "fcgi-stat-accel --check nginx|lighttpd|apache CONFIG");
	manpage_heading(p, "DESCRIPTION");
	manpage_para(p, "A web server with an event loop sleeps in open(2) and sendfile(2) when a file is not in memory, and all "
	    "its clients wait. Asked by FastCGI first, fcgi-stat-accel opens the file and reads it in a thread that may wait for "
	    "the disk, then answers; the server finds everything in memory.");
	manpage_para(p, "In mode auth the answer is \"go on\": 200 to a FastCGI authorizer (lighttpd, Apache), 204 to nginx's "
	    "auth_request, and 2xx for a missing file too, since it is the server's to report. The server then sends the file as it "
	    "always does, with its own types, tags and ranges. In mode sendfile the answer names the file in a header, in the way "
	    "that --for says.");
	manpage_para(p, "A file that the kernel has in memory is answered at once, without a thread (ext4, xfs, btrfs, tmpfs, "
	    "overlay; others cannot tell without a wait). Requests for the same file wait for one look-up. When a disk hangs, its "
	    "threads hang with it and nobody else's: its requests are answered at --deadline, and at once when all its threads are "
	    "stuck.");
	manpage_para(p, "The file is named by WARM_PATH, else SCRIPT_FILENAME, else DOCUMENT_ROOT, SCRIPT_NAME and PATH_INFO put "
	    "together. What is read follows the request: with REQUEST_METHOD HEAD nothing, "
	    "with HTTP_RANGE the ranges (of more than four the first four), with HTTP_IF_RANGE beside it the whole file, each up to --warm and "
	    "--behind; so pass these variables. With REQUEST_URI, mode sendfile answers "
	    "301 to the name of a directory that lacks the slash at its end.");
}

static void
sandbox(struct manpage *p)
{
	manpage_heading(p, "SANDBOX");
	manpage_para(p, "After the socket is open the process confines itself for good. With --root, Landlock leaves it the roots to read, the "
	    "directory of --log to write and that of a unix socket to remove it from; all other names, /proc among them, fail "
	    "with EACCES. With or without --root, a seccomp filter allows the system calls that the program makes; it can make no "
	    "socket, connect nowhere and map nothing to execute. A call that only an intruder makes (execve, fork, ptrace, mount, setuid, bpf "
	    "and their like) kills the process, and the kernel logs it: \"journalctl -k -g type=1326\" shows the line, syscall= has the "
	    "number. Other calls fail with ENOSYS.");
	manpage_para(p, "A sandbox that cannot be entered stops the start. A kernel that has no Landlock or no seccomp at all gets one line in the "
	    "log (ev=sandbox.partial). Started by root, use --user: it drops root for good, and the socket belongs to that user. A child of root "
	    "stays, which removes the socket at the end and does nothing else.");
}

static void
servers(struct manpage *p)
{
	struct buf b;

	buf_init(&b, 0);
	manpage_heading(p, "SERVERS");
	manpage_para(p, "What --for knows:");
	for (const struct dialect *d = dialects; d->name != NULL; d++) {
		manpage_item(p, d->name);
		b.n = 0;
		buf_printf(&b, "%s, %s%s: %s.", d->header, d->raw ? "raw" : "percent-encoded",
		    d->utf8 ? ", UTF-8 only" : "", d->doc);
		buf_char(&b, '\0');
		manpage_said(p, b.p);
	}
	buf_free(&b);
}

static void
examples(struct manpage *p)
{
	manpage_heading(p, "EXAMPLES");
	manpage_para(p, "Started by spawn-fcgi, which wants the whole path of it, for one directory:");
	manpage_example(p, with_spawn_fcgi);
	manpage_para(p, "Without it, for X-Accel-Redirect:");
	manpage_example(p, by_itself);
	manpage_para(p, "nginx, which asks before it sends a file, in mode auth:");
	manpage_example(p, with_nginx);
	manpage_para(p, "lighttpd 1.4, which asks before it sends a file:");
	manpage_example(p, with_lighttpd);
	manpage_heading(p, "SEE ALSO");
	manpage_para(p, "spawn-fcgi(1), accel-warm(1), accel-check(1), accel-graph(1), accel-server(8)");
}

int
manual_print(const char *page, const GOptionEntry *table, struct buf *out)
{
	struct manpage p = { .out = out, .roff = strcmp(page, "roff") == 0 };

	if (!p.roff && strcmp(page, "text") != 0)
		return (-EINVAL);
	head(&p);
	manual_options(&p, table);
	servers(&p);
	sandbox(&p);
	manual_section(&p, "ENVIRONMENT", environment);
	manual_section(&p, "EXIT STATUS", statuses);
	manual_section(&p, "SIGNALS", signals);
	examples(&p);
	return (0);
}
