package Test::Meet;
# Features of accel-server meet at random, and a model says what must come out.
#
#     my $run = Test::Meet->new(jobs => 4);
#     $run->seeds(1 .. 240);                      # { seed => [texts of what is wrong] }
#     print $run->pairs;
#
# `GROUP` seeds share a configuration (Test::Meet::Conf) and a server. A seed is some connections with trains of requests
# (Test::Meet::Model) to files, programs and applications (Test::Meet::Apps), all at once (Test::Meet::Client), and beside them a connection
# that is well-behaved and must not notice. When the seeds of a group are through, nothing may be left in the server.
#
# A seed always makes the same bytes. What a server remembers of the seeds before it in its group matters, too, so a seed is replayed
# after those. After a failure the server is started anew.
use v5.36;
use File::Path qw(make_path);
use File::Temp ();
use IO::Select ();
use JSON::PP ();
use POSIX ();
use Test::Meet::Apps ();
use Test::Meet::Client ();
use Test::Meet::Conf ();
use Test::Meet::Dice ();
use Test::Meet::Model ();
use Test::Server ();
use Test::Util qw(eventually put sanitized slurp);
use Time::HiRes qw(time);

use constant GROUP => 8;

our $VICTIM = '127.0.0.9';
our @OTHERS = map { "127.0.0.$_" } 66 .. 69;

sub new ($class, %arg) {
	return bless { jobs => 1, stuck => sanitized() ? 40 : 20, wrong => {}, met => {}, requests => 0, done => 0, %arg }, $class;
}

# ---------------------------------------------------------------- processes

sub group_of ($seed) { return int(($seed - 1) / GROUP) }

