package Test::Meet::Model;
# Random requests, and what must come of each.
#
#     my $model = Test::Meet::Model->new($conf, $dir);
#     my $q = $model->request($dice, 's7.1.1');   # { id, method, pieces, facts, want, ... }
#     my @wrong = $model->judge($client);
#     my @late = $model->journal($line);          # what an application says it got
#
# `want` lists what may come: [status, text or pattern]. `cut`: the reply may end early, or may not come. `close`: the connection may end after
# it. `dead`: nothing may be answered after it. Only what is certain is judged: a client that leaves is owed nothing, and once a time-out could
# have passed, a refusal is honest.
use v5.36;
use Digest::MD5 qw(md5_hex);
use Test::Meet::Conf ();
use Test::Wire ();

my @SIZE = (20, 1000, 70_000, 300_000);
our $ERROR_PAGE = "<html>the error page</html>\n";

sub content ($n) {
	return substr "FILE $n " . join('', map { chr(97 + ($_ * 7 + $n) % 26) } 0 .. 1012) x (1 + $SIZE[$n] / 1000), 0, $SIZE[$n];
}

my @file = map { content($_) } 0 .. $#SIZE;

sub new ($class, $conf, $dir, $before = {}) {
	return bless { conf => $conf, dir => $dir, sent => {}, before => $before }, $class;
}

# ---------------------------------------------------------------- what may come

my $BUILT_IN = qr/\A(?:<!DOCTYPE|<html|<\?xml)/i;

# The server itself refuses with one of these.
sub _refused ($self, $q, @status) {
	my $conf = $self->{conf};
	my @want = map { [$_, $BUILT_IN] } @status;
	# X-Sendfile is dropped, and the reply stays
	my $stale = [200, "control $q->{id}\n"];
	if ($conf->{eh} ne 'none') {
		push @want, [200, $self->_echoed($q, 'eh', 0)] if $conf->{eh_path} =~ /a=echo/;
		push @want, $stale if $conf->{eh} eq 'stale' && !$conf->{xsend};
	} elsif ($conf->{eh404} ne 'none' && grep { $_ == 403 || $_ == 404 } @status) {
		push @want, [200, $BUILT_IN] if $conf->{eh404} eq 'page';
		push @want, [206, substr $ERROR_PAGE, 5, 10] if $conf->{eh404} eq 'page' && "@{ $q->{lines} }" =~ /Range/;
		push @want, [200, $self->_echoed($q, 'eh404', 1)] if $conf->{eh404_path} =~ /a=echo/;
		push @want, map { [$_, $BUILT_IN] } 502, 503, 504 if $conf->{eh404} eq 'broken';      # of the front controller itself
		push @want, $stale if $conf->{eh404} eq 'stale' && !$conf->{xsend};
	}
	return @want;
}

sub _intercepted ($self, $q, @status) {
	return $self->{conf}{intercept} ? $self->_refused($q, @status) : ();
}

sub _line ($q, $hop, $method, $body) { return join(' ', $q->{id}, $hop, $method, length $body, md5_hex($body)) . "\n" }

# What an application says of the request.  An error handler gets no body, or (as a front controller) that of the request, if no application
# has had it before.
sub _echoed ($self, $q, $hop, $body) {
	my $get = $q->{method} eq 'HEAD' ? 'HEAD' : 'GET';
	my %ok = map { $_ => 1 } _line($q, $hop, $get, ''), $body ? _line($q, $hop, $q->{method}, $q->{body}) : ();
	return sub { $ok{ $_[0] } };
}

sub _file ($self, $n, $range = undef) { return $range ? [206, substr $file[$n], 5, 10] : [200, $file[$n]] }

# ---------------------------------------------------------------- requests

