# accel-warm --shard chooses the files that a balancer sends to one node: a real HAProxy and a real accel-server are asked for
# the node of each file.
use v5.36;
use File::Temp;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Accel::Peer;
use Test::Http qw(req);
use Test::Server;
use Test::Util qw(need_program);
use Test::Walk;

need_program('haproxy', 'haproxy');

my $dir = File::Temp->newdir;
my $tree = "$dir/tree";
mkdir $tree or die "$tree: $!";
make_tree($tree, 10, 25);
mkdir "$tree/d1/deep" or die $!;
put("$tree/$_", 'x') for 'index.html', 'd1/deep/x', 'a b', '100%', "caf\xc3\xa9", "\xff", 'q?s', 'h#h', 'plus+', "(a)'!*,;=:@&\$~", '%41';
my @name = map { s{^\Q$tree\E/}{}r } split /\n/, +(warm('--print', $tree))[1];
is scalar @name, 250 + 11, '--print names every file';

sub names_of (@args) {
	my ($rc, $out, $err) = warm('--print', @args);
	is "$rc $err", '0 ', "@args";
	return [map { s{^\Q$tree\E/}{}r } split /\n/, $out];
}

# The numbers of the nodes that have each file, by accel-warm.
sub by_warm ($nodes, @args) {
	my %node;
	for my $k (1 .. $nodes) {
		push @{ $node{$_} }, $k for @{ names_of('--shard', "$k/$nodes", @args, $tree) };
	}
	return \%node;
}

