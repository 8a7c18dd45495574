package Accel::Check::Apache;
# What in an Apache configuration makes threads wait for a disk, or keeps the accelerator from helping.
#
# The order of a request, as strace shows it for 2.4: ProxyPass (such a request touches no file here) | stat() of the name,
# .htaccess and links along the path | mod_authnz_fcgi | the file itself.  So an authorizer warms what open() and read() need,
# ProxyPass with mod_xsendfile all of it, and SetHandler "proxy:..." comes after stat().
use v5.36;

use Accel::Check             qw(by_name mounted_on within);
use Accel::Check::ApacheFile qw();
use Accel::Check::ApachePlaces ();
use Accel::Lines ();

my %MODULES = (proxy => [qw(proxy proxy_fcgi xsendfile)], authnz => [qw(authn_core authz_core authz_user authnz_fcgi)]);

sub kids ($node, @names) { my $by = by_name($node); return map { @{ $by->{$_} // [] } } @names }
sub last_of ($node, @names) { my @all = kids($node, @names); return $all[-1] }
sub arg ($node, $nr = 0) { return $node ? $node->{args}[$nr] // '' : '' }
sub is_off ($node) { return lc arg($node) eq 'off' }
sub is_on ($node) { return lc arg($node) eq 'on' }

# All nodes below, sections and what is in them.
sub below ($node) { return map { ($_, $_->{kids} ? below($_) : ()) } @{ $node->{kids} // [] } }

# The directives of the main server, which every virtual host inherits.
sub main_nodes ($tree) {
	return @{ $tree->{main} //= [map { $_->{name} eq 'virtualhost' ? () : ($_, $_->{kids} ? below($_) : ()) } @{ $tree->{kids} }] };
}

sub where ($server) {
	my ($name) = map { arg($_) } kids($server, 'servername');
	return $server->{name} eq 'virtualhost' ? 'VirtualHost ' . ($name // arg($server)) : 'the main server';
}

# A directive of the server: that of the virtual host, else that of the main server.
sub setting ($tree, $server, $name) { return last_of($server, $name) // last_of($tree, $name) }

sub check ($opt, $file) {
	my $tree = Accel::Check::ApacheFile::read_tree($opt, $file);
	my @hosts = kids($tree, 'virtualhost');
	$opt->{server_user} = arg(last_of($tree, 'user')) || '#-1';
	$opt->{server_user} = undef if $opt->{server_user} =~ /^#-1\z|\$/;    # as it was built: not known
	check_process($opt, $tree);
	for my $server (@hosts ? @hosts : $tree) {
		my $root = setting($tree, $server, 'documentroot');
		my $dir = arg($root) || $opt->{root};
		next unless defined $dir && $dir =~ m{^/};
		$dir =~ s{(?<=.)/+\z}{};
		my @dirs = directories($tree, $server, $dir);
		$opt->{report}->root($_, where($server)) for @dirs;
		check_accel($opt, $tree, $server, $dir, $root // $server);
		Accel::Check::ApachePlaces::note($opt, $tree, $server, @dirs);
		# A path that "ProxyPass /hot/ !" exempts is in memory, or is not a file.
		my $proxied = grep { arg($_) eq '/' } proxy_passes($opt, $tree, $server);
		check_directory($opt, $tree, $server, $_, $proxied) for @dirs, sections_in($tree, $server, @dirs);
	}
}

# The directories that are served: the root and the targets of Alias.
sub directories ($tree, $server, $root) {
	my %seen;
	return grep { m{^/} && !$seen{$_}++ } $root, map { arg($_, 1) =~ s{(?<=.)/+\z}{}r } kids($tree, 'alias'), $server == $tree ? () : kids($server, 'alias');
}

# Directories below these that have a section of their own.
sub sections_in ($tree, $server, @dirs) {
	my %seen = map { $_ => 1 } @dirs;
	return grep { my $d = $_; !$seen{$d}++ && grep { within($d, $_) } @dirs } map { arg($_) =~ s{(?<=.)/+\z}{}r }
		grep { arg($_) =~ m{^/[^*?\[]*\z} } kids($tree, 'directory'), $server == $tree ? () : kids($server, 'directory');
}

# ---------------------------------------------------------------- the processes

my %MPM_DEFAULT = (prefork => [256, 1], worker => [16, 25], event => [16, 25]);    # ServerLimit, ThreadsPerChild

sub mpm ($opt) { return (grep { $opt->{state}{modules}{"mpm_${_}_module"} } qw(event worker prefork))[0] // 'event' }

sub workers ($opt, $tree) {
	my $mpm = mpm($opt);
	my ($limit, $threads) = @{ $MPM_DEFAULT{$mpm} };
	$limit   = arg(last_of($tree, 'serverlimit')) || $limit;
	$threads = arg(last_of($tree, 'threadsperchild')) || $threads if $mpm ne 'prefork';
	my $max = arg(last_of($tree, 'maxrequestworkers', 'maxclients'));
	my $most = $limit =~ /^\d+\z/ && $threads =~ /^\d+\z/ ? $limit * $threads : 0;
	return $max =~ /^\d+\z/ && (!$most || $max < $most) ? $max : $most;
}

sub check_process ($opt, $tree) {
	my $report = $opt->{report};
	my ($mpm, $n) = (mpm($opt), workers($opt, $tree));
	my ($load) = grep { arg($_) eq "mpm_${mpm}_module" } kids($tree, 'loadmodule');
	my $at = $load // { file => $tree->{file}, line => 1 };
	if ($mpm eq 'prefork') {
		my $php = grep { /^(?:mod_)?php/ } keys %{ $opt->{state}{modules} };
		my $why = "prefork has a process for each of its $n clients, the idle and the slow ones too; event uses a thread only during a request";
		if ($php) { $report->note('mpm', $at, 'the whole server', "$why (mod_php needs prefork, php-fpm does not)") }
		else {
			$report->finding('mpm', 'wastes', $at, 'the whole server', $why, { replace => $at, in => 'instead of this line',
				text => 'LoadModule mpm_event_module ' . arg($at, 1) =~ s/prefork/event/r . "\n" });
		}
	} else {
		$report->note('mpm', $at, 'the whole server', "$mpm has threads: a cold file blocks one of $n (MaxRequestWorkers, ThreadsPerChild) and no other request, "
			. "so Apache needs the accelerator least; it helps when cold requests in a second, times the seconds each takes, come near $n");
	}
	my $keep = last_of($tree, 'keepalive');
	$report->finding('keepalive', 'wastes', $keep, 'the whole server', 'a connection for each file'
		. ($mpm eq 'event' ? ', though an idle one holds no thread in event' : ''),
		{ replace => $keep, in => 'instead of this line', text => "KeepAlive On\n" }) if $keep && is_off($keep);
	my ($lookup) = grep { $_->{name} eq 'hostnamelookups' && !is_off($_) } below($tree);
	$report->finding('hostname-lookups', 'blocks', $lookup, 'the whole server', 'each new client waits for DNS before it is answered, and holds a thread',
		{ replace => $lookup, in => 'instead of this line', text => "HostnameLookups Off\n" }) if $lookup;
}

# ---------------------------------------------------------------- the accelerator

sub is_ours ($opt, $url) { return $url =~ /fcgi:/ && ($url =~ /accel|warm/i || index($url, $opt->{socket}) >= 0) }

# ProxyPass to the accelerator, for the whole server or a part of it; with mod_xsendfile on, any FastCGI application may be it.
sub proxy_passes ($opt, $tree, $server) {
	my $sends = grep { is_on($_) } kids($tree, 'xsendfile'), grep { $_->{name} eq 'xsendfile' } below($server);
	return grep { my $url = join ' ', @{ $_->{args} }; is_ours($opt, $url) || $sends && $url =~ /fcgi:/ }
		map { kids($_, 'proxypass', 'proxypassmatch'), map { kids($_, 'proxypass', 'proxypassmatch') } kids($_, 'location', 'locationmatch') }
		$server == $tree ? $tree : ($tree, $server);
}

sub check_accel ($opt, $tree, $server, $dir, $at) {
	my $report = $opt->{report};
	my @nodes = $server == $tree ? below($tree) : (below($server), main_nodes($tree));
	my %provider = map { arg($_, 1) => $_ } grep { $_->{name} eq 'authnzfcgidefineprovider' } @nodes;
	my @asked = grep { $_->{name} eq 'authnzfcgicheckauthnprovider' && $provider{ arg($_) } } @nodes;
	my @required = grep { $_->{name} eq 'require' && $provider{ arg($_) } } @nodes;
	my ($handler) = grep { $_->{name} eq 'sethandler' && arg($_) =~ /^proxy:/ && is_ours($opt, arg($_)) } @nodes;
	my @passes = proxy_passes($opt, $tree, $server);

	if (@passes) {
		check_sendfile($opt, $tree, $server, $dir, $passes[0]);
	} elsif ($handler) {
		$report->finding('set-handler', 'blocks', $handler, where($server),
			'with SetHandler Apache calls stat() for the file first, so the thread waits for the disk; ProxyPass comes before stat()',
			{ replace => $handler, in => 'instead of this line', text => "# ProxyPass instead, below\n" }, add_proxy($opt, $tree, $server, $dir));
	} elsif (@asked) {
		check_asked($report, $server, $_) for @asked;
		$report->note('authnz', $asked[0], where($server), 'Apache calls stat() before any authorizer, so the stat() still waits for the disk; '
			. 'open() and reading then find the file warm. ProxyPass with mod_xsendfile avoids the stat()');
	} elsif (@required) {
		my ($name, $define) = (arg($required[0]), $provider{ arg($required[0]) });
		$report->finding('authnz-user', 'breaks', $required[0], where($server), "\"Require $name\" needs a user first, and none is set: every request gets 500",
			{ replace => $required[0], in => 'instead of this line', text => Accel::Lines::apache_ask($name) },
			{ replace => $define, in => 'instead of this line', text => "AuthnzFcgiDefineProvider authn $name " . arg($define, 2) . "\n" });
	} elsif (my ($name) = sort keys %provider) {
		$report->finding('authnz-unused', 'blocks', $provider{$name}, where($server), "\"$name\" is defined and never used",
			at_end($opt, $tree, $server, "<Directory \"$dir\">\n" . Accel::Lines::apache_ask($name) =~ s/^/\t/gmr . "</Directory>\n"));
	} else {
		my $n = workers($opt, $tree);
		my @add = $opt->{socket} =~ m{^/} ? add_proxy($opt, $tree, $server, $dir) : add_authnz($opt, $tree, $server, $dir);
		$report->finding('no-accel', 'blocks', $at, where($server), 'a file that is not in memory holds a '
			. (mpm($opt) eq 'prefork' ? 'process' : 'thread') . " until the disk answers, and the server stands still when all $n are held", @add);
	}
}

sub check_asked ($report, $server, $node) {
	my %word = map { lc() => 1 } @{ $node->{args} };
	my $args = lc join ' ', @{ $node->{args} };
	return if $args =~ /requirebasicauth off/ && ($word{userexpr} || $word{defaultuser});
	$report->finding('authnz-password', 'breaks', $node, where($server), 'RequireBasicAuth is on by default and requires a user: clients are asked for a password',
		{ replace => $node, in => 'instead of this line', text => (split /^/, Accel::Lines::apache_ask(arg($node)))[0] });
}

sub check_sendfile ($opt, $tree, $server, $dir, $pass) {
	my $report = $opt->{report};
	my @nodes = (below($server), main_nodes($tree));
	my @add = missing($opt, $tree, $server, 'xsendfile');
	$report->finding('xsendfile', 'breaks', $pass, where($server), 'the accelerator answers with X-Sendfile, and XSendFile is not on: clients get an empty answer',
		@add, { after => { %$pass, line => $pass->{to} }, in => 'below this line', text => "XSendFile On\n" }) unless grep { $_->{name} eq 'xsendfile' && is_on($_) } @nodes;
	$report->finding('xsendfile-path', 'breaks', $pass, where($server), 'no XSendFilePath: a proxied request has no directory of its own, so every file is refused with 404',
		@add, { after => { %$pass, line => $pass->{to} }, in => 'below this line', text => "XSendFilePath \"$dir\"\n" }) unless grep { $_->{name} eq 'xsendfilepath' } @nodes;
	$report->note('enablereuse', $pass, where($server), 'each request makes a connection; enablereuse=on at the end of this line keeps it')
		unless grep { lc eq 'enablereuse=on' } @{ $pass->{args} };
}

# ---------------------------------------------------------------- what to add

# LoadModule lines for the modules that are not loaded; a virtual host cannot have them.
sub missing ($opt, $tree, $server, @names) {
	my ($any) = grep { arg($_, 1) =~ m{/[^/]+\.so\z} } kids($tree, 'loadmodule');
	my $dir = $any ? arg($any, 1) =~ s{/[^/]+\z}{}r : '/usr/lib/apache2/modules';
	my $text = join '', map { "LoadModule ${_}_module $dir/mod_$_.so\n" } grep { !$opt->{state}{modules}{"${_}_module"} } @names;
	return if $text eq '';
	my $last = last_of($tree, 'loadmodule');
	my $at = $last ? { %$last, line => $last->{to} } : { file => $tree->{file}, line => 0 };
	return { after => $at, in => 'below the other modules (a2enmod on Debian)', text => $text };
}

sub at_end ($opt, $tree, $server, $text) {
	return { before_end => $server, in => 'in this VirtualHost', text => $text } if $server->{close};
	return { after => { file => $tree->{file}, line => $tree->{last} }, in => 'at the end', text => $text };
}

sub add_proxy ($opt, $tree, $server, $dir) {
	return (missing($opt, $tree, $server, @{ $MODULES{proxy} }), at_end($opt, $tree, $server, <<~"EOT"));
		# fcgi-stat-accel --for=apache --path-from=DOCUMENT --root=$dir
		# Before this line, for each part that is not made of files: ProxyPass /app/ !
		ProxyPass / unix:$opt->{socket}|fcgi://localhost/ enablereuse=on
		XSendFile On
		XSendFilePath "$dir"
		EOT
}

# mod_authnz_fcgi speaks TCP only.
sub add_authnz ($opt, $tree, $server, $dir) {
	my $define = { after => { file => $tree->{file}, line => $tree->{last} }, in => 'at the end, outside of any VirtualHost',
		text => Accel::Lines::apache_define($opt->{socket}) };
	return (missing($opt, $tree, $server, @{ $MODULES{authnz} }), $define,
		at_end($opt, $tree, $server, "<Directory \"$dir\">\n" . Accel::Lines::apache_ask('stat-accel') =~ s/^/\t/gmr . "</Directory>\n"));
}

# ---------------------------------------------------------------- directories

# Does a <Directory> section cover this directory?
sub covers ($section, $dir) {
	my $path = arg($section);
	my $regex = $section->{name} eq 'directorymatch' ? $path : $path eq '~' ? arg($section, 1) : undef;
	if (!defined $regex) {
		return within($dir, $path) unless $path =~ /[*?\[]/;
		$regex = '^' . (join '', map { $_ eq '*' ? '[^/]*' : $_ eq '?' ? '[^/]' : quotemeta } split //, $path =~ s{/+\z}{}r) . '(?:/|$)';
	}
	my $re = eval { no warnings; qr/$regex/ } or return 0;
	return "$dir/" =~ $re || $dir =~ $re;
}

sub depth ($section) { return length(arg($section) =~ s{(?<=.)/+\z}{}r) }

# The directives for a directory, in the order in which they are merged: outer before inner, patterns after plain names.  Without a
# directory: those for a proxied request, which has none.
sub for_directory ($tree, $server, $dir, @names) { return map { kids($_, @names) } sections_for($tree, $server, $dir) }

sub sections_for ($tree, $server, $dir) {
	my @levels = $server == $tree ? $tree : ($tree, $server);
	my @sections = grep { defined $dir && covers($_, $dir) } map { kids($_, 'directory', 'directorymatch') } @levels;
	my $is_plain = sub ($s) { $s->{name} eq 'directory' && arg($s) ne '~' };
	my @plain = sort { depth($a) <=> depth($b) } grep { $is_plain->($_) } @sections;
	my @whole = grep { arg($_) eq '/' } map { kids($_, 'location') } @levels;
	return (@levels, @plain, (grep { !$is_plain->($_) } @sections), @whole);
}

sub check_directory ($opt, $tree, $server, $dir, $proxied) {
	my $report = $opt->{report};
	my $place = where($server) . ", $dir";
	check_override($report, $tree, $server, $dir, $place) unless $proxied;
	check_options($opt, $place, for_directory($tree, $server, $dir, 'options')) unless $proxied;

	my $mount = mounted_on($opt, $dir) or return;
	return unless $mount->{kind} =~ /^(?:network|fuse)\z/;
	for (['enablemmap', 'EnableMMAP', 'on', 'a file that another host cuts short while it is mapped kills the process (SIGBUS), and page faults wait for the server'],
		['enablesendfile', 'EnableSendfile', 'off', 'sendfile() from network file systems is known to send old or broken bytes']) {
		my ($key, $name, $default, $why) = @$_;
		my ($node) = reverse for_directory($tree, $server, $proxied ? undef : $dir, $key);
		next if lc(arg($node) || $default) eq 'off';
		my $id = $key =~ s/^enable//r;
		if ($node) {
			$report->finding($id, 'breaks', $node, $place, "$why: $dir is on $mount->{type}", { replace => $node, in => 'instead of this line', text => "$name Off\n" });
		} else {
			$report->finding($id, 'breaks', setting($tree, $server, 'documentroot') // $server, $place, "$name is on by default, and $why: $dir is on $mount->{type}",
				at_end($opt, $tree, $server, $proxied ? "$name Off\n" : "<Directory \"$dir\">\n\t$name Off\n</Directory>\n"));
		}
	}
}

# The manual calls None the default; strace of 2.4.71 without any AllowOverride shows open() of .htaccess in each directory.
sub check_override ($report, $tree, $server, $dir, $place) {
	my ($node) = reverse for_directory($tree, $server, $dir, 'allowoverride');
	return if lc arg($node) eq 'none';
	my $why = 'Apache looks for .htaccess in each directory of the path, for each request, before the file is warm';
	return $report->finding('allow-override', 'blocks', $node, $place, $why, { replace => $node, in => 'instead of this line', text => "AllowOverride None\n" }) if $node;
	$report->finding('allow-override', 'blocks', setting($tree, $server, 'documentroot') // $server, $place, "without AllowOverride $why",
		{ after => { file => $tree->{file}, line => $tree->{last} }, in => 'at the end, outside of any VirtualHost', text => "<Directory />\n\tAllowOverride None\n</Directory>\n" });
	return;
}

# The names that are in force after all Options lines, and what the last of them should be.
sub check_options ($opt, $place, @nodes) {
	my %on = (followsymlinks => 1);
	for my $node (@nodes) {
		%on = () unless grep { /^[+-]/ } @{ $node->{args} };
		for (map { lc } @{ $node->{args} }) {
			my ($sign, $name) = /^([+-]?)(.*)/;
			if    ($name eq 'all')  { @on{qw(indexes followsymlinks includes execcgi)} = (1) x 4 }
			elsif ($name eq 'none') { %on = () }
			elsif ($sign eq '-')    { delete $on{$name} }
			else                    { $on{$name} = 1 }
		}
	}
	my $node = $nodes[-1] // return;
	my @bad = grep { $on{$_} } 'multiviews', 'indexes';
	my @args = grep { !/^[+-]?(?:indexes|multiviews|(?:no)?followsymlinks|symlinksifownermatch|all|none)\z/i } @{ $node->{args} };
	my $signed = grep { /^[+-]/ } @{ $node->{args} };
	my $snippet = { replace => $node, in => 'instead of this line',
		text => join(' ', 'Options', @args, $signed ? ((map { "-$_" } @bad), '-SymLinksIfOwnerMatch', '+FollowSymLinks') : 'FollowSymLinks') . "\n" };
	my $report = $opt->{report};
	my $modules = $opt->{state}{modules};
	$report->finding('symlinks', 'blocks', $node, $place, ($on{symlinksifownermatch} ? 'SymLinksIfOwnerMatch' : 'without FollowSymLinks')
		. ': lstat() for every directory of the path, for each request, before the file is warm', $snippet) unless $on{followsymlinks};
	$report->finding('autoindex', 'blocks', $node, $place, 'a listing calls stat() for every name in the directory', $snippet) if $on{indexes} && $modules->{autoindex_module};
	$report->finding('multiviews', 'blocks', $node, $place, 'MultiViews reads the whole directory for each missing name', $snippet)
		if $on{multiviews} && $modules->{negotiation_module};
}

1;