sub request ($self, $dice, $id) {
	my $handler = $dice->weigh(hot => 5, cold => 7, missing => 4, dir => 1, (map { $_ => 5 } @Test::Wire::PROTOCOLS), cgi => 2, status => 1);
	my $is_app = grep { $_ eq $handler } @Test::Wire::PROTOCOLS, 'cgi';
	my %q = (id => $id, handler => $handler, want => [], lines => [], body => '');
	$q{auth} = $dice->weigh(none => 30, grant => 3, late => 1, deny => 2, break => 1, garbage => 1) unless $handler eq 'status' || $handler eq 'cgi';
	$q{auth} //= 'none';
	$q{method} = $is_app ? $dice->weigh(GET => 4, HEAD => 1, POST => 7) : $dice->weigh(GET => 8, HEAD => 2, POST => 2);
	$q{kind} = $q{method} eq 'POST' ? $dice->weigh(none => 1, length => 5, chunked => 4, expect => 1, 'expect-chunked' => 1, bad => 3)
	    : 'none';
	$q{body} = $self->_body($dice, $id) if $q{kind} ne 'none';
	$self->{sent}{$id} = \%q;
	$q{path} = $is_app ? $self->_app($dice, \%q) : $self->_file_request($dice, \%q);
	$q{path} = "/rw$q{path}" if $dice->chance(10) && $q{auth} eq 'none';
	$self->_authorized(\%q) if $q{auth} ne 'none';
	$self->_broken_body($dice, \%q) if $q{kind} eq 'bad';
	$self->_pieces($dice, \%q);
	push @{ $q{facts} }, "handler=$handler", "method=$q{method}", "body=$q{kind}", "auth=$q{auth}";
	return \%q;
}

sub _body ($self, $dice, $id) {
	my $n = $dice->weigh(1 => 1, 10 => 3, 1000 => 4, 20_000 => 3, 70_000 => 2, 300_000 => 1);
	return substr "$id " . join('', map { chr(65 + $dice->n(26)) } 1 .. 61) x (1 + $n / 60), 0, $n;
}

sub _file_request ($self, $dice, $q) {
	my $n = $dice->weigh(0 => 4, 1 => 3, 2 => 2, 3 => 1);
	my $at = $q->{auth} eq 'none' ? '' : '/auth';
	my $range = $dice->chance(10) && $q->{method} eq 'GET';
	push @{ $q->{lines} }, 'Range: bytes=5-14' if $range;
	if ($q->{handler} eq 'status') {
		push @{ $q->{want} }, [200, qr/\A/], $self->_refused($q, 405);
		$q->{close} = 1 if $q->{body} ne '';
		return '/status?auto';
	}
	my $path = $q->{handler} eq 'hot' ? "/files/$n.bin" : $q->{handler} eq 'cold' ? $self->cold($q->{id}, $n) : $q->{handler} eq 'dir' ? $dice->pick('/files/', '/files')
	    : $dice->pick('/files/none1', '/none/none2', "/files/$q->{id}");
	push @{ $q->{want} }, $self->_file($n, $range) if $q->{handler} =~ /hot|cold/ && $q->{method} ne 'POST';
	push @{ $q->{want} }, $self->_refused($q, $q->{method} eq 'POST' ? 405 : (), 404) if $q->{handler} eq 'missing';
	push @{ $q->{want} }, [301, qr/\A/], $self->_refused($q, $q->{method} eq 'POST' ? 405 : (), 403, 404) if $q->{handler} eq 'dir';
	push @{ $q->{want} }, $self->_refused($q, 405) if $q->{method} eq 'POST' && $q->{handler} !~ /missing|dir/;
	$q->{close} = 1 if $q->{body} ne '';
	return "$at$path";
}

# A name that was never asked for.  It is a link, so a thread follows it (io/disk/at_once.c).
sub cold ($self, $name, $n) {
	symlink "../files/$n.bin", "$self->{dir}/www/cold/$name" or die "$name: $!";
	return "/cold/$name";
}

# ---------------------------------------------------------------- applications

my @CONTROLS = qw(X-Sendfile X-LIGHTTPD-send-file X-Sendfile2 X-Accel-Redirect X-Rewrite-URI);

sub _escape { return $_[0] =~ s/([^A-Za-z0-9_.~\/-])/sprintf '%%%02x', ord $1/ger }