sub escaped ($name) { return '/' . ($name =~ s{([^\w.~/!\$&'()*+,:;=\@-])}{sprintf '%%%02X', ord $1}gear) }

# The node of each name, as a server says that names the node in a field.
sub by_server ($port, %field) {
	my $c = Test::Http::Conn->new($port);
	my %node;
	for my $name (@name) {
		$c->send(req(escaped($name), map { "$_: $field{$_}" } keys %field));
		my $r = $c->reply // die "no reply for $name\n";
		$node{$name} = [$r->{header}{'x-node'} // "status $r->{status}"];
	}
	return \%node;
}

# ---------------------------------------------------------------- HAProxy

my @set = (
	{ name => 'the reference: weight 100', lines => ['balance hash path,url_dec', 'hash-type consistent'], weights => [(100) x 4], warm => ['--weight=100'] },
	{ name => 'default weights', lines => ['balance hash path,url_dec', 'hash-type consistent'], weights => [(1) x 3], warm => [] },
	{ name => 'balance uri', lines => ['balance uri path-only', 'hash-type consistent'], weights => [(20) x 2], warm => ['--balance=uri', '--weight=20'] },
	{ name => 'weights and ids', lines => ['balance hash path,url_dec', 'hash-type consistent'], weights => [10, 200, 256, 30], ids => [7, 3, 1000, 12],
	  warm => ['--nodes', '7=10,3=200,1000=256,12=30'] },
	map {
		my $plain = s/ avalanche//r;
		{ name => "hash-type consistent $_", lines => ['balance hash path,url_dec', "hash-type consistent $_"], weights => [(10) x 3],
		  warm => ['--weight=10', '--hash=' . s/ /-/r] }
	} 'sdbm', 'sdbm avalanche', 'djb2', 'djb2 avalanche', 'crc32', 'crc32 avalanche',
);

sub backend ($i) {
	my $set = $set[$i];
	my @id = @{ $set->{ids} // [1 .. @{ $set->{weights} }] };
	my $text = "backend b$i\n" . join '', map { "\t$_\n" } @{ $set->{lines} };
	# The order of the lines is that of --nodes; the reply names the place in it.
	$text .= "\tserver s$_ unix\@$dir/well send-proxy-v2 weight $set->{weights}[$_ - 1]" . ($set->{ids} ? " id $id[$_ - 1]" : '') . "\n" for 1 .. @id;
	return "$text\thttp-after-response set-header X-Node %[srv_name,bytes(1)]\n";
}

my $conf = <<"CONF" . join '', map { backend($_) } 0 .. $#set;
global
	nbthread 1
defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
frontend in
	bind 127.0.0.1:\${PORT}
	use_backend %[req.fhdr(x-set)]
frontend well
	bind unix\@$dir/well accept-proxy
	http-request return status 200
CONF
$conf .= "frontend n$_\n\tbind unix\@$dir/n$_\n\thttp-request return status 200 hdr X-Node $_\n" for 1 .. 3;
put("$dir/haproxy.cfg", $conf);
my $haproxy = Accel::Peer->start('command', root => $tree, command => ['haproxy', '-db', '-f', "$dir/haproxy.cfg"], env => { });

for my $i (0 .. $#set) {
	subtest "HAProxy: $set[$i]{name}" => sub {
		my $theirs = by_server($haproxy->port, 'X-Set' => "b$i");
		is_deeply by_warm(scalar @{ $set[$i]{weights} }, @{ $set[$i]{warm} }), $theirs, 'the same node for each file';
		my %n;
		$n{ $_->[0] }++ for values %$theirs;
		is keys %n, @{ $set[$i]{weights} }, 'each node has some: ' . join ' ', map { "$_: $n{$_}" } sort keys %n;
	};
}

# ---------------------------------------------------------------- accel-server

for ([1, 1, 1], [3, 1, 2]) {
	my @weight = @$_;
	subtest "accel-server: carp with weights @weight" => sub {
		my @address = map { "unix:$dir/n$_" } 1 .. 3;
		my $front = Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nproxy-core.protocol = "http"\nproxy-core.balancer = "carp"\n}
			. 'proxy-core.backends = ( ' . join(', ', map { qq{"$_"} } @address) . " )\nproxy-core.max-pool-size = 8\n"
			. 'proxy-core.weights = ( ' . join(', ', @weight) . " )\n");
		is_deeply by_warm(3, '--balance=carp', '--host=x', '--nodes', join(',', map { "$address[$_]=$weight[$_]" } 0 .. 2)),
		    by_server($front->port), 'the same node for each file';
	};
}

# ---------------------------------------------------------------- lists, prefixes, mistakes

subtest 'trees and lists' => sub {
	my %shard = map { $_ => join ' ', sort @{ names_of('--shard', "$_/2", '--prefix=/p', $tree) } } 1, 2;
	my $in = join '', map { '/p' . escaped($_) . "?query\n" } @name;
	mkdir "$dir/list" or die $!;
	symlink $tree, "$dir/list/p" or die $!;
	for my $k (1, 2) {
		my ($rc, $out) = run_with($in, '--print', '--list=-', '--urls', '--root', "$dir/list", '--shard', "$k/2");
		is join(' ', sort map { s{^.*?/p/}{}r } split /\n/, $out), $shard{$k}, "a list of URLs: shard $k";
	}
	my $n = numbers('--shard=1/2', '--prefix=/p/', $tree);
	my $mine = () = $shard{1} =~ /\S+/g;
	is $n->{files} + $n->{excluded}, @name, 'others are excluded';
	my ($rc, undef, $err) = warm('--state', "$dir/state", '--shard=1/2', '/nonexistent');
	isnt $rc, 64, 'with a state file';
};

for (
	[['--shard=0/4'], qr/--shard: expected K\/N with 1 <= K <= N <= 1024, got "0\/4"/],
	[['--shard=5/4'], qr/--shard: expected/], [['--shard=1'], qr/--shard: expected/], [['--shard=1/2/3'], qr/--shard: expected/],
	[['--shard=1/1025'], qr/--shard: expected/],
	[['--shard=1/2', '--nodes=1,2,3'], qr/--nodes has 3 nodes, --shard says 2/],
	[['--shard=1/2', '--nodes=1=257,2'], qr/--nodes: expected NAME or NAME=WEIGHT with a weight of 1 to 256, got "1=257"/],
	[['--shard=1/2', '--nodes=a,b'], qr/--nodes: expected the id of a server of HAProxy, a number, got "a"/],
	[['--shard=1/2', '--balance=carp'], qr/--balance=carp needs --nodes/],
	[['--nodes=1,2'], qr/--nodes and --host need --shard/],
	[['--shard=1/2', '--prefix=x'], qr/--prefix: expected a path that starts with a slash/],
	[['--print', '--json'], qr/--print goes with neither --state nor --json/],
) {
	my ($args, $says) = @$_;
	my ($rc, $out, $err) = warm(@$args, $tree);
	is $rc, 64, "@$args";
	like $err, $says, '... says why';
}

done_testing;
