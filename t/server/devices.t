# Several disks lie below one document root, with a link from one into another.  When one disk hangs, the others go on.
#
# A file is hot in the worker that served it, so a client of hot files keeps its connection.  A new connection may go to
# another worker, which opens the file and hangs with its disk.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use JSON::PP ();
use Test::Hot;
use Test::More;
use Test::Server;
use Accel::Slowfs;
use Test::Util qw(put);

my ($fuse, $no_fuse) = Accel::Slowfs->usable;
plan skip_all => $no_fuse unless $fuse;
my @backends = Test::Server::backends();

my $root = File::Temp->newdir('accel-www-XXXXXX', TMPDIR => 1); # mounts lie in it
my $disk = File::Temp->newdir('accel-src-XXXXXX', TMPDIR => 1); # what they show

sub spew { my ($path, $bytes) = @_; rename put("$path.new", $bytes), $path or die "$path: $!" }

mkdir "$disk/sub" or die "sub: $!";
spew("$disk/hot", 'h' x 1000);
spew("$disk/cold$_", "cold $_\n" x 5000) for 1 .. 40;
spew("$disk/sub/cold$_", "deep $_\n" x 5000) for 1 .. 40;
spew("$root/hot", 'H' x 1000);

my $disks = 0;
sub disk {      # the object, and the path of its files as clients ask for them
	my $at = '/disk' . ++$disks;
	mkdir "$root$at" or die "$at: $!";
	return (Accel::Slowfs->start(source => "$disk", at => "$root$at", spindles => 16, lookup_ms => 2, read_ms => 2), $at);
}

sub ask ($srv, @path) {
	my @c = map { my $c = $srv->connect; $c->send("GET $_ HTTP/1.1\r\nHost: x\r\n\r\n"); $c } @path;
	return map { $_->reply // { status => 0, body => '' } } @c;
}

sub right { my ($word, @n) = @_; return map { [200, "$word $_\n" x 5000] } @n }
sub got   { my ($srv, @path) = @_; return map { [@$_{qw(status body)}] } ask($srv, @path) }

sub device {    # what the status page has about the disk
	my ($srv, $fs) = @_;
	my ($minor) = map { (split /:/, (split ' ')[2])[1] } grep { (split ' ')[4] eq $fs->dir } split /\n/, Test::Util::slurp('/proc/self/mountinfo');
	my $r = JSON::PP::decode_json($srv->fetch('/status?json')->{body});
	return (grep { $_->{device} =~ /^0:$minor\b/ } @{ $r->{devices} })[0] // {};
}

for my $backend (@backends) {
	subtest $backend => sub {
		my ($sick, $at) = disk();
		my ($well, $there) = disk();
		unlink "$root/link";
		symlink(($at =~ s{^/}{}r) . '/sub', "$root/link") or die "link: $!";
		my $srv = Test::Server->start(dir => "$root", conf => <<"CONF");
server.network-backend = "$backend"
server.max-stat-threads = 1
server.max-read-threads = 1
server.max-open-idle = 1
server.max-keep-alive-requests = 1000000
status.status-url = "/status"
CONF
		is_deeply [got($srv, "$at/cold1", '/link/cold1', "$there/cold1")], [right('cold', 1), right('deep', 1), right('cold', 1)], 'each is served, and the link, too';
		spew("$root/hot", 'H' x 1000);
		my $hot = Test::Hot->start($srv, "$at/hot" => 'h' x 1000, "$there/hot" => 'h' x 1000);

		# Out of the kernel's memory, so that a check of it has to ask; unless one came in between.
		ok Test::Util::eventually(sub {
			$sick->go;
			$sick->forget('/hot');
			$sick->hang;
			$sick->wait_hanging(1, 2);
		}), 'one hangs, first in a check of a hot file';
		is_deeply [map { $_->{status} } ask($srv, map { ("$at/cold$_", "/link/cold$_") } 2 .. 4)], [(503) x 6], 'new names: 503, through the link, too';
		is_deeply [got($srv, map { ("$there/cold$_", "$there/sub/cold$_") } 2 .. 5)], [map { (right('cold', $_), right('deep', $_)) } 2 .. 5], 'the other one is served';
		my $d = device($srv, $sick);
		cmp_ok $d->{busy} // 0, '>=', 1, 'the status page has threads that are busy with it';
		is $d->{mount}, $sick->dir, '... under the name of its mount point';
		cmp_ok $d->{oldest_ns} // 0, '>', 0, '... and how long they have been';
		is_deeply [map { $_->{status} } ask($srv, "$at/cold5")], [503], 'again';
		for my $round (1 .. 3) {
			my $body = "version $round\n" x 100;
			spew("$root/hot", $body);
			ok Test::Util::eventually(sub { (got($srv, '/hot'))[0][1] eq $body }, 10), "hot files are checked again while it hangs, $round";
		}
		$sick->go;
		ok Test::Util::eventually(sub { (ask($srv, "$at/cold6"))[0]{status} == 200 }), 'it answers again';
		is_deeply [got($srv, map { ("$at/cold$_", "/link/cold$_") } 2 .. 8)], [map { (right('cold', $_), right('deep', $_)) } 2 .. 8], '... everything';
		my $r = $hot->stop;
		is_deeply $r->{wrong}, [], "hot files of both were served all the time: $r->{answers} answers, the worst after $r->{worst_ms} ms";
		is $srv->stop, '', 'the end is clean';
		my %count = $srv->log =~ /ev=counters (.*)/ ? $1 =~ /(\w+)=(\d+)/g : ();
		cmp_ok $count{stat_overdue} // 0, '>', 0, 'counted: answers whose check did not come back in time';
		cmp_ok $count{stat_rechecks} // 0, '>=', 3, '... and checks';
	};
}

done_testing;
