# Each example that a program's own --help shows is accepted as it stands: no word of it is a mistake of usage (exit 64).
use v5.36;
use Cwd qw(abs_path);
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(build_dir put temp_tree);

my $top = abs_path("$FindBin::Bin/../..");
my $bin = abs_path(build_dir()) . '/bin';
my $tree = temp_tree();
local $ENV{PATH} = "$bin:$top/scripts:$ENV{PATH}";
chdir $tree or die "chdir: $!";

# ---------------------------------------------------------------- what the examples name

mkdir $_ for qw(www pool run), 'www/d';
put("www/f$_", 'x' x 1000) for 1 .. 3;
put($_, "/f1\n/f2\n") for qw(urls.txt list.txt);
put('accel.conf', qq{server.document-root = "$tree/www"\nserver.bind = "127.0.0.1"\nserver.port = 1\nstatus.status-url = "/server-status"\n});
put('nginx.conf', "events { }\nhttp { server { listen 8080; root $tree/www; } }\n");
put('lighttpd.conf', qq{server.document-root = "$tree/www"\n});
put('apache2.conf', "DocumentRoot $tree/www\n");
my $line = 'network_gthread_aio.c.78: (trace) write-start: 1173101341.%06d read-queue-wait: %d ms read-time: 0 ms write-time: 21 ms';
my $log = join '', map { sprintf "$line\n", $_, 600 + $_ } 1 .. 20;
put($_, $log) for qw(error.log error.log.1);
system 'gzip', '-kf', 'error.log.1';
put('access.log', qq{127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET /f1 HTTP/1.1" 200 1000 "-" "-"\n});
put('stamp', '');
utime 1, 1, 'stamp';

# The places that an example names, here.
my @place = (
	qr{/etc/nginx/nginx\.conf} => "$tree/nginx.conf", qr{/etc/lighttpd/lighttpd\.conf} => "$tree/lighttpd.conf",
	qr{/etc/apache2/apache2\.conf} => "$tree/apache2.conf", qr{/etc/(?:accel/accel|accel-server)\.conf} => "$tree/accel.conf",
	qr{/var/log/accel/access\.log} => "$tree/access.log", qr{/srv/pool} => "$tree/pool", qr{/srv/www|/mnt/restored} => "$tree/www",
	qr{/var/tmp|/run(?=/stat-accel)} => "$tree/run", qr{/usr/local/bin/} => "$bin/", qr{1000x100x100k} => '2x2x1k',
	qr{127\.0\.0\.1(?::8080)?(?=/|\s|\z)} => '127.0.0.1:1', qr{^spawn-fcgi } => 'spawn-fcgi -n ',        # no server of others; no daemon
);

# ---------------------------------------------------------------- examples

# The indented lines that begin with a command, joined where one ends in a backslash; a pipe is an example of each of its programs.
sub examples ($name) {
	my $help = qx{$name --help} =~ s/ *\\\n\s*/ /gr;
	return grep { !/^\Q$name\E - / && /(?:^|\| )(?:spawn-fcgi .*)?\Q$name\E\b/ } map { s/^\s+//r } $help =~ /^ {4,8}((?:accel-|fcgi-stat-accel |spawn-fcgi |find |grep ).*)$/mg;
}

# The exit status of a command, and what it said.  A command is ended after a while; that status is not one of a mistake.
sub status ($command) {
	my $said = qx{exec </dev/null 2>&1; timeout 2 bash -o pipefail -c '@{[ $command =~ s/'/'\\''/gr ]}'};
	return ($? >> 8, $said);
}

# These measure for minutes: everything is read and checked, and nothing is started.
my %instead = ('accel-bench' => ' --print-config', 'accel-tune' => ' --plan');
my %none = map { $_ => 1 } qw(accel-server);       # its --help has no example
for my $path (glob("$top/scripts/accel-*"), map { "$bin/$_" } qw(accel-load accel-pool accel-server accel-warm fcgi-stat-accel)) {
	my $name = $path =~ s{.*/}{}r;
	my @examples = examples($name);
	ok @examples > 0 || $none{$name}, "$name: has examples";
	for my $example (@examples) {
		my $here = $example =~ s/ \.\.\. / -n 1 http:\/\/127.0.0.1:1\/ /r;
		for (my $i = 0; $i < @place; $i += 2) { $here =~ s/$place[$i]/$place[ $i + 1 ]/g }
		$here .= $instead{$name} if $instead{$name} && $here !~ /--(?:list|plan|print-config)/;
		my ($status, $said) = status($here);
		ok $status != 64 && $said !~ /--help shows how it is used|^\S+: (?:unknown|--\S+: expected)/m, $example or diag "$here\n$status: $said";
	}
}
is +(status('accel-load --no-such-option'))[0], 64, 'a mistake would be seen';
chdir '/';

done_testing;