sub _app ($self, $dice, $q) {
	my $at = ($q->{auth} eq 'none' ? '' : '/auth') . ($q->{handler} eq 'cgi' ? '/x.cgi' : "/$q->{handler}/");
	my $act = $dice->weigh(echo => 10, late => 5, open => 3, early => 2, earlyclose => 1, earlybreak => 1, breakhead => 1, reset => 1, garbage => 1, break => 1,
		status => 2, control => 12, earlycontrol => 3, $q->{slow_done} ? () : (silent => 0.05));
	push @{ $q->{facts} }, "act=$act";
	my $do = "a=$act&h=0";
	if ($act =~ /echo|late|open|status/) {
		my $pad = $dice->weigh(0 => 8, 3000 => 2, 100_000 => 1);
		my $status = $act eq 'status' ? $dice->pick(404, 403, 500, 503, 401, 302) : 200;
		my $text = _line($q, 0, $q->{method}, $q->{body}) . 'x' x $pad;
		push @{ $q->{want} }, [$status, $text], $status >= 400 && $status != 401 ? $self->_intercepted($q, $status) : ();
		return "$at?$do&p=$pad" . ($status != 200 ? "&s=$status" : '');
	}
	return "$at?$do&" . $self->_control($dice, $q, $act) if $act =~ /control/;
	my $early = [200, "early $q->{id}\n"];
	my @fail = $self->_refused($q, 502, 503, 504, 500);
	if ($act eq 'early') {
		push @{ $q->{want} }, $early;
		if ($q->{body} ne '') {
			$q->{close} = 1;
			# a program that ends breaks its input
			push @{ $q->{want} }, @fail if $q->{handler} eq 'cgi';
		}
	} elsif ($act eq 'earlyclose') {
		push @{ $q->{want} }, $early;
		if ($q->{body} ne '') { push @{ $q->{want} }, @fail; $q->{close} = $q->{cut} = 1 }
	} elsif ($act eq 'break') {
		push @{ $q->{want} }, @fail, [200, qr/\Ahalf\z/];
		$q->{cut} = $q->{close} = 1;
		$q->{must_cut} = 1;
	} else {
		push @{ $q->{want} }, @fail;
		$q->{close} = 1 if $q->{body} ne '';
	}
	return "$at?$do";
}

sub _control ($self, $dice, $q, $act) {
	my $name = $dice->pick(@CONTROLS);
	my $target = $dice->weigh(hot => 2, cold => 3, missing => 5, dir => 2, outside => 2, app => 2);
	my $n = $dice->weigh(0 => 4, 1 => 3, 2 => 1);
	my $uri = $name =~ /Redirect|URI/;
	$target = 'missing' if $target eq 'app' && !$uri;
	push @{ $q->{facts} }, "control=$name", "target=$target";
	my $www = "$self->{dir}/www";
	my $hop = $dice->pick(@Test::Wire::PROTOCOLS, 'cgi');
	my %at = (hot => "/files/$n.bin", missing => $dice->pick('/files/none1', "/files/$q->{id}"), dir => '/files', outside => "/../private",
		app => $hop eq 'cgi' ? '/x.cgi?a=echo&h=2' : "/$hop/?a=echo&h=2");
	my $where = $target eq 'cold' ? $self->cold("$q->{id}c", $n) : $at{$target};
	my $value = $uri ? $where : $target eq 'outside' ? '/etc/hostname' : "$www$where";
	$value .= ' ' . ($target =~ /hot|cold/ ? '5-14' : $dice->pick('0-', '9-5', 'x')) if $name eq 'X-Sendfile2';
	my $dropped = [200, "control $q->{id}\n"];
	my $cgi = $q->{handler} eq 'cgi';
	my @early = $act eq 'earlycontrol' && $q->{body} ne '' ? $self->_refused($q, 502, 500, 504) : ();
	$q->{close} = 1 if @early;
	push @{ $q->{want} }, @early;
	if ($name eq 'X-Rewrite-URI') {
		if ($cgi) { push @{ $q->{want} }, $dropped }
		elsif ($q->{kind} ne 'none') { push @{ $q->{want} }, $self->_refused($q, 502) }
		else { push @{ $q->{want} }, $self->_target($q, $target, $n, 1) }
	} elsif (!$self->{conf}{xsend}) {
		push @{ $q->{want} }, $dropped;
	} elsif ($name eq 'X-Sendfile2') {
		push @{ $q->{want} }, $target =~ /hot|cold/ ? [200, substr $file[$n], 5, 10] : $self->_refused($q, 403, 404, 416, 500, 502);
	} else {
		push @{ $q->{want} }, $self->_target($q, $target, $n, 0);
	}
	return 'x=' . _escape($name) . '&v=' . _escape($value);
}

