# Test::Mutate - one-line changes of C sources, and the tests that should notice each of them.  t/tools/mutate applies them.
package Test::Mutate;
use v5.36;
use Exporter qw(import);

our @EXPORT_OK = qw(changes sample areas area_of tests_of);

# ---------------------------------------------------------------- changes

# kind => finds edits in a line: sub (line with comments and strings blanked) returns [offset, length, sub (old) { new }]...
my %FIND = (
	'condition negated'      => \&find_conditions,
	'comparison off by one'  => \&find_comparisons,
	'error swallowed'        => \&find_errors,
	'call dropped'           => \&find_calls,
	'limit doubled'          => \&find_limits,
	'flag dropped'           => \&find_flags,
);
my @KINDS = sort keys %FIND;

# A dropped free() is a leak, which only the sanitizers see.  must() is for what cannot happen.  Lines of
# logs and names of threads are text.
my $NOT_DROPPED = qr/^(?:if|for|while|switch|return|sizeof|must|free|g_free|log_event|pthread_setname_np)$/;
my %NEXT        = ('<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>');
my $LIMIT       = qr/(?:MAX|MIN|LIMIT|SIZE|ROOM|BYTES|MS|SECONDS)/;    # how the name of a limit in an enum ends
my $BALANCED    = qr/(\((?:[^()]++|(?-1))*+\))/;

# Of the text of a source file: one hash for each possible change, with file, line, kind, before, after.
sub changes ($file, $text) {
	my @line = split /\n/, $text, -1;
	my @code = split /\n/, blanked($text), -1;
	my @kind = $file =~ /\.h\z/ ? ('limit doubled') : @KINDS;
	my @found;
	for my $i (0 .. $#line) {
		for my $kind (@kind) {
			next if $code[$i] =~ /^\s*#/ && $kind ne 'limit doubled';
			for my $edit ($FIND{$kind}->($code[$i])) {
				my ($at, $length, $new) = @$edit;
				my $after = $line[$i];
				substr $after, $at, $length, $new->(substr $after, $at, $length);
				push @found, { file => $file, line => $i + 1, kind => $kind, before => $line[$i], after => $after };
			}
		}
	}
	return @found;
}

