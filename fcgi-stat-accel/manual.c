#include "fcgi-stat-accel/advice_show.h"
#include "fcgi-stat-accel/dialect.h"
#include "fcgi-stat-accel/open_asks.h"
#include "fcgi-stat-accel/options.h"

static const char description[] =
    "# NAME\n"
    "fcgi-stat-accel - make files warm before a web server opens them\n"
    "# SYNOPSIS\n"
    "fcgi-stat-accel [OPTION]...\n"
    "fcgi-stat-accel --check nginx|lighttpd|apache CONFIG\n"
    "# DESCRIPTION\n"
    "A web server with an event loop sleeps in open(2) and sendfile(2) when a file is not in "
    "memory, and all its clients wait. With fcgi-stat-accel the server sends a FastCGI request "
    "first. fcgi-stat-accel opens the file and reads it in a thread that may wait for the disk, "
    "then answers. The server then finds everything in memory.\n"
    "In mode auth the answer is \"go on\": 200 to a FastCGI authorizer (lighttpd, Apache), 204 to "
    "nginx's auth_request. It is 2xx for a missing file too, because the server reports missing "
    "files. The server then sends the file as usual, with its own MIME types, tags and ranges. In "
    "mode sendfile the answer names the file in a header; --for chooses its format.\n"
    "A file that the kernel has in memory is answered at once, without a thread (ext4, xfs, "
    "btrfs, tmpfs, overlay; with other file systems the check could wait). Requests for the same "
    "file wait for one look-up. When a disk hangs, only its own threads hang. Its requests are "
    "answered at --deadline, and at once when all its threads are stuck.\n"
    "WARM_PATH names the file, else SCRIPT_FILENAME, else DOCUMENT_ROOT, SCRIPT_NAME and "
    "PATH_INFO joined, else DOCUMENT_ROOT and the path of REQUEST_URI, which is decoded and "
    "cleaned. In mode auth a WARM_PATH, SCRIPT_FILENAME or SCRIPT_NAME that ends in /stat-accel "
    "counts as missing: it is the URI of nginx's subrequest. The request decides what is read: "
    "with REQUEST_METHOD HEAD nothing, with "
    "HTTP_RANGE the ranges (of more than four the first four), with HTTP_IF_RANGE beside it the "
    "whole file, each up to --warm and --behind. So pass these variables. With REQUEST_URI, mode "
    "sendfile answers 301 to the name of a directory without a slash at its end.\n";

static const char caches[] =
    "# NGINX'S CACHE\n"
    "nginx opens files of proxy_cache and fastcgi_cache in its event loop, also with aio threads. "
    "With --nginx-cache a request that has WARM_CACHE_KEY, the value of proxy_cache_key, makes the "
    "file of this key warm. WARM_CACHE has the NAME or the PATH of the cache; without it the "
    "first --nginx-cache counts. WARM_CACHE_KEY goes before WARM_PATH. The answer is always \"go "
    "on\". A key that is not cached costs one look-up that finds nothing.\n"
    "The files are readable for the user of nginx's workers only, so run as that user. Without "
    "--root no file outside of the caches is made warm.\n"
    "An answer with Vary has a file for each variant. Only the file with the name of the key, "
    "which is the variant stored first, is made warm. If answers vary, put the header into the "
    "key and Vary into proxy_ignore_headers. With the slice module only the first slice of a "
    "request is made warm, because nginx sends no auth_request for the others.\n"
    "| proxy_cache_path /var/cache/nginx levels=1:2 keys_zone=pages:10m use_temp_path=off;\n"
    "| location / {\n"
    "|     proxy_pass http://backend;\n"
    "|     proxy_cache pages;\n"
    "|     proxy_cache_key $scheme$host$request_uri;\n"
    "|     auth_request /stat-accel;\n"
    "| }\n"
    "| location = /stat-accel { internal;\n"
    "|     fastcgi_pass unix:/run/stat-accel.sock;  fastcgi_pass_request_body off;\n"
    "|     fastcgi_param REQUEST_METHOD $request_method;  fastcgi_param REMOTE_ADDR $remote_addr;\n"
    "|     fastcgi_param WARM_CACHE_KEY $scheme$host$request_uri;\n"
    "|     error_page 502 503 504 = /stat-accel/down; }\n"
    "| location = /stat-accel/down { internal; return 204; }\n";

