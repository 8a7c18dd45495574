package Accel::Check::NginxName;
# Which file nginx opens for a request, and which file it names to the accelerator.
#
# One request is played: set and rewrite of the server, of the location, then the same for the subrequest of auth_request, whose $uri is
# another and whose variables made by "set" are those of the request.  Words between two \x01 stand for what only a real
# request knows ($host, a captured part): they are equal to themselves and to nothing else.
use v5.36;

use Accel::Check::NginxTree qw(effective find_location params);

use constant { ROUNDS => 10, SAMPLE => 'x-y.txt' };

my $QUESTION = qr{/stat-accel\z};    # a name that ends so is that of the subrequest (fcgi-stat-accel/accel_path.c)

# ---------------------------------------------------------------- locations

# (operator, name): "=", "^~", "~", "~*" or "".
sub location_name ($loc) {
	my @args = @{ $loc->{args} };
	return @args if @args > 1;
	my $name = $args[0] // '';
	return $name =~ /^(=|~\*?|\^~)(.+)\z/s ? ($1, $2) : ('', $name);
}

# A sample request that this block answers.
sub sample ($block) {
	return '/' . SAMPLE if $block->{name} eq 'server';
	my ($op, $name) = location_name($block);
	return $op eq '=' ? $name : $op =~ /^~/ || $name !~ m{^/} ? '/' . SAMPLE : $name . SAMPLE;
}

sub is_regex ($block) { return $block->{name} eq 'location' && (location_name($block))[0] =~ /^~/ }

# ---------------------------------------------------------------- variables

sub unknown ($what) { return "\x01$what\x01" }

