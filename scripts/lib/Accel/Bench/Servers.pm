package Accel::Bench::Servers;
# The servers of accel-bench by name: what to start, what is missing, how each is configured.
#
#     my $spec = Accel::Bench::Servers::parse('nginx:aio');       # { kind => 'nginx', aio => 1, name => 'nginx:aio' }
#     my @names = Accel::Bench::Servers::ours();                  # accel:adaptive, accel:writev, ...
#     print Accel::Bench::Servers::configuration('h2o', '/srv/www', 1);
#
# Names:
#
# accel:BACKEND and `accel` (its default backend), `nginx`, nginx:aio, nginx:directio, `lighttpd`, lighttpd:writev, `apache`,
# h2o, command:WORDS with {port} and {root}, url:http://HOST:PORT/. A command is split into words as a shell does, but no
# shell runs it.
use v5.36;
use Accel::Backends ();
use Accel::Peer     ();
use Accel::Util     qw(find_program program);
use Text::ParseWords ();

my %peer = (
	nginx => { kind => 'nginx' },
	'nginx:aio' => { kind => 'nginx', aio => 1 },
	'nginx:directio' => { kind => 'nginx', aio => 1, directio => 1 },
	lighttpd => { kind => 'lighttpd' },
	'lighttpd:writev' => { kind => 'lighttpd', backend => 'writev' },
	apache => { kind => 'apache' },
	h2o => { kind => 'h2o' },
);
my @PEERS = qw(nginx nginx:aio nginx:directio lighttpd lighttpd:writev apache h2o);

sub peers () { return @PEERS }

sub ours () { return map { "accel:$_" } @{ (Accel::Backends::list())[0] } }

# The arguments to start an Accel::Peer, or { url => ... }; dies with the reason.
sub parse ($name) {
	return { %{ $peer{$name} }, name => $name } if $peer{$name};
	return { kind => 'accel', name => $name, backend => 'adaptive' } if $name eq 'accel';
	return { kind => 'accel', name => $name, backend => $1 } if $name =~ /^accel:([a-z][a-z-]*)\z/;
	return { url => $1 =~ s{/+\z}{}r, name => $name } if $name =~ m{^url:(https?://[^\s/]+(?:/[^\s]*)?)\z};
	if ($name =~ /^command:(.+)\z/s) {
		my @words = grep { defined && length } Text::ParseWords::shellwords($1);
		die "server \"$name\": the quotes do not match\n" unless @words;
		return { kind => 'command', command => \@words, name => $name };
	}
	die "no server \"$name\"; there are: accel accel:BACKEND @PEERS command:... url:http://...\n";
}

# Why it cannot be measured here, or undef.
sub missing ($name, $accel = 'none') {
	my $spec = parse($name);
	return 'a running server has no accelerator of ours' if $spec->{url} && $accel ne 'none';
	return if $spec->{url};
	if ($spec->{kind} eq 'accel' && -x program('accel-server')) {
		my ($known, $others) = Accel::Backends::list();
		my ($why) = map { $_->[1] } grep { $_->[0] eq $spec->{backend} } @$others;
		return $why // "no such backend; there are: @$known" unless grep { $_ eq $spec->{backend} } @$known;
	}
	return "no fcgi-stat-accel for $spec->{kind}" if $accel ne 'none' && $spec->{kind} !~ /^(?:accel|nginx|lighttpd)\z/;
	my ($why) = grep { defined } Accel::Peer->missing($spec->{kind}, @{ $spec->{command} // [] }),
	    $accel ne 'none' ? Accel::Peer->missing('stat-accel') : undef;
	return $why;
}

# The version that it prints, or undef.
sub version ($kind) {
	my %ask = (accel => [program('accel-server'), '-V'], nginx => ['nginx', '-v'], lighttpd => ['lighttpd', '-v'], apache => ['apache2', '-v'],
		h2o => ['h2o', '-v']);
	my ($name, @words) = @{ $ask{$kind} };
	my $path = find_program($name) // (-x $name ? $name : return undef);
	open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', $path, @words or return undef;
	my $said = do { local $/; <$fh> } // '';
	close $fh;
	return $said =~ m{(\d+\.\d+(?:\.\d+)*)} ? $1 : undef;
}

# The options of Accel::Peer->start for a cell.
sub options ($cell) {
	my $spec = parse($cell->{server});
	my %arg = (%$spec, workers => $cell->{workers} // 1);
	if ($spec->{kind} eq 'accel') {
		$arg{$_} = $cell->{$_} for grep { defined $cell->{$_} } qw(stat_threads read_threads read_ahead noatime timing);
	}
	$arg{conf} = $cell->{conf} if defined $cell->{conf};
	my $accel = $cell->{accel} // 'none';
	if ($accel ne 'none') {
		$arg{ $spec->{kind} eq 'accel' ? 'via_stat_accel' : 'front' } = 1;
		$arg{accel_tcp} = $accel eq 'tcp';
		$arg{threads} = $cell->{accel_threads} // 20;
	}
	return %arg;
}

sub start ($cell, $root, @more) {
	my %arg = options($cell);
	return Accel::Peer->start(delete $arg{kind}, %arg, root => $root, @more);
}

# The text of the configuration, or the command.
sub configuration ($name, $root, $workers) {
	my $spec = parse($name);
	return "$spec->{url} runs already\n" if $spec->{url};
	return Accel::Peer->sample($spec->{kind}, %$spec, root => $root, workers => $workers)->configuration;
}

1;
