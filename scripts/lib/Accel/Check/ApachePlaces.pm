package Accel::Check::ApachePlaces;
# Which directories of an Apache configuration are accelerated; see Accel/Check/Reached.pm for the states.
use v5.36;

use Accel::Check qw(is_page page_not_asked);

*kids = \&Accel::Check::Apache::kids;
*arg = \&Accel::Check::Apache::arg;
*where = \&Accel::Check::Apache::where;

my $ASKS = qr/^(?:authnzfcgicheckauthnprovider|require|requireall|requireany|authbasicprovider)\z/;

sub note ($opt, $tree, $server, @dirs) {
	my @passes = Accel::Check::Apache::proxy_passes($opt, $tree, $server);
	return proxied($opt, $tree, $server, $dirs[0], @passes) if @passes;
	my %seen;
	for my $dir (grep { !$seen{$_}++ } @dirs, Accel::Check::Apache::sections_in($tree, $server, @dirs)) {
		my @sections = Accel::Check::Apache::sections_for($tree, $server, $dir);
		place($opt, $tree, $server, where($server) . ", $dir", $dir, @sections);
	}
	for my $part (grep { arg($_) ne '/' && serves($_) && grep { $_->{name} =~ $ASKS } @{ $_->{kids} } } map { kids($_, 'location', 'locationmatch') } levels($tree, $server)) {
		place($opt, $tree, $server, where($server) . ", Location @{ $part->{args} }", $dirs[0], Accel::Check::Apache::sections_for($tree, $server, $dirs[0]), $part);
	}
	pages($opt, $tree, $server, $dirs[0], \@dirs);
	return;
}

# Apache asks no authorizer for the page that it sends instead of the requested file.
sub pages ($opt, $tree, $server, $root, $dirs) {
	my @sections = map { Accel::Check::Apache::sections_for($tree, $server, $_) } @$dirs;
	my %seen;
	for my $d (grep { !$seen{$_}++ } map { kids($_, 'errordocument', 'fallbackresource') } levels($tree, $server), @sections) {
		my $page = $d->{args}[-1] // '';
		page_not_asked($opt, $d, where($server), $page, $root) if is_page($page);
	}
}

# True unless a handler of its own answers without files.
sub serves ($part) { return !grep { lc arg($_) ne 'none' && arg($_) !~ /^proxy:/ } kids($part, 'sethandler') }

sub levels ($tree, $server) { return $server == $tree ? $tree : ($tree, $server) }