sub document_root ($env) {
	my $d = effective($env->{block}, 'root', 'alias');
	return $d ? expand($env, $d->{args}[0] // '') =~ s{(?<=.)/+\z}{}r : unknown('html');
}

# The name that nginx opens for $env->{uri}.
sub opened ($env) {
	my $d = effective($env->{block}, 'root', 'alias');
	return document_root($env) . $env->{uri} if !$d || $d->{name} eq 'root';
	my $alias = expand($env, $d->{args}[0] // '');
	return $alias if is_regex($d->{parent});
	my (undef, $name) = location_name($d->{parent});
	return $alias . substr $env->{uri}, length $name;
}

sub variable ($env, $name) {
	return $env->{set}{$name} if exists $env->{set}{$name};
	return $env->{uri} if $name =~ /^(?:uri|document_uri|fastcgi_script_name)\z/;
	return "$env->{asked}?q=1" if $name eq 'request_uri';
	return document_root($env) if $name =~ /^(?:document|realpath)_root\z/;
	return opened($env) if $name eq 'request_filename';
	return '' if $env->{assigned}{$name};    # by a "set" that was not run
	return unknown($name);
}

sub expand ($env, $text) {
	return unknown('deep') if ($env->{deep} // 0) > 20;
	local $env->{deep} = ($env->{deep} // 0) + 1;
	return $text =~ s/\$(?:\{(\w+)\}|(\w+))/variable($env, $1 \/\/ $2)/ger;
}

# Variables that some "set" of this server makes.
sub assigned ($node) {
	return map { $_->{name} eq 'set' && ($_->{args}[0] // '') =~ /^\$(\w+)/ ? $1 : $_->{kids} ? assigned($_) : () } @{ $node->{kids} };
}

# ---------------------------------------------------------------- set and rewrite

# Plays the directives of this block, in order.  True: a new location has to be found for the new URI.
sub play ($env, $block) {
	my $again = 0;
	for my $d (@{ $block->{kids} }) {
		my ($name, @args) = ($d->{name}, @{ $d->{args} });
		if ($name eq 'set' && @args == 2) {
			$env->{set}{ $args[0] =~ s/^\$//r } = expand($env, $args[1]);
		} elsif ($name eq 'if' && $d->{kids}) {
			$env->{set}{$_} = unknown($_) for assigned($d);
		} elsif ($name eq 'rewrite' && @args >= 2) {
			next if $env->{begun} && $block->{name} eq 'server';
			my $re = eval { no warnings; qr/$args[0]/ } or next;
			next unless $env->{uri} =~ $re;
			my @part = map { defined $-[$_] ? substr $env->{uri}, $-[$_], $+[$_] - $-[$_] : '' } 0 .. 9;
			return $env->{away} = 1 if $args[1] =~ m{^(?:https?://|\$scheme)} || ($args[2] // '') =~ /^(?:redirect|permanent)\z/;
			$env->{uri} = expand($env, $args[1] =~ s/\$(\d)/$part[$1]/gr =~ s/\?.*//sr);
			return 0 if ($args[2] // '') eq 'break';
			$again = 1;
			return 1 if ($args[2] // '') eq 'last';
		} elsif ($name eq 'break') {
			last;
		}
	}
	return $again;
}

# From a URI to the block that answers it.
sub route ($env, $server, $block = undef) {
	my $before = $env->{uri};
	$env->{block} = $server;
	play($env, $server);
	$block = undef if $env->{uri} ne $before;
	for (1 .. ROUNDS) {
		$block //= find_location($server, $env->{uri}) // $server;
		$env->{block} = $block;
		last if $block == $server || !play($env, $block) || $env->{away};
		$block = undef;
	}
	return $env->{block};
}

# True if a rewrite of this location leads every request to another one.
sub moves_on ($server, $block) {
	return 0 if $block->{name} ne 'location' || is_regex($block);
	my $env = { uri => sample($block), asked => sample($block), assigned => {}, set => {}, block => $block };
	return 0 unless play($env, $block);
	return $env->{away} || (find_location($server, $env->{uri}) // $server) != $block;
}

# ---------------------------------------------------------------- the question

# The name that fcgi-stat-accel takes from these variables, as accel_path.c does; '' when none names a file.
sub told ($env, $params) {
	my %is = map { $_ => expand($env, $params->{$_}[0]) } keys %$params;
	my $uri = $is{REQUEST_URI} // '';
	delete @is{ grep { $is{$_} eq '' || /^(?:WARM_PATH|SCRIPT_\w+)\z/ && $is{$_} =~ $QUESTION } keys %is };
	return $is{WARM_PATH} if exists $is{WARM_PATH};
	my $root = ($is{DOCUMENT_ROOT} // '') =~ s{/+\z}{}r;
	if (grep { exists $is{$_} } qw(SCRIPT_FILENAME SCRIPT_NAME PATH_INFO)) {
		my $path = $root eq '' ? '' : $root . ($is{SCRIPT_NAME} // '');
		return $is{SCRIPT_FILENAME} if exists $is{SCRIPT_FILENAME} && $is{SCRIPT_FILENAME} ne $path;
		return $path eq '' ? '' : $path . ($is{PATH_INFO} // '');
	}
	return $root eq '' || $uri eq '' ? '' : $root . $uri =~ s/[?#].*//sr;
}

# What happens to a request for $block: { uri, opened, told, target, block }, with told undefined when it is not asked. On a
# way (Accel/Check/NginxWays.pm) the client asked for $way{asked}, the name is $way{uri} now, and with $way{begun} the rewrites of the server are done.
sub request ($server, $block, $auth_uri, %way) {
	my $env = { uri => $way{uri} // sample($block), begun => $way{begun}, assigned => { map { $_ => 1 } assigned($server) }, set => {} };
	$env->{asked} = $way{asked} // $env->{uri};
	my $answers = route($env, $server, $block);
	my %found = (uri => $way{uri} // $env->{asked}, opened => opened($env), block => $answers);
	$env->{uri} = $auth_uri =~ s/\?.*//sr;
	$env->{begun} = 0;
	my $target = route($env, $server);
	return { %found, target => $target, told => told($env, params($target)) };
}

# For people.
sub shown ($name) { return $name =~ s/\x01(\w+)\x01/\$$1/gr }
sub is_sure ($name) { return $name !~ /\x01/ }

1;
