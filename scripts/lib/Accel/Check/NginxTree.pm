package Accel::Check::NginxTree;
# Questions to the tree of an nginx configuration: what stands in a block, what holds there, which location answers.
use v5.36;

use Accel::Check qw(by_name);
use Exporter     qw(import);

our @EXPORT_OK = qw(kids own effective value around servers locations where root_of is_internal serves find_location pass_of params is_ours has_module);

my $HANDLER = qr/^(?:
	(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached|redis2?|postgres|drizzle|upload|srcache|passenger)_pass
	| perl | stub_status | stat_accel_status | empty_gif | js_content | content_by_lua(?:_block|_file)? | echo\w* | api | status
	| nchan_\w+ | push_stream_\w+ | vhost_traffic_status_display | passenger_enabled | unit_pass | zip
)\z/x;

my $PASS = qr/^(?:proxy|fastcgi|uwsgi|scgi|grpc)_pass\z/;

sub kids ($node, $name) { return @{ by_name($node)->{$name} // [] } }
sub own  ($node, $name) { my $all = by_name($node)->{$name}; return $all ? $all->[-1] : undef }

# A directive in this block or the nearest one around it.
sub effective ($node, @names) {
	for (; $node; $node = $node->{parent}) {
		for my $name (@names) {
			my $found = own($node, $name);
			return $found if $found;
		}
	}
	return;
}

sub value ($node, $name, $default = '') {
	my $found = effective($node, $name);
	return $found ? $found->{args}[0] // '' : $default;
}

sub around ($node, $name) {
	for ($node = $node->{parent}; $node; $node = $node->{parent}) { return $node if $node->{name} eq $name }
	return;
}

sub servers ($node) {
	return (grep { $_->{kids} } kids($node, 'server')), map { servers($_) } kids($node, 'http');
}

sub locations ($node) {
	return map { ($_, locations($_)) } grep { $_->{kids} } kids($node, 'location');
}

sub server_name ($server) {
	my ($name) = map { @{ $_->{args} } } kids($server, 'server_name');
	my ($port) = map { $_->{args}[0] } kids($server, 'listen');
	return 'server ' . ($name // $port // '(no name)');
}

sub where ($node) {
	return server_name($node) if $node->{name} eq 'server';
	my $server = around($node, 'server') or return $node->{name};
	return server_name($server) . ", location @{ $node->{args} }";
}

# The directory below which a location finds its files, without variables at its end; undef when none is named.
sub root_of ($node) {
	my $d = effective($node, 'root', 'alias') or return;
	my $dir = $d->{args}[0] // return;
	$dir =~ s/\$.*//s;
	return $dir =~ m{^/} ? $dir : undef;
}

sub is_internal ($loc) { return !!own($loc, 'internal') || ($loc->{args}[0] // '') =~ /^@/ }

# Does this block answer with files?  Handlers, return and rewrite are not inherited from the blocks around.
sub serves ($node) {
	return 0 if grep { $_->{name} =~ $HANDLER && (!$_->{kids} || $_->{name} =~ /_block\z/) } @{ $node->{kids} };
	return 0 if own($node, 'return');
	return 0 if grep { ($_->{args}[0] // '') =~ /^(?:\^|\.\*|\^?\/?\(?\.\*\)?\$?)\z/ && ($_->{args}[2] // '') ne 'break' } kids($node, 'rewrite');
	return 0 if !kids($node, 'allow') && grep { ($_->{args}[0] // '') eq 'all' } kids($node, 'deny');
	return 1;
}

# The location that answers an URI: "=" first, then the longest prefix unless a regular expression matches.
sub find_location ($server, $uri) {
	$uri =~ s/\?.*//s;
	return if $uri =~ /\$/;
	my ($best, $regex);
	for my $loc (locations($server)) {
		my ($op, $name) = @{ $loc->{args} } == 2 ? @{ $loc->{args} } : ('', $loc->{args}[0] // next);
		($op, $name) = ($1, $2) if $op eq '' && $name =~ /^(=|~\*?|\^~)(.+)\z/s;
		if ($op eq '=') {
			return $loc if $name eq $uri;
		} elsif ($op =~ /^~/) {
			my $re = eval { no warnings; $op eq '~*' ? qr/$name/i : qr/$name/ } or next;
			$regex //= $loc if $uri =~ $re;
		} elsif ($name !~ /^@/ && index($uri, $name) == 0) {
			$best = [$loc, $name, $op] if !$best || length $name > length $best->[1];
		}
	}
	return $best->[0] if $best && ($best->[2] eq '^~' || !$regex);
	return $regex // ($best ? $best->[0] : undef);
}

sub pass_of ($loc) { return (grep { $_->{name} =~ $PASS } @{ $loc->{kids} })[0] }

# Variables of a fastcgi location; a block with one of its own inherits none.
sub params ($loc) {
	for (my $node = $loc; $node; $node = $node->{parent}) {
		my @own = kids($node, 'fastcgi_param') or next;
		return { map { ($_->{args}[0] // '') => [$_->{args}[1] // '', $_] } @own };
	}
	return {};
}

# nginx/ makes each file warm that nginx opens in this block, with its names and its subrequests.
sub has_module ($node) { return value($node, 'stat_accel', 'off') ne 'off' }

# Does this location speak to an application that gets the name of a file?
sub is_ours ($loc) {
	my $pass = pass_of($loc) or return 0;
	return 0 if $pass->{name} ne 'fastcgi_pass';
	my $params = params($loc);
	my ($script) = @{ $params->{SCRIPT_FILENAME} // [''] };
	return !!$params->{WARM_PATH} || $script eq '' || $script =~ /\$/;
}

1;