# Runs these seeds, each after those before it in its group.  Stops early at the time `until`, if that is set.  Returns { seed => [wrong, ...] }.
sub seeds ($self, @seeds) {
	my (%of, @kid);
	push @{ $of{ group_of($_) } }, $_ for @seeds;
	my @groups = sort { $a <=> $b } keys %of;
	for my $j (0 .. $self->{jobs} - 1) {
		my @mine = @groups[grep { $_ % $self->{jobs} == $j } 0 .. $#groups] or next;
		my $pid = open(my $from, '-|') // die "fork: $!";
		if (!$pid) {
			my $ok = eval { $self->_job(map { [$_, $of{$_}] } @mine); 1 };
			print STDERR "# a job of Test::Meet ends: $@" unless $ok;
			STDOUT->flush;
			POSIX::_exit(!$ok);
		}
		push @kid, $from;
	}
	my $select = IO::Select->new(@kid);
	my %rest;
	while ($select->count) {
		for my $fh ($select->can_read) {
			if (sysread $fh, $rest{$fh}, 65536, length($rest{$fh} // '')) {
				while ($rest{$fh} =~ s/\A([^\n]*)\n//) { $self->_take(JSON::PP::decode_json($1)) }
				next;
			}
			$select->remove($fh);
			close $fh or $self->{wrong}{0} = ['a job ended with status ' . ($? >> 8)];
		}
	}
	return $self->{wrong};
}

sub _take ($self, $r) {
	if ($r->{met}) { $self->{met}{$_} += $r->{met}{$_} for keys %{ $r->{met} } }
	$self->{requests} += $r->{requests} // 0;
	$self->{done}++ if $r->{seed} && !$r->{late};
	push @{ $self->{wrong}{ $r->{seed} } }, @{ $r->{wrong} } if @{ $r->{wrong} // [] };
	$self->{heard}->($r) if $self->{heard};
}

sub _tell (%r) { print STDOUT JSON::PP::encode_json(\%r), "\n"; STDOUT->flush }

sub _job ($self, @groups) {
	$SIG{$_} = sub { POSIX::_exit(1) } for qw(INT TERM HUP);
	$self->{dir} = my $dir = File::Temp->newdir('accel-meet-XXXXXX', TMPDIR => 1);
	chmod 0755, "$dir";
	make_path(map { "$dir/www/$_" } qw(files cold auth/files));
	for my $n (0 .. 3) { put("$dir/www/files/$n.bin", Test::Meet::Model::content($n)) }
	put("$dir/www/files/error.html", $Test::Meet::Model::ERROR_PAGE);
	symlink '../cold', "$dir/www/auth/cold";
	rmdir "$dir/www/auth/files";
	symlink '../files', "$dir/www/auth/files";
	put("$dir/www/x.cgi", Test::Meet::Apps::program("$dir/journal"));
	my $apps = Test::Meet::Apps->start("$dir");
	open $self->{journal}, '<', "$dir/journal" or die "journal: $!";
	for (@groups) {
		last if $self->{until} && time > $self->{until};
		$self->_group(@$_);
	}
	undef $apps;
	delete $self->{dir};
}

# ---------------------------------------------------------------- a group

sub _group ($self, $g, $asked) {
	my %asked = map { $_ => 1 } @$asked;
	my ($first, $last) = (GROUP * $g + 1, (sort { $a <=> $b } @$asked)[-1]);
	$first = $last if $self->{alone};
	$self->{conf} = Test::Meet::Conf->new(Test::Meet::Dice->new(1_000_003 * ($g + 1)), "$self->{dir}");
	my $before = $self->{model} // { sent => {} };  # what an application says may come late
	$self->{model} = Test::Meet::Model->new($self->{conf}, "$self->{dir}", $before->{sent});
	my @seeds = $first .. $last;
	for my $seed (@seeds) {
		$self->_start unless $self->{server};
		$self->{met} = {};
		my $srv = $self->{server};
		my ($n, @wrong) = $self->_scene($seed);
		my $died = $self->_died;
		push @wrong, $died if $died;
		push @wrong, $self->_journal;
		push @wrong, $self->_end if @wrong || $seed == $last;
		$self->_show($srv) if $self->{show} && $asked{$seed};
		_tell(seed => $seed, wrong => $asked{$seed} ? \@wrong : [], requests => $n, met => $self->{met});
	}
	unlink glob "$self->{dir}/www/cold/*";
}

sub _start ($self) {
	my $srv = $self->{server} = Test::Server->start(dir => "$self->{dir}/www", conf => $self->{conf}{text});
	$self->{fds} = eventually(sub { defined $srv->wait_exit(0) || $srv->fetch('/status?auto')->{status} == 200 }) && $srv->descriptors;
}

# Why the server ended, or ''.
sub _died ($self) {
	my $srv = $self->{server};
	# a process that dies under a sanitizer takes a while to write its report
	return '' unless defined $srv->wait_exit(0) || $srv->log =~ /Sanitizer|ev=must/;
	my $status = $srv->wait_exit(20) // -1;
	my ($why) = $srv->log =~ /^(?:ts=\S+ level=alert )?(.*(?:ev=must|ERROR: \w+Sanitizer|runtime error:).*)$/m;
	my @at = grep { !/interceptor|asan_|libasan|libc\.so/ } $srv->log =~ /^\s+#\d+ 0x\w+ in (\w+ \S+)/mg;
	splice @at, 3 if @at > 3;
	return "the server ended with status $status: " . join ' < ', $why // substr($srv->log, -300), @at;
}

# Anything left behind is an error.
sub _end ($self) {
	my $srv = delete $self->{server};
	if (defined $srv->wait_exit(0)) {
		$srv->{unchecked} = $srv->{stopped} = 1;        # said by _died()
		return;
	}
	my $left = '';
	eventually(sub { $left = $self->_left($srv); $left eq '' }, $self->{stuck}) unless $self->{hung};
	my $log = $srv->log;
	$srv->signal('KILL') if delete $self->{hung};
	my $wrong = $srv->stop;
	return ($left ? "left behind: $left" : (), $wrong && !($wrong =~ /wait status 0x9/) ? "the server $wrong: " . substr($log, -400) : ());
}

# Busy things on the status page, and open descriptors.
sub _left ($self, $srv) {
	my $s = eval { JSON::PP::decode_json($srv->fetch('/status?json')->{body}) } or return 'no status page';
	my $spool = $s->{counters}{'server.spool.files-opened'} - $s->{counters}{'server.spool.files-closed'};
	my $busy = 0;
	$busy += $_->{busy} // 0 for @{ $s->{backends} };
	my $idle = 0;
	$idle += $_->{idle} // 0 for @{ $s->{backends} };
	my $fds = $srv->descriptors - $self->{fds} - $s->{cache}{entries} - $idle;
	return join ', ', $s->{connections}{open} > 1 ? "$s->{connections}{open} connections" : (), $s->{running}{requests} > 1 ? "$s->{running}{requests} requests" : (),
	    $spool ? "$spool spool files" : (), $busy ? "$busy busy sockets of applications" : (), $s->{disk}{jobs} ? "$s->{disk}{jobs} jobs" : (),
	    $fds > 2 ? "$fds descriptors" : ();
}

sub _journal ($self) {
	my $fh = $self->{journal};
	seek $fh, 0, 1;
	return map { chomp; $self->{model}->journal($_) } <$fh>;
}

# ---------------------------------------------------------------- a seed

sub _train ($self, $dice, $name) {
	my @train = map { $self->{model}->request($dice, "$name.$_") } 1 .. $dice->weigh(1 => 1, 2 => 2, 3 => 3, 4 => 2, 6 => 2);
	return \@train;
}

# Bytes cut at random places, with a pause between.
sub _split ($dice, @pieces) {
	my @out;
	for my $p (@pieces) {
		my $bytes = $p->{bytes};
		my $left = 1 + $dice->n(4);
		while ($left-- && length $bytes > 1) {
			push @out, { %$p, bytes => substr($bytes, 0, 1 + $dice->n(length($bytes) - 1), ''), pause => $dice->n(4) / 1000 };
		}
		push @out, { %$p, bytes => $bytes, pause => $dice->n(4) / 1000 };
	}
	return @out;
}

# Neighbours without a gate between them leave in one segment.
sub _join (@pieces) {
	my @out;
	for my $p (@pieces) {
		if (@out && !defined $p->{start}) { $out[-1]{bytes} .= $p->{bytes} }
		else                              { push @out, {%$p} }
	}
	return @out;
}

sub _client ($self, $dice, $name) {
	my $train = $self->_train($dice, $name);
	my $ends = $dice->chance(60);
	my $pace = $dice->weigh(one => 7, split => 3, each => 2, lockstep => 2);
	my $fate = $dice->weigh(stays => 16, leaves => 3, half => 1, slow => 2);
	my @out = $self->{model}->pieces($train, $ends);
	if ($pace eq 'lockstep') { $_->{gate} = $_->{request} - 1 for grep { $_->{request} && !defined $_->{start} } @out }
	@out = $pace eq 'one' ? _join(@out) : $pace eq 'split' ? _split($dice, @out) : @out;
	my %self = (from => $dice->pick(@OTHERS), train => $train, ends => $ends, out => \@out);
	if ($fate eq 'leaves') {
		my $all = 0;
		$all += length $_->{bytes} for @out;
		$self{ $dice->chance(60) ? 'leave_out' : 'leave_in' } = 1 + $dice->n($all);
		$self{reset} = $dice->chance(50);
	}
	$self{half} = 1 if $fate eq 'half';
	$self{slow} = 2048 if $fate eq 'slow';
	$self->_meet("pace=$pace", "fate=$fate", $train);
	return Test::Meet::Client->new($self->{server}->port, %self);
}

# One after the other, each answered exactly.
sub _victim ($self, $dice, $name) {
	my @train;
	for my $i (1 .. 4) {
		my %q = (id => "$name.$i", handler => 'victim', method => 'GET', kind => 'none', body => '', lines => [], bytes => '');
		my $app = $i % 2 ? undef : $dice->pick(@Test::Wire::PROTOCOLS);
		my $n = $dice->n(2);
		$q{path} = $app ? "/$app/?a=echo&h=0" : "/files/$n.bin";
		$q{want} = [[200, $app ? join(' ', $q{id}, 0, 'GET', 0, Digest::MD5::md5_hex('')) . "\n" : Test::Meet::Model::content($n)]];
		$q{head} = ["GET $q{path} HTTP/1.1", 'Host: x', "X-Id: $q{id}"];
		$self->{model}{sent}{ $q{id} } = \%q;
		push @train, \%q;
	}
	my @out = $self->{model}->pieces(\@train, 1);
	$_->{gate} = $_->{request} - 1 for grep { $_->{request} } @out;
	return Test::Meet::Client->new($self->{server}->port, from => $VICTIM, train => \@train, ends => 1, out => \@out);
}

# Runs a scene: returns the number of requests, and what is wrong.
sub _scene ($self, $seed) {
	my $dice = Test::Meet::Dice->new($seed);
	my @client = map { $self->_client($dice, "s$seed.c$_") } 1 .. $dice->weigh(1 => 3, 2 => 3, 3 => 2);
	my $victim = $self->_victim($dice, "s$seed.v");
	$self->{hung} = 1 if Test::Meet::Client::drive($self->{stuck}, @client, $victim);
	$self->{clients} = [@client, $victim];
	my @wrong = map { $self->{model}->judge($_) } @client;
	push @wrong, map { "another client: $_" } $self->{model}->judge($victim);
	my $n = 0;
	$n += @{ $_->{train} } for @client;
	return ($n, @wrong);
}

# To standard error: what was configured, sent and answered, and the log.
sub _show ($self, $srv) {
	print STDERR $self->{conf}{text};
	for my $c (@{ $self->{clients} }) {
		print STDERR "\nfrom $c->{from}", (map { " $_=$c->{$_}" } grep { $c->{$_} } qw(leave_out leave_in reset half slow ends stuck)), "\n";
		for my $i (0 .. $#{ $c->{train} }) {
			my ($q, $r) = ($c->{train}[$i], $c->{replies}[$i]);
			print STDERR join(', ', map { substr $_, 0, 300 } @{ $q->{head} }), " ($q->{kind}, ", length $q->{bytes}, " bytes)\n";
			printf STDERR "    %s\n", $r ? sprintf '%.3f s: %s%s', $r->{at}, $r->{status}, $r->{cut} ? ', cut' : '' : 'no reply';
		}
	}
	print STDERR "\n", $srv->log;
}

# ---------------------------------------------------------------- the pairs

# Features that meet: those of a request, of its connection, of the configuration, and the kind of the request before it.
sub _meet ($self, $pace, $fate, $train) {
	my $before = 'none';
	for my $q (@$train) {
		my @facts = (@{ $self->{conf}{facts} }, $pace, $fate, "behind=$before", @{ $q->{facts} });
		for my $i (0 .. $#facts) {
			$self->{met}{"$facts[$i] $facts[$_]"}++ for $i + 1 .. $#facts;
		}
		$before = $q->{handler} . ($q->{body} ne '' ? '+body' : '');
	}
}

# A table by kinds of features: how many pairs of values occur, and how many of them have met.
sub pairs ($self) {
	my (%values, %met, @kinds);
	for (keys %{ $self->{met} }) {
		my ($one, $other) = map { [split /=/, $_, 2] } split / /;
		$values{ $_->[0] }{ $_->[1] } = 1 for $one, $other;
		$met{"@{[ sort $one->[0], $other->[0] ]}"}++;
	}
	@kinds = sort keys %values;
	my $text = sprintf '%-10s', '';
	$text .= sprintf ' %9s', $_ for @kinds;
	my ($all, $some) = (0, 0);
	for my $i (0 .. $#kinds) {
		$text .= sprintf "\n%-10s" . ' ' x (10 * ($i + 1)), $kinds[$i];
		for my $other (@kinds[$i + 1 .. $#kinds]) {
			my $possible = keys(%{ $values{ $kinds[$i] } }) * keys %{ $values{$other} };
			my $n = $met{"@{[ sort $kinds[$i], $other ]}"} // 0;
			$text .= sprintf ' %9s', "$n/$possible";
			$all += $possible;
			$some += $n;
		}
	}
	return "$text\n$some of $all pairs of values met\n";
}

1;