# A file, a path or an application that a reply names.
sub _target ($self, $q, $target, $n, $redone) {
	return $self->_file($n) if $target =~ /hot|cold/ && !($redone && $q->{method} eq 'POST');
	return $self->_refused($q, 405) if $target =~ /hot|cold/;
	return [200, $self->_echoed($q, 2, 1)] if $target eq 'app';
	return ([301, qr/\A/], $self->_refused($q, 403, 404, 405)) if $target eq 'dir';
	return $self->_refused($q, 403, 404, 405, 400, 502, 500);
}

# ---------------------------------------------------------------- around it

sub _authorized ($self, $q) {
	push @{ $q->{lines} }, "X-Auth: $q->{auth}";
	return if $q->{auth} =~ /grant|late/;
	$q->{want} = $q->{auth} eq 'deny' ? [[403, "denied $q->{id}\n"], $self->_intercepted($q, 403)] : [$self->_refused($q, 502, 503, 504)];
	$q->{unseen} = 1;
	delete @$q{qw(cut must_cut)};
	$q->{close} = 1 if $q->{body} ne '';
}

# A malformed body is never answered as if it were whole; an answer that was sent before the fault was seen is allowed.
sub _broken_body ($self, $dice, $q) {
	my $act = join ' ', @{ $q->{facts} // [] };
	my @before = grep { $_->[0] >= 300 || $act =~ /act=early/ || $q->{unseen} } @{ $q->{want} };
	$q->{want} = [@before, $self->_refused($q, 400)];
	$q->{dead} = $q->{cut} = $q->{close} = 1;
	delete $q->{must_cut};
}

sub _chunks ($dice, $body) {
	my $out = '';
	while (length $body) {
		my $n = 1 + $dice->n($dice->pick(10, 1000, 100_000));
		my $piece = substr $body, 0, $n, '';
		$out .= sprintf "%x\r\n%s\r\n", length $piece, $piece;
	}
	return "${out}0\r\n\r\n";
}

my @BAD = ("ZZ\r\n", "3\r\nabcZZ\r\n0\r\n\r\n", "3\r\nabc\r\nZZ\r\n", "3\r\nabc\r\n-1\r\n", "ffffffffffffffffff\r\n", "3\r\nabc\r\n0\r\nbad trailer\r\n\r\n");

sub _pieces ($self, $dice, $q) {
	my @lines = ("$q->{method} $q->{path} HTTP/1.1", 'Host: x', "X-Id: $q->{id}", @{ $q->{lines} });
	my ($kind, $body) = @$q{qw(kind body)};
	push @lines, 'Content-Length: ' . length $body if $kind =~ /^(?:length|expect)\z/ || $kind eq 'none' && $q->{method} eq 'POST';
	push @lines, 'Transfer-Encoding: chunked' if $kind =~ /chunked|bad/;
	push @lines, 'Expect: 100-continue' if $kind =~ /expect/;
	my $bytes = $kind =~ /chunked/ ? _chunks($dice, $body) : $kind eq 'bad' ? $dice->pick(@BAD) : $body;
	# a request beyond the memory that a connection has ready
	push @lines, 'X-Pad: ' . 'p' x $dice->pick(2000, 6000) if $dice->chance(20);
	$q->{head} = \@lines;
	$q->{waits} = 1 if $kind =~ /expect/ && $dice->chance(70);
	$q->{bytes} = $bytes;
	$q->{close} = 1 if $kind =~ /expect/;
}

# The bytes of a train, in the order of its requests.
sub pieces ($self, $train, $ends) {
	my @out;
	for my $i (0 .. $#$train) {
		my $q = $train->[$i];
		my $head = join "\r\n", @{ $q->{head} }, $ends && $i == $#$train ? 'Connection: close' : (), '', '';
		push @out, { bytes => $q->{waits} ? $head : "$head$q->{bytes}", request => $i };
		push @out, { bytes => $q->{bytes}, start => $i, request => $i } if $q->{waits} && length $q->{bytes};
	}
	return @out;
}

# ---------------------------------------------------------------- the verdict

sub _fits ($is, $want) {
	return $is eq $want if !ref $want;
	return ref $want eq 'CODE' ? $want->($is) : $is =~ $want;
}

sub _shown ($s) { return '"' . substr($s =~ s/[^ -~]/./gr, 0, 60) . '"' . (length $s > 60 ? ' and ' . (length($s) - 60) . ' bytes' : '') }

sub _reply ($self, $q, $r, $late) {
	return "status line: $r->{head}" if !$r->{status};
	my ($leak) = $r->{head} =~ /^((?:x-sendfile|x-lighttpd-|x-accel-|x-rewrite-)[^\r\n]*)/mi;
	return "a control header reaches the client: $leak" if $leak;
	return '100 Continue without Expect' if $r->{interim} && $q->{kind} !~ /expect/;
	if ($r->{cut}) {
		return if $q->{cut} || $late;
		return "cut after " . length($r->{body}) . " bytes, status $r->{status}";
	}
	return "whole, but the application broke off" if $q->{must_cut} && $r->{status} == 200 && $q->{method} ne 'HEAD';
	return if $late && $r->{status} =~ /^(?:408|502|503|504)\z/;
	my @fits = grep { $_->[0] == $r->{status} } @{ $q->{want} };
	return "status $r->{status}, " . _shown($r->{body}) . ', expected ' . join ' or ', map { $_->[0] } @{ $q->{want} } unless @fits;
	return if $q->{method} eq 'HEAD' || grep { _fits($r->{body}, $_->[1]) } @fits;
	return "status $r->{status} with a wrong body: " . _shown($r->{body}) . (ref $fits[0][1] ? '' : ', expected ' . _shown($fits[0][1]));
}

# What is wrong with a connection, as texts.
sub judge ($self, $c) {
	my ($train, $replies) = @$c{qw(train replies)};
	my $late = $c->{took} >= Test::Meet::Conf::PATIENCE;
	my ($closes, @wrong);
	for my $i (0 .. $#$replies) {
		my ($q, $r) = ($train->[$i], $replies->[$i]);
		if (!$q)            { push @wrong, "one reply more than requests: $r->{status} " . _shown($r->{body}); last }
		if ($closes && $closes eq 'dead') { push @wrong, "$q->{id} is answered with $r->{status} after a malformed body"; last }
		my $why = $self->_reply($q, $r, $late);
		push @wrong, "$q->{id} $q->{method} $q->{path}: $why" if $why;
		my $said = $r->{head} =~ /^connection: *close\r?$/mi;
		my $last = $c->{ends} && $i == $#$train;
		push @wrong, "$q->{id} $q->{method} $q->{path}: the connection closes without a reason, status $r->{status}"
		    if $said && !$q->{close} && !$last && !$late && !$closes && !$c->{half};
		$closes = $q->{dead} ? 'dead' : 1 if $q->{close};
	}
	return @wrong if $c->{left};
	push @wrong, 'bytes after the last reply: ' . _shown($c->{in}) if length $c->{in} && @$replies >= @$train;
	push @wrong, "no byte for long; answered " . @$replies . ' of ' . @$train . ($train->[@$replies] ? ", next $train->[@$replies]{id} $train->[@$replies]{method} $train->[@$replies]{path}" : ', the end')
	    if $c->{stuck};
	my $next = $train->[@$replies];
	push @wrong, "$next->{id} $next->{method} $next->{path}: closed without a reply"
	    if $next && !$c->{stuck} && !$closes && !$next->{cut} && !$late && !$c->{half};
	return @wrong;
}

# A line of the applications.
sub journal ($self, $line) {
	my ($id, $hop, $method, $n, $digest, $how) = split ' ', $line;
	return "an application got a malformed request: $line" if $hop eq 'malformed';
	my $q = $self->{sent}{$id} // $self->{before}{$id} // return "an application got a request that nobody sent: $line";
	return if ($how // '') ne 'whole';
	my $whole = $n == length $q->{body} && $digest eq md5_hex($q->{body});
	return "an application got a body as whole that was malformed: $line" if $q->{kind} eq 'bad' && $method eq 'POST';
	return "an application got a body other than the one that was sent (" . length($q->{body}) . " bytes): $line" if $method eq 'POST' && !$whole;
	return "an application got a body with $method: $line" if $method ne 'POST' && $n;
	return "an application got it although the authorizer refused: $line" if $q->{unseen} && $hop !~ /^eh/;
	return;
}

1;