# C with comments, strings and character constants blanked; every column stays where it is.
sub blanked ($text) {
	return $text =~ s{(/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')}{$1 =~ s/[^\n\t]/ /gr}gser;
}

sub find_conditions ($code) {
	my @edit;
	while ($code =~ /\b(?:if|while) $BALANCED/g) {
		next if $1 =~ /^\((?:0|1|true)\)$/;
		push @edit, [$-[1], $+[1] - $-[1], sub ($old) { "(!$old)" }];
	}
	return @edit;
}

sub find_comparisons ($code) {
	my @edit;
	push @edit, [$-[1], $+[1] - $-[1], sub ($old) { $NEXT{$old} }] while $code =~ / ([<>]=?) /g;
	return @edit;
}

sub find_errors ($code) {
	return [$-[1], $+[1] - $-[1], sub ($old) { $old eq 'false' ? 'true' : '0' }]
	    if $code =~ /\breturn \((-E[A-Z0-9]+|-errno|-?err(?:or)?|EX_(?!OK)[A-Z]+|false)\);/;
	return;
}

sub find_calls ($code) {
	my ($name) = $code =~ /^\t+(?:\(void\))?([a-z_]\w*)$BALANCED;\s*$/ or return;
	return if $name =~ $NOT_DROPPED;
	my ($from) = $code =~ /^(\t+)/;
	return [length $from, length($code =~ s/\s+$//r) - length $from, sub ($old) { ';' }];
}

sub find_limits ($code) {
	$code =~ /^\s*#\s*define\s+[A-Z]\w*\s+([\d(][\d\s*()+uUlL]*?)\s*$/ || $code =~ /^\s+[A-Z][A-Z0-9_]*$LIMIT = (\d+),/ or return;
	my @at = ($-[1], $+[1] - $-[1]);
	return $1 =~ /[1-9]/ ? [@at, sub ($old) { "(2 * $old)" }] : ();
}

sub find_flags ($code) {
	my @edit;
	push @edit, [$-[0], $+[0] - $-[0], sub ($old) { '' }] while $code =~ / \| [A-Z][A-Z0-9_]+\b(?!\()/g;
	push @edit, [$-[0], $+[0] - $-[0], sub ($old) { '' }] while $code =~ /(?<!\| )\b[A-Z][A-Z0-9_]+ \| (?=[A-Z])/g;
	return @edit;
}

# N changes, all kinds in turn, at most one per line.  The same seed and the same changes give the same sample, and a smaller N is its
# beginning.
sub sample ($n, $seed, @change) {
	my (%of, %taken, @sample);
	push @{ $of{ $_->{kind} } }, $_ for @change;
	srand $seed;
	for my $kind (sort keys %of) {
		my $list = $of{$kind};
		for my $i (reverse 1 .. $#$list) {
			my $j = int rand $i + 1;
			@$list[$i, $j] = @$list[$j, $i];
		}
	}
	while (@sample < $n && %of) {
		for my $kind (sort keys %of) {
			my $list = $of{$kind};
			shift @$list while @$list && $taken{"$list->[0]{file}:$list->[0]{line}"};
			delete $of{$kind}, next if !@$list;
			last if @sample == $n;
			my $change = shift @$list;
			$taken{"$change->{file}:$change->{line}"} = 1;
			push @sample, $change;
		}
	}
	return @sample;
}

# ---------------------------------------------------------------- areas

# Each folder with C files has a row.  Longest prefix of the file => its tests in t/, the quick ones first.  Unit tests need no line here: those of the layer
# come first, then those of the layers above.
my %AREA = (
	''                        => [qw(server/files server/connections proxy/proxy accel/answers)],    # layers without a line
	'accel-load/'             => [qw(load/run load/misbehave load/http2 load/http2-misbehave)],
	'accel-pool/'             => [qw(pool/make pool/list pool/evict)],
	'accel-warm/'             => [qw(warm/walk warm/state warm/hang)],
	'base/'                   => [qw(scripts/fuzz-seeds server/log-hygiene accel/ops server/accesslog server/timing server/status)],
	'nginx/'                  => [qw(nginx/same nginx/cold nginx/peer nginx/answers nginx/requests nginx/hung)],
	'fcgi-stat-accel/'        => [qw(accel/manual accel/answers accel/ops accel/hostile accel/warms accel/start accel/opens server/sandbox accel/hang)],
	'files/'                  => [qw(server/files proxy/proxy accel/answers accel/warms)],
	'files/hold/'             => [qw(server/files server/conditions server/idle-files server/settled server/hot-neighbour)],
	'files/warm/'             => [qw(accel/answers accel/warms accel/hang)],
	'io/'                     => [qw(server/files server/connections server/signals server/rotation server/sandbox config/config server/status)],
	'io/code/'                => [qw(module/deflate module/deflate-proxy)],
	'io/disk/'                => [qw(server/files server/status server/devices server/fairness server/hot-neighbour server/faults)],
	'io/file/'                => [qw(server/files server/stalled server/faults server/backends)],
	'io/log/'                 => [qw(server/rotation server/log-json server/log-hygiene server/accesslog module/accesslog-pipe module/syslog)],
	'io/http2/'               => [qw(server/http2 server/http2-limits server/http2-windows server/http2-life proxy/http2 hostile/http2 hostile/http2-floods)],
	'io/loop/'                => [qw(server/files server/connections server/signals server/connections-full)],
	'io/memory/'              => [qw(server/status server/memory)],
	'io/start/'               => [qw(server/listening server/become server/lock-memory server/sandbox server/daemon accel/start)],
	'io/tls/'                  => [qw(server/tls server/tls-settings server/tls-hostile server/tls-client-certificates server/renew load/tls)],
	'proxy-core/'             => [qw(proxy/proxy proxy/chain proxy/uploads proxy/slow-clients)],
	'server/'                 => [qw(server/files server/ranges server/conditions server/hostile-requests server/connections server/accesslog config/config config/manual server/signals)],
	'server/config/'          => [qw(config/config config/manual server/physical config/conditions-hostile config/refused-settings config/formats server/helper)],
	'server/config/check/'    => [qw(config/check config/config config/pools server/physical)],
	'server/config/language/' => [qw(config/config config/conditions-hostile config/large module/language)],
	'server/config/lighttpd/' => [qw(config/lighttpd-names config/refused-settings config/translate module/places)],
	'server/conn/'            => [qw(server/connections server/hostile-requests server/signals proxy/uploads server/connections-full server/draining)],
	'server/ctl/'             => [qw(server/ctl server/draining server/rotation server/reload)],
	'server/handler/'         => [qw(server/files server/ranges server/conditions proxy/proxy proxy/chain server/status)],
	'server/helper/'          => [qw(server/helper server/signals server/rotation)],
	'server/log/'             => [qw(server/accesslog server/accesslog-json module/accesslog-format module/debug-log server/log-hygiene)],
	'server/module/'          => [qw(module/places module/redirect module/rewrite module/setenv module/deflate module/auth-basic module/auth-digest module/dir-listing module/access module/reload)],
	'server/process/'         => [qw(server/signals server/helper server/sandbox server/rotation server/draining)],
	'server/reply/'           => [qw(server/files server/ranges server/conditions server/not-modified server/errors-explained server/timing)],
	'server/request/'         => [qw(server/files server/hostile-requests module/error-handler module/rewrite server/errors-explained proxy/uploads proxy/request-id)],
	'server/route/'           => [qw(server/files config/conditions-hostile server/extforward module/places module/simple-vhost module/evhost)],
	'server/status/'          => [qw(server/status server/log-hygiene)],
	'server/worker/'          => [qw(server/files server/connections server/draining server/reload server/status server/idle)],
	'walk/'                   => [qw(warm/walk warm/state warm/hang pool/evict)],
	'wire/'                   => [qw(scripts/fuzz-seeds server/ranges server/conditions server/hostile-requests proxy/proxy accel/answers)],
	'wire/codec/'             => [qw(scripts/fuzz-seeds proxy/proxy proxy/ajp13 proxy/scgi proxy/uwsgi proxy/http proxy/sendfile)],
	'wire/http2/'             => [qw(scripts/fuzz-seeds server/http2 server/h2spec)],
	'wire/http1/'             => [qw(scripts/fuzz-seeds server/ranges server/conditions server/not-modified server/hostile-requests proxy/http)],
);

# The area of a file: a key of %AREA.
sub area_of ($file) {
	return (sort { length $b <=> length $a } grep { index($file, $_) == 0 } keys %AREA)[0];
}

# The tests in t/ of an area.
sub tests_of ($area) { return map { "t/$_.t" } @{ $AREA{$area} } }

sub areas () { return sort keys %AREA }

1;
