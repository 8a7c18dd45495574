#!/usr/bin/perl
# doc/operations.md: each command works as it is written, on a machine with the packaged configuration.

use v5.36;
use Cwd ();
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Systemd;
use Test::Util qw(find_program put slurp);

plan skip_all => 'a sanitizer makes calls of its own' if Test::Util::sanitized();
my $why = Test::Systemd->unusable;
plan skip_all => $why if $why;

my $top = Cwd::abs_path("$FindBin::Bin/../..");
my $doc = slurp("$top/doc/operations.md");
my $sd = Test::Systemd->boot;
$sd->install;

# "The packaged configuration has the status pages as a comment"
my $conf = '/etc/stat-accel/accel-server.conf';
put($sd->path($conf), slurp($sd->path($conf)) =~ s{^#(\$HTTP.*?\n)#(.*?\n)#(.*?\n)#\}}{$1$2$3\}}mr);
$sd->put('/etc/nginx/nginx.conf', slurp("$top/examples/nginx/auth.conf") =~ s{/srv/www}{/var/www/html}gr);
$sd->run('systemd-tmpfiles', '--create', 'accel-server.conf', 'fcgi-stat-accel.conf');
$sd->systemctl('daemon-reload');
is +($sd->systemctl('start', $_))[0], 0, "$_ starts" or diag $sd->messages for qw(accel-server fcgi-stat-accel.socket fcgi-stat-accel);
# Lines that the commands look for.
$sd->run('accel-server', 'ctl', 'reload', '-f', $conf);
put($sd->path('/tmp/lines'), join '', map {"ev=$_\n"} qw(advice.begins app.stderr exchange.failed reload.refused upgrade.failed log.dropped));
$sd->run('sh', '-c', 'cat /tmp/lines >>/var/log/stat-accel/error.log; systemd-cat cat /tmp/lines; logger --id=1 x');

my @sections = split /^## /m, $doc;
my $commands = 0;
for my $section (@sections[1 .. $#sections]) {
	my ($title) = $section =~ /\A(.*)/;
	my @lines = ((map { split /\n/ } $section =~ /^```sh\n(.*?)^```/msg), $section =~ /^    (\S.*)$/mg);
	next if !@lines;
	subtest $title => sub {
		for my $line (@lines) {
			my ($status, $said) = $sd->command('sh', '-c', $line =~ s{/the/mount/point}{/var/www/html}r =~ s/sleep 5/sleep 0.1/r);
			is $status, 0, $line or diag $said;
			unlike $said, qr/^\S+: .*(?:not found|unknown|invalid|unrecognized|cannot|No such)/mi, '... without a complaint';
			$commands++;
		}
	};
}
cmp_ok $commands, '>', 20, 'commands';

done_testing;