# fcgi://HOST:PORT/ or unix:PATH|fcgi://...
sub address_of ($url) {
	return $1 if $url =~ m{^"?(?:proxy:)?unix:([^|]+)\|};
	return $url =~ m{fcgi://(\[[^\]]+\]|[^/:]+)(?::(\d+))?} ? ($1 eq 'localhost' ? '127.0.0.1' : $1) . ':' . ($2 // 8000) : ();
}

# ---------------------------------------------------------------- ProxyPass

# The path of a directive inside <Location> is that of the section.
sub path_of ($pass) { return $pass->{parent}{name} =~ /^location/ ? arg($pass->{parent}) : arg($pass) }

sub proxied ($opt, $tree, $server, $dir, @passes) {
	my $report = $opt->{report};
	my @all = map { $_, $_->{kids} ? @{ $_->{kids} } : () } map { @{ $_->{kids} } } levels($tree, $server);
	my $sends = 2 == grep { my $name = $_; grep { $_->{name} eq $name && lc arg($_) ne 'off' } @all } qw(xsendfile xsendfilepath);
	my $whole = 0;
	for my $pass (@passes) {
		my $path = path_of($pass);
		$whole ||= $path eq '/' || $path =~ m{^\^?/?(?:\(?\.\*\)?\$?)?\z};
		my ($url) = grep { /fcgi:/ } @{ $pass->{args} };
		$report->place(where($server) . ", ProxyPass $path", $sends ? 'asked' : 'cold', $pass, as => 'X-Sendfile', root => $dir, pass => $pass, address => [address_of($url // '')]);
	}
	for my $not (grep { arg($_, 1) eq '!' } map { kids($_, 'proxypass', 'proxypassmatch') } levels($tree, $server)) {
		$report->place(where($server) . ', ProxyPass ' . arg($not) . ' !', 'exempt', $not);
	}
	return if $whole;
	$report->place(where($server) . ', what is not passed on', 'cold', $passes[0]);
	$report->finding('proxy-part', 'blocks', $passes[0], where($server), 'ProxyPass sends only ' . path_of($passes[0]) . ' to the accelerator: all other files are opened cold',
		{ advice => 'Pass on "/", and write "ProxyPass /app/ !" before it for each part that is not made of files.' });
}

# ---------------------------------------------------------------- authorizers

sub place ($opt, $tree, $server, $where, $dir, @sections) {
	my ($report, @all) = ($opt->{report}, map { @{ $_->{kids} } } @sections);
	my ($handler) = grep { $_->{name} eq 'sethandler' && arg($_) =~ /^proxy:/ && Accel::Check::Apache::is_ours($opt, arg($_)) } @all;
	return $report->place($where, 'asked', $handler, as => 'X-Sendfile', root => $dir, address => [address_of(arg($handler))]) if $handler;
	my %provider = map { arg($_, 1) => $_ } map { kids($_, 'authnzfcgidefineprovider') } levels($tree, $server);
	my ($check) = reverse grep { $_->{name} eq 'authnzfcgicheckauthnprovider' } @all;
	my $at = $check // $sections[-1];
	return $report->place($where, 'exempt', $check) if $check && lc arg($check) eq 'none';
	my $define = $check ? $provider{ arg($check) } : undef;
	return $report->place($where, 'cold', $at, root => $dir) if !$check && $dir =~ m{^/usr/share/} && !%provider;
	if (!$check && $dir =~ m{^/usr/share/}) {
		my $place = { where => $where, root => $dir };
		Accel::Check::Reached::of_distribution($report, $place, $at);
		return $report->place($where, 'exempt', $at);
	}
	elsewhere($report, $tree, $server, $where, $at) if !$check && %provider;
	return $report->place($where, 'cold', $at) unless $define && $opt->{state}{modules}{authnz_fcgi_module};
	return unless needs_user($report, $where, $check, @sections);
	if (htaccess($opt, $dir, @all)) {
		$report->note('htaccess', $check, $where, "$dir/.htaccess may change which provider is asked");
		return $report->place($where, 'unknown', $check);
	}
	return $report->place($where, 'asked', $check, as => 'authorizer', root => $dir, pass => $define, address => [address_of(arg($define, 2))]);
}

# The accelerator is asked, but not for this place.
sub elsewhere ($report, $tree, $server, $where, $at) {
	my ($asked) = grep { $_->{name} eq 'authnzfcgicheckauthnprovider' && lc arg($_) ne 'none' } map { Accel::Check::Apache::below($_) } levels($tree, $server);
	return unless $asked;
	$report->finding('authnz-elsewhere', 'blocks', $asked, $where, 'AuthnzFcgiCheckAuthnProvider stands in a section that these files do not lie in: they are opened cold',
		{ advice => 'Write it, and its Require, into the <Directory> of these files.' });
}

# Apache asks for a user only if the last section with "Require" wants one; "all granted" and addresses do not.
sub needs_user ($report, $where, $check, @sections) {
	my ($last) = grep { grep { $_->{name} =~ /^require/ } @{ $_->{kids} } } reverse @sections;
	my @lines = $last ? requires($last) : ();
	my @free = grep { my $what = lc arg($_); $what !~ /^(?:valid-user|user|group|file-owner|file-group)\z/ } @lines;
	return 1 if @lines && !@free;
	my $why = !@lines ? 'no Require line wants a user: Apache never asks the provider' : "\"Require @{ $free[0]{args} }\" wants no user: Apache never asks the provider";
	$report->finding('authnz-require', 'blocks', $free[0] // $check, $where, $why, @free
		? { replace => $free[0], in => 'instead of this line', text => "Require valid-user\n" }
		: { after => { %$check, line => $check->{to} }, in => 'below this line', text => "Require valid-user\n" });
	$report->place($where, 'cold', $check);
	return 0;
}

sub requires ($node) {
	return map { $_->{name} eq 'require' ? $_ : $_->{name} =~ /^require(?:all|any)\z/ && $_->{kids} ? requires($_) : () } @{ $node->{kids} };
}

sub htaccess ($opt, $dir, @all) {
	my ($override) = reverse grep { $_->{name} eq 'allowoverride' } @all;
	return $override && lc arg($override) ne 'none' && -e "$dir/.htaccess";
}

1;
