package Accel::Check::NginxCache;
# Files of proxy_cache and its relatives: which --nginx-cache they need, and whether the accelerator gets the key that nginx uses.
#
# nginx evaluates the key after auth_request, in the main request. "set" evaluates it earlier, in the same request.  In the asked location
# $uri and $args are those of the subrequest; $proxy_host is empty in "set" and there.
use v5.36;

use Accel::Check qw(mounted_on slow_kind);
use Accel::Check::NginxTree qw(kids effective value servers locations where find_location params has_module);
use Accel::Lines ();

my $KIND = qr/^(proxy|fastcgi|uwsgi|scgi)_/;
my $URI = '/stat-accel-cache';
my $OF_SUBREQUEST = qr/\$(?:uri|document_uri|args|query_string|is_args|request_filename|fastcgi_script_name|arg_\w+|slice_range|proxy_host|proxy_port|\d)(?!\w)/;

sub check ($opt, $tree) {
	my @caches = caches($opt, $tree) or return;
	my %users;
	for my $server (servers($tree)) {
		push @{ $users{ $_->{zone} } }, $_ for users($server);
	}
	my @disks = grep { $_->{kind} ne 'memory' } @caches;
	for my $cache (@disks) {
		my @all = @{ $users{ $cache->{zone} } // [] };
		my @clients = grep { !$_->{asked} && !has_module($_->{loc}) } @all;
		check_cache($opt, $cache, \@disks, @clients) if @clients || !@all;
	}
}

# Each *_cache_path: { zone, option, kind, type, node }.
sub caches ($opt, $tree) {
	my @found;
	for my $http ($tree, kids($tree, 'http')) {
		for my $d (grep { $_->{name} =~ /$KIND.*cache_path\z/ } @{ $http->{kids} }) {
			my ($path, @words) = @{ $d->{args} };
			my %is = map { /^(levels|keys_zone)=([^:]+.*)/s ? ($1 => $2) : () } @words;
			next unless defined $path && ($is{keys_zone} // '') =~ /^([^:]+)/;
			my $zone = $1;
			$path = "$opt->{state}{prefix}/$path" unless $path =~ m{^/};
			my $mount = mounted_on($opt, $path) // { kind => 'local', type => 'an unknown file system' };
			push @found, { zone => $zone, option => "--nginx-cache=$zone=" . $path =~ s{(?<=.)/+\z}{}r . ($is{levels} ? ":$is{levels}" : ''),
				kind => $mount->{kind}, type => $mount->{type}, node => $d };
		}
	}
	return @found;
}

# Locations whose answers are kept: { zone, loc, server, kind, key, asked }; key undef: not known from here; asked: auth_request
# asks this location, so the answers are those of the accelerator.
sub users ($server) {
	my %asked = map { $_ => 1 } grep { defined } map { find_location($server, $_->{args}[0] // 'off') } map { kids($_, 'auth_request') }
		grep { defined } $server, $server->{parent}, locations($server);
	my @found;
	for my $loc ($server, locations($server)) {
		my ($pass) = grep { !$_->{kids} && $_->{name} =~ /$KIND.*pass\z/ } @{ $loc->{kids} } or next;
		my ($kind) = $pass->{name} =~ $KIND;
		my $zone = value($loc, "${kind}_cache", 'off');
		push @found, { zone => $zone, loc => $loc, server => $server, kind => $kind, key => key_of($loc, $kind, $pass), asked => $asked{$loc} } unless $zone eq 'off';
	}
	return @found;
}

# Without proxy_cache_key it is the URL of proxy_pass and the URI that is passed on.
sub key_of ($loc, $kind, $pass) {
	my ($scheme, $host) = ($pass->{args}[0] // '') =~ m{^(https?)://([^/\$]+)\z};
	my $set = effective($loc, "${kind}_cache_key");
	return $kind eq 'proxy' && $host ? "$scheme://$host\$request_uri" : undef unless $set;
	my $key = plain($set->{args}[0] // '');
	$key =~ s/\$proxy_host(?!\w)/$host/g if $host;
	return $key =~ /\$proxy_(?:host|port)(?!\w)/ ? undef : $key;
}

sub plain ($text) { return $text =~ s/\$\{(\w+)\}(?!\w)/\$$1/gr }

sub check_cache ($opt, $cache, $all, @users) {
	my $report = $opt->{report};
	my $as = value($cache->{node}{parent}{parent} // {}, 'user', 'nobody');
	$report->note('nginx-cache', $cache->{node}, $cache->{node}{name}, "fcgi-stat-accel $cache->{option} knows its files; only nginx's user ($as) can read them");
	my @cold = grep { !asks($_) } @users;
	check_key($opt, $cache, $all, $_) for grep { asks($_) } @users;
	return if !slow_kind($cache->{kind}) || @users && !@cold;
	$report->finding('cache-path', 'blocks', $cache->{node}, $cache->{node}{name},
		"files of this cache lie on $cache->{type} and are opened in the event loop, with aio threads too; start fcgi-stat-accel with $cache->{option}",
		@cold ? map { add_auth($opt, $cache, $_) } @cold : { advice => 'Move the cache to a local disk or to memory, or let auth_request ask with WARM_CACHE_KEY.' });
}

sub asks ($user) { return value($user->{loc}, 'auth_request', 'off') ne 'off' }

# Checks whether the accelerator gets this key, and the name of this cache.
sub check_key ($opt, $cache, $all, $user) {
	my ($report, $loc) = ($opt->{report}, $user->{loc});
	my $target = find_location($user->{server}, value($loc, 'auth_request')) or return;
	my $params = params($target);
	my ($value, $param) = @{ $params->{WARM_CACHE_KEY} // [] };
	my $wrong = sub ($why, @snippets) { $report->finding('cache-key', 'blocks', $param // $target, where($loc), "$why: the cached file is opened cold", @snippets) };
	if (!defined $value) {
		my $elsewhere = grep { $params->{$_} } qw(WARM_PATH DOCUMENT_ROOT);
		return $wrong->('the location that auth_request asks passes no WARM_CACHE_KEY', $elsewhere || !defined $user->{key}
			? { advice => "Let auth_request of this location ask $URI, with fastcgi_param WARM_CACHE_KEY and the value of the key." }
			: ({ after => $loc, in => 'in this location', text => set_key($cache, $user->{key}) },
			{ after => $target, in => 'in the location that is asked', text => key_params() }));
	}
	$report->finding('cache-name', 'blocks', $target, where($loc),
		'without fastcgi_param WARM_CACHE the accelerator looks in the first --nginx-cache only',
		{ advice => 'Write "set $warm_cache NAME;" where proxy_cache is, and "fastcgi_param WARM_CACHE $warm_cache;" here.' }) if @$all > 1 && !$params->{WARM_CACHE};
	$value = plain($value);
	my ($set) = $value =~ /^(\$\w+)\z/ ? grep { ($_->{args}[0] // '') eq $1 } map { kids($_, 'set') } $loc, $user->{server} : ();
	$value = plain($set->{args}[1] // '') if $set;
	return $wrong->("\"$1\" has another value in the subrequest; \"set\" in the location has the right one",
		{ advice => 'Write "set $warm_key KEY;" in the location of the cache, and pass $warm_key.' }) if !$set && $value =~ /($OF_SUBREQUEST)/;
	return if !defined $user->{key} || $value eq $user->{key} || $value =~ /^\$\w+\z/ && !$set;
	$wrong->("WARM_CACHE_KEY is \"$value\", but nginx's key is \"$user->{key}\"", { advice => 'Write the same text in both.' });
	return;
}

# ---------------------------------------------------------------- what to add

sub set_key ($cache, $key) { return "set \$warm_key \"$key\";\nset \$warm_cache $cache->{zone};\n" }

sub key_params () { return "fastcgi_param WARM_CACHE_KEY \$warm_key;\nfastcgi_param WARM_CACHE \$warm_cache;\n" }

sub add_auth ($opt, $cache, $user) {
	return { advice => "Set $user->{kind}_cache_key to variables that \"set\" knows, and pass the same text in WARM_CACHE_KEY." } unless defined $user->{key};
	my $address = $opt->{socket} =~ m{^/} ? "unix:$opt->{socket}" : $opt->{socket};
	my @parts = { after => $user->{loc}, in => 'in this location', text => set_key($cache, $user->{key}) . "auth_request $URI;\n" };
	push @parts, { after => $user->{server}, in => 'in the server block', text => Accel::Lines::nginx_location($URI, $address, key_params() . "fastcgi_cache off;\n") }
		unless exact($user->{server});
	return @parts;
}

sub exact ($server) { return grep { "@{ $_->{args} }" eq "= $URI" } locations($server) }

1;