static const char file_systems[] =
    "# FILE SYSTEMS THAT ASK AT OPEN\n"
    "On a local disk open(2) of a warm file takes microseconds. On the file systems below it asks "
    "another machine or process each time, although name and bytes are in memory. The web server "
    "does that open() in its event loop, so all its clients wait. The log names each such mount of "
    "a root at the start (ev=root.open-asks), and roots.open-asks of the status page counts "
    "them.\n"
    "The first remedy is the mount option or setting below, after which open() does not ask. The "
    "second is a server that opens files in threads: accel-server, to which nginx and lighttpd "
    "pass these names on (their examples have the lines), or Apache with a thread for each client. "
    "open_file_cache of nginx helps files that are requested often, which are then opened once in "
    "a while; the first open() of each other file still stops the event loop. "
    "server.stat-cache-engine of lighttpd does the same for a second or two.\n"
    "Types, as mount(8) prints them:\n";

static const char operation[] =
    "# LARGE FILES\n"
    "Large files are read one after the other, in the order of their requests, and clients take "
    "turns. A file that needs at most 1 MiB overtakes the others. After 16 MiB another file has "
    "its turn. So many large files at once do not all end at the end.\n"
    "The server decides which --warm is best. Figures: one client, 10 MB files, a disk that reads "
    "260 MB/s with 16 requests at a time.\n"
    "= nginx, lighttpd: auto (or read:16m, the default)\n"
    "The server sleeps in sendfile(2) on each byte that is not in memory, and sends to a fast "
    "client faster than a disk reads. So the whole file is in memory before the answer: first "
    "byte after 65 ms, 150 MB/s. With read:256k the first byte comes after 26 ms, then the server "
    "sleeps and delivers 28 MB/s. Beside 100 such clients other clients wait up to 4 s.\n"
    "= nginx with aio threads, Apache: auto:threads\n"
    "A thread of the server may sleep. The answer comes at the turn of the file, and the rest is "
    "read ahead of the server: first byte after 25 ms, 160 MB/s. Alone, nginx with aio threads "
    "has 25 ms and 29 MB/s. The hot files of nginx need these threads, too. So a few files at a "
    "time have their turn.\n"
    "= Clients slower than the disk, files over 16 MiB\n"
    "After the answer --behind reads on. A server that sleeps in sendfile(2) does not catch "
    "up with it if its clients together are slower than the disk. Otherwise use read:all.\n"
    "# SANDBOX\n"
    "After the socket is open the process confines itself for good. With --root, Landlock allows "
    "it to read the roots, to write in the directory of --log and to remove a unix socket from "
    "its directory. All other paths, /proc among them, fail with EACCES. With or without --root, "
    "a seccomp filter allows the system calls that the program uses; it can make no socket, "
    "connect nowhere and map nothing to execute. A call that only an intruder makes (execve, "
    "fork, ptrace, mount, setuid, bpf and similar ones) kills the process, and the kernel logs "
    "it: \"journalctl -k -g type=1326\" shows the line, syscall= has the number. Other calls fail "
    "with ENOSYS.\n"
    "If the sandbox cannot be entered, the program does not start. A kernel without Landlock or "
    "seccomp gets one line in the log (ev=sandbox.partial). If root starts the program, use "
    "--user: it drops root for good, and the socket belongs to that user. One child process of "
    "root stays; it removes the socket at the end and does nothing else.\n"
    "Without --root, every file that the user of this process may read is answered, to everyone "
    "who may connect. If root starts the program so, it becomes the user that web servers have "
    "on this machine (see --user), so that an answer names only what the web server may read "
    "anyway. The log warns (ev=root.none).\n"
    "# MESSAGES\n"
    "The log and the messages of a failed start go to standard error. spawn-fcgi without -n makes "
    "that /dev/null and reports only the exit status (\"child exited with: 78\"). Then both go to "
    "syslog (journalctl -t fcgi-stat-accel), and the messages of a failed start also to the "
    "terminal of spawn-fcgi, if this user may write to it. --log names a file for the log.\n"
    "# ENVIRONMENT\n"
    "= FCGI_STAT_THREADS, PHP_FCGI_CHILDREN\n"
    "Number of threads if --threads is not given. The first variable that is a number from 1 to "
    "1024 counts. spawn-fcgi -C and lighttpd's bin-path set the second one, and mean processes: "
    "it counts only if it is more than 20.\n"
    "= FCGI_WEB_SERVER_ADDRS\n"
    "Addresses of the web servers that may connect by TCP, separated by commas. Not set: at a "
    "wildcard address peers on this host, with --allow-any all; at any other address all. A peer "
    "is on this host if its address is a loopback address or the one it connected to. A container "
    "behind a bridge is another host: list its address.\n"
    "= LISTEN_FDS, LISTEN_PID\n"
    "Descriptor 3 is a listening socket, see sd_listen_fds(3). Without them and --listen it is "
    "descriptor 0.\n"
    "= NOTIFY_SOCKET\n"
    "Socket of systemd for the messages \"ready\" and \"stopping\", see sd_notify(3).\n"
    "= WATCHDOG_USEC, WATCHDOG_PID\n"
    "Systemd restarts the program if its loop stands still for so long, see "
    "sd_watchdog_enabled(3).\n"
    "# EXIT STATUS\n"
    "= 0\n"
    "Stopped by a signal.\n"
    "= 64\n"
    "The command line is wrong, or there is nothing to listen on.\n"
    "= 67\n"
    "The user of --peer-user or --user does not exist.\n"
    "= 69\n"
    "The address is in use, or not one of this machine.\n"
    "= 71\n"
    "The system refused threads, epoll, openat2 or the sandbox.\n"
    "= 73\n"
    "The socket of --listen or the file of --log cannot be made.\n"
    "= 77\n"
    "No permission to open a root, to use the address of --listen, or to become --user.\n"
    "= 78\n"
    "A root does not exist, or descriptor 3 is not a listening socket.\n"
    "= 128 + N\n"
    "Signal N came a second time.\n"
    "# SIGNALS\n"
    "= TERM, INT, QUIT, USR1\n"
    "Stop listening, answer the running requests, then stop, after a second and a half at the "
    "latest. A second signal stops at once.\n"
    "= HUP\n"
    "Reopen the log.\n"
    "= USR2\n"
    "Write the counters to the log.\n"
    "# EXAMPLES\n"
    "Started by spawn-fcgi, which needs the full path of the program, for one directory:\n"
    "| spawn-fcgi -s /run/stat-accel.sock -u www-data -U www-data -- " STAT_ACCEL_BINDIR
    "/fcgi-stat-accel \\\n"
    "|     --mode=auth --root /srv/www\n"
    "As in 2007, without options: port 1029 for peers on this host, X-Sendfile for lighttpd:\n"
    "| spawn-fcgi -f " STAT_ACCEL_BINDIR "/fcgi-stat-accel -p 1029 -C 1\n"
    "Without it, for X-Accel-Redirect:\n"
    "| fcgi-stat-accel --listen unix:/run/stat-accel.sock --for=nginx --map /srv/www=/protected\n"
    "nginx, in mode auth:\n"
    "| auth_request /stat-accel;\n"
    "| location = /stat-accel { internal;\n"
    "|     fastcgi_pass unix:/run/stat-accel.sock;  fastcgi_pass_request_body off;\n"
    "|     fastcgi_param REQUEST_METHOD $request_method;  fastcgi_param REMOTE_ADDR $remote_addr;\n"
    "|     fastcgi_param DOCUMENT_ROOT $document_root;  fastcgi_param REQUEST_URI $request_uri;\n"
    "|     error_page 502 503 504 = /stat-accel/down; }\n"
    "| location = /stat-accel/down { internal; return 204; }\n"
    "In a location with alias, or behind a rewrite:\n"
    "| set $warm_path $request_filename;    # in that location\n"
    "| fastcgi_param WARM_PATH $warm_path;  # both in location = /stat-accel\n"
    "| uninitialized_variable_warn off;\n"
    "lighttpd 1.4 starts it itself, in mode auth:\n"
    "| server.modules += ( \"mod_fastcgi\" )\n"
    "| fastcgi.server += ( \"/\" => ((\n"
    "|     \"mode\" => \"authorizer\", \"check-local\" => \"disable\",\n"
    "|     \"socket\" => \"/run/lighttpd/stat-accel.sock\",\n"
    "|     \"bin-path\" => \"" STAT_ACCEL_BINDIR "/fcgi-stat-accel --mode=auth --root=/srv/www\",\n"
    "|     \"max-procs\" => 1 )) )\n"
    "# SEE ALSO\n"
    "spawn-fcgi(1), accel-warm(1), accel-check(1), accel-graph(1), accel-server(8)\n";

static void
servers(struct manpage *p)
{
	struct buf b;

	buf_init(&b, 0);
	manpage_marked(p, "# SERVERS\nValues of --for:\n");
	for (const struct dialect *d = dialects; d->name != NULL; d++) {
		manpage_item(p, d->name);
		b.n = 0;
		buf_printf(&b, "%s, %s%s: %s.", d->header, d->raw ? "raw" : "percent-encoded",
		    d->utf8 ? ", UTF-8 only" : "", d->doc);
		buf_char(&b, '\0');
		manpage_text(p, b.p);
	}
	buf_free(&b);
}

void
accel_manual(struct manpage *p)
{
	manpage_title(p, "fcgi-stat-accel", "1");
	manpage_marked(p, description);
	options_manual(p, accel_command.options);
	servers(p);
	manpage_marked(p, file_systems);
	open_asks_manual(p);
	manpage_marked(p, caches);
	advice_manual(p);
	manpage_marked(p, operation);
}
