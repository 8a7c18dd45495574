package Accel::Check::Lighttpd;
# What in a lighttpd 1.4 configuration still makes the event loop wait for a disk.
#
# The order of a request, as strace shows it for 1.4.69: conditions and the directory of simple-vhost | FastCGI with
# check-local off, authorizers among them | stat() of the file, index files, rewrite-if-not-file | FastCGI with
# check-local on | the file itself.
use v5.36;

use Accel::Check               qw(mounted_on slow_kind within is_page page_not_asked);
use Accel::Check::LighttpdFile qw();
use Accel::Lines               ();

*setting = \&Accel::Check::LighttpdFile::setting;
*value = \&Accel::Check::LighttpdFile::value;
*written = \&Accel::Check::LighttpdFile::written;

# Debian's own includes: types, and a second address to listen on.
my $HARMLESS = qr{^/usr/share/lighttpd/(?:create-mime(?:\.assign|\.conf)|use-ipv6)\.pl\b};

sub check ($opt, $file) {
	my $tree = Accel::Check::LighttpdFile::read_tree($opt, $file);
	my $report = $opt->{report};
	$opt->{server_user} = text_of(value($tree, 'server.username')) || undef;
	my @scopes = scopes($tree);
	for my $scope (@scopes) {
		my $own = own($scope, 'server.document-root');
		$report->root($own->{value}, where($scope)) if $own && !ref $own->{value} && $own->{value} =~ m{^/};
	}
	note_places($opt, $tree, $_) for @scopes;    # before check_scopes(), which corrects the values
	my $used = check_scopes($opt, $tree, @scopes);
	$report->finding('mod-fastcgi', 'breaks', $used, 'the whole server',
		'mod_fastcgi is not in server.modules: lighttpd starts with a warning, ignores fastcgi.server and opens every file cold',
		module_line($tree)) if $used && !has_module($tree, 'mod_fastcgi');
	check_server($opt, $tree, $used);
	check_rest($opt, $_) for @scopes;
	for my $n (@{ $opt->{state}{not_run} // [] }) {
		$report->note('not-run', $n, 'the whole server', "include_shell is not run; what '$n->{command}' prints is not seen");
		$report->place("what '$n->{command}' prints", 'unknown', $n) unless $n->{command} =~ $HARMLESS;
	}
}

sub scopes ($block) { return ($block, map { $_->{name} eq 'block' ? scopes($_) : () } @{ $block->{kids} }) }
sub own ($scope, $key) { return $scope->{last}{$key} }
sub around ($scope) { return $scope ? ($scope, around($scope->{parent})) : () }
sub where ($scope) { return $scope->{parent} ? join(' { ', reverse map { $_->{cond} // () } around($scope)) : 'the whole server' }
sub text_of ($value) { return defined $value && !ref $value ? $value : '' }

sub root_of ($opt, $scope) {
	my $root = text_of(value($scope, 'server.document-root'));
	return $root =~ m{^/} ? $root =~ s{(?<=.)/+\z}{}r : $opt->{root};
}

# ---------------------------------------------------------------- fastcgi.server

# The hosts of a fastcgi.server: { key, line, conf }, conf is a hash.  Items that are not a list of lists are ignored.
sub hosts ($list) {
	my @all;
	for my $entry (ref $list ? @$list : ()) {
		my ($key, $hosts, $line) = @$entry;
		next unless ref $hosts;
		# (( ... )), or ( "name" => ( ... )), or without the inner list
		my @lists = grep { ref } map { $_->[1] } @$hosts;
		@lists = ($hosts) if !grep { ref && @$_ && ref $_->[0] } @lists;
		push @all, map { { key => $key // '', line => $line, list => $_, conf => { map { ($_->[0] // '') => $_->[1] } @$_ } } } @lists;
	}
	return @all;
}

sub is_on ($conf, @names) { return !!grep { lc text_of($conf->{$_}) =~ /^(?:enable|1)\z/ } @names }
sub sends_files ($conf) { return is_on($conf, qw(x-sendfile allow-x-send-file)) }
sub authorizes ($conf) { return text_of($conf->{mode}) eq 'authorizer' }

sub is_accel ($opt, $host) {
	my $conf = $host->{conf};
	my $to = join ' ', map { text_of($conf->{$_}) } qw(socket bin-path);
	return $to =~ /accel|warm/i || $to =~ /(?:^| )\Q$opt->{socket}\E / || authorizes($conf)
		|| sends_files($conf) && $host->{key} =~ m{^/} && !exists $conf->{'bin-path'};
}

sub accels ($opt, $scope) {
	my $node = setting($scope, 'fastcgi.server') or return;
	return grep { is_accel($opt, $_) } hosts($node->{value});
}

# True if everything below "/" goes to another server, so no files are served here.
sub only_proxies ($scope) {
	my $list = value($scope, 'proxy.server');
	return ref $list && grep { ($_->[0] // '') =~ m{^/?\z} } @$list;
}

# Looks at each scope that names files or applications; returns a fastcgi.server in use for the accelerator.
sub check_scopes ($opt, $tree, @scopes) {
	my $report = $opt->{report};
	my ($used, %done, %held);
	for my $scope (@scopes) {    # the scopes in which each fastcgi.server holds
		my $fcgi = setting($scope, 'fastcgi.server') or next;
		push @{ $held{$fcgi} }, $scope;
	}
	my $somewhere = grep { own($_, 'fastcgi.server') && accels($opt, $_) } @scopes;
	for my $scope (@scopes) {
		my $fcgi = own($scope, 'fastcgi.server');
		my @accels = accels($opt, $scope);
		if ($fcgi && @accels) {
			$used //= $fcgi;
			check_hosts($opt, $fcgi, $scope, \@accels, @{ $held{$fcgi} });
		}
		next if @accels || only_proxies($scope);
		next if !$fcgi && exempts($opt, $scope);
		my $node = $fcgi // own($scope, 'server.document-root') // ($scope == $tree ? undef : next);
		if ($fcgi && !@{ ref $fcgi->{value} ? $fcgi->{value} : [] }) {
			$report->note('exempt', $fcgi, where($scope), 'an empty fastcgi.server: its files are opened cold, which is right for files that are always in memory');
			next;
		}
		next if !$node && !@{ $tree->{kids} };
		next if $scope != $tree && !$fcgi && !$somewhere;    # said for the whole server
		$node //= { file => $tree->{file}, line => 1 };
		next if $done{"$node->{file}:$node->{line}"}++;
		add_accel($opt, $scope, $node, $fcgi);
	}
	return $used;
}

# ---------------------------------------------------------------- what is accelerated

# Notes the state of a block that names files or applications.
sub note_places ($opt, $tree, $scope) {
	my ($report, $fcgi) = ($opt->{report}, own($scope, 'fastcgi.server'));
	my $alias = own($scope, 'alias.url');
	return if only_proxies($scope) || !@{ $scope->{kids} } || $scope != $tree && !$fcgi && !$alias && !own($scope, 'server.document-root');
	my @accels = accels($opt, $scope);
	my $node = $fcgi // own($scope, 'server.document-root') // $alias // { file => $scope->{file}, line => 1 };
	if (!@accels) {
		my $exempt = $fcgi && ref $fcgi->{value} && !@{ $fcgi->{value} } || !$fcgi && exempts($opt, $scope);
		$report->place(where($scope), $exempt ? 'exempt' : 'cold', $node) if $scope == $tree || $fcgi || root_of($opt, $scope);
		return;
	}
	host_place($opt, $scope, $_, $alias) for @accels;
	return if grep { $_->{key} =~ m{^/?\z} } @accels;
	my $only = join ', ', map { "\"$_->{key}\"" } @accels;
	$report->place(where($scope) . ", all but $only", 'cold', $node);
	$report->finding('key', 'blocks', $node, where($scope), "the accelerator is asked only for $only: all other files are opened cold",
		{ advice => 'Name it "/".' }) if $fcgi;
}

sub host_place ($opt, $scope, $host, $alias) {
	my ($report, $conf) = ($opt->{report}, $host->{conf});
	my $node = setting($scope, 'fastcgi.server');
	my $docroot = text_of($conf->{docroot}) =~ s{(?<=.)/+\z}{}r;
	my ($root, $at) = (root_of($opt, $scope), { file => $node->{file}, line => $host->{line} || $node->{line} });
	my $as = authorizes($conf) ? 'authorizer' : sends_files($conf) ? 'X-Sendfile|X-LIGHTTPD-send-file' : '';
	my $works = has_module($scope, 'mod_fastcgi') && $as ne '';
	if (my ($magnet) = map { setting($scope, "magnet.attract-$_-to") // () } qw(raw-url physical-path)) {
		$report->note('magnet', $magnet, where($scope), 'Lua code decides here which files the accelerator is asked for; it is not read');
		return $report->place(where($scope), 'unknown', $magnet);
	}
	my $right = $docroot eq '' || defined $root && $docroot eq $root && !grep { setting($scope, $_) } qw(simple-vhost.server-root evhost.path-pattern);
	my %more = (as => $as, pass => $at, address => [address_of($conf)], starts => text_of($conf->{'bin-path'}));
	$report->place(where($scope), $works && $right ? 'asked' : 'cold', $node, %more, root => $docroot eq '' ? $root : $docroot);
	return unless $alias && ref $alias->{value};
	for my $entry (@{ $alias->{value} }) {
		my $place = where($scope) . ', alias.url "' . ($entry->[0] // '') . '"';
		$report->place($place, $works && $docroot eq '' ? 'asked' : 'cold', $node, %more, root => text_of($entry->[1]) =~ s{(?<=.)/+\z}{}r);
	}
	return;
}

# lighttpd adds a number to the socket of a program that it starts.
sub address_of ($conf) {
	my ($path, $host, $port) = map { text_of($conf->{$_}) } qw(socket host port);
	return $path . (exists $conf->{'bin-path'} ? '-0' : '') if $path ne '';
	return $port eq '' ? () : $host eq '' ? "127.0.0.1:$port" : "$host:$port";
}

# True for $HTTP["url"] !~ "^/hot/" { fastcgi.server = ... }: the accelerator is asked for all URLs but some.
sub exempts ($opt, $scope) {
	return 1 if remembers($opt, $scope);
	my ($most) = grep { $_->{name} eq 'block' && $_->{cond} =~ /^\$HTTP\["url"\] !/ && grep { own($_, 'fastcgi.server') && accels($opt, $_) } scopes($_) } @{ $scope->{kids} };
	$opt->{report}->note('exempt', $most, where($scope), 'files outside of this condition are opened cold, which is right for files that are always in memory') if $most;
	return !!$most;
}

# True if mod_magnet sets a header for names that it does not know as warm, and a condition on that header leads to the accelerator.
sub remembers ($opt, $scope) {
	my $script = setting($scope, 'magnet.attract-raw-url-to') or return 0;
	my ($asks) = grep { $_->{name} eq 'block' && $_->{cond} =~ /^\$REQUEST_HEADER\[/ && own($_, 'fastcgi.server') && accels($opt, $_) } @{ $scope->{kids} };
	$opt->{report}->note('remembers', $script, where($scope), "this script decides which requests ask; the others must be for files that are warm") if $asks;
	return !!$asks;
}

sub add_accel ($opt, $scope, $node, $fcgi) {
	my @socket = $opt->{socket} =~ m{^/} ? ([socket => $opt->{socket}]) : map { ([host => $_->[0]], [port => $_->[1]]) } [$opt->{socket} =~ /^\[?(.*?)\]?:(\d+)\z/];
	my $ours = ['/', [[undef, [@socket, [mode => 'authorizer'], ['check-local' => 'disable']]]]];
	my $list = [$ours, grep { ($_->[0] // '') ne '/' } $fcgi ? @{ ref $fcgi->{value} ? $fcgi->{value} : [] } : ()];
	my $root = root_of($opt, $scope) // '';
	# The lines of the README, unless the user named another socket, or there is a list to add to.
	my $readme = !$fcgi && !$opt->{socket_given} && $root =~ m{^/[\w./-]+\z};
	my $text = $readme ? Accel::Lines::lighttpd_server($root) : 'fastcgi.server = ' . written($list) . "\n";
	my $why = 'stat() and open() of a file that is not in memory stop the server and all its clients '
		. '(8 cold files on a disk of 200 ms: a hot one waits 1.6 s; behind the accelerator 1 ms)';
	$why = "this replaces the fastcgi.server of the blocks around, the accelerator with it: $why" if $fcgi && $scope->{parent} && accels($opt, $scope->{parent});
	$opt->{report}->finding('no-accel', 'blocks', $node, where($scope), $why,
		$fcgi ? { replace => $fcgi, in => 'instead of these lines', text => $text }
		: { after => { file => $node->{file}, line => $node->{to} // 0 }, in => 'below server.document-root', text => $text },
		$fcgi || has_module($scope, 'mod_fastcgi') ? () : module_line($scope));
}

# Checks one setting after the other; the text to write is the whole assignment with all settings corrected.
sub check_hosts ($opt, $node, $scope, $hosts, @scopes) {
	my @todo;
	for my $host (@$hosts) {
		my ($conf, $list) = @$host{qw(conf list)};
		my $at = { file => $node->{file}, line => $host->{line} || $node->{line} };
		my $place = "fastcgi.server \"$host->{key}\"" . ($scope->{cond} ? ', ' . where($scope) : '');
		my $say = sub ($id, $severity, $why, $correct) { push @todo, [$id, $severity, $at, $place, $why]; $correct->() if $correct };
		my $set = sub ($key, $value) { sub { @$list = ((grep { ($_->[0] // '') ne $key } @$list), [$key, $value]) } };

		$say->('mode', 'breaks', 'neither mode "authorizer" nor x-sendfile: clients get the header instead of the file', $set->('x-sendfile', 'enable'))
			if !authorizes($conf) && !sends_files($conf);
		$say->('check-local', 'blocks', 'check-local is on by default: lighttpd calls stat() before it asks the accelerator, and waits for the disk itself '
			. '(8 cold files on a disk of 200 ms: a hot one waits 1.4 s instead of 1 ms)', $set->('check-local', 'disable'))
			if text_of($conf->{'check-local'}) !~ /^(?:disable|0)\z/i;
		if (authorizes($conf)) {
			my $other = other_root(text_of($conf->{docroot}), @scopes);
			$say->('docroot', 'breaks', "docroot replaces the path that lighttpd found, so $other has no effect: the wrong file is served",
				sub { @$list = grep { ($_->[0] // '') ne 'docroot' } @$list }) if $other;
			$opt->{report}->note('docroot', $at, $place, 'without docroot lighttpd 1.4.69 sends server.document-root and alias.url to the accelerator; older ones may need it')
				unless exists $conf->{docroot};
		} elsif (!exists $conf->{'x-sendfile-docroot'}) {
			my $root = root_of($opt, $scope);
			$say->('x-sendfile-docroot', 'breaks', 'x-sendfile without x-sendfile-docroot sends any file that the application names',
				defined $root ? $set->('x-sendfile-docroot', [[undef, $root]]) : undef);
		}
		$say->('max-procs', 'wastes', 'lighttpd starts four of them by default, each with its own cache and threads', $set->('max-procs', 1))
			if exists $conf->{'bin-path'} && text_of($conf->{'max-procs'}) ne '1';
	}
	my $snippet = { replace => $node, in => 'instead of these lines', text => 'fastcgi.server = ' . written($node->{value}) . "\n" };
	for (@todo) {
		my ($id, $severity, $at, $place, $why) = @$_;
		$opt->{report}->finding($id, $severity, $at, $place, $why, $id eq 'x-sendfile-docroot' && $snippet->{text} !~ /x-sendfile-docroot/
			? { advice => '"x-sendfile-docroot" => ( "DIR" ); --root=DIR says which.' } : $snippet);
	}
}

# What docroot would hide: names that these scopes find in another way.
sub other_root ($docroot, @scopes) {
	return unless length $docroot;
	for my $scope (@scopes) {
		for my $key (qw(alias.url simple-vhost.server-root evhost.path-pattern userdir.path)) {
			my $found = setting($scope, $key);
			return "$key of line $found->{line}" if $found && has_module($scope, 'mod_' . $key =~ s/[-.].*//r =~ s/^simple\z/simple_vhost/r);
		}
		my $root = setting($scope, 'server.document-root') or next;
		return "server.document-root of line $root->{line}" if text_of($root->{value}) =~ s{/+\z}{}r ne $docroot =~ s{/+\z}{}r;
	}
	return;
}

# ---------------------------------------------------------------- modules

sub modules ($scope) { my ($top) = reverse around($scope); return value($top, 'server.modules') }

sub has_module ($scope, $name) {
	my $list = modules($scope);
	return ref $list && grep { text_of($_->[1]) eq $name } @$list;
}

sub module_line ($scope) {
	my ($top) = reverse around($scope);
	my $last = setting($top, 'server.modules');
	return { after => { file => $last ? $last->{file} : $top->{file}, line => $last ? $last->{to} : 0 }, in => 'below server.modules',
		text => Accel::Lines::lighttpd_module() };
}

# ---------------------------------------------------------------- the rest

# Settings of the whole server.
sub check_server ($opt, $tree, $used) {
	my $report = $opt->{report};
	my @slow = grep { $_ && $_->{kind} =~ /^(?:network|fuse)\z/ } map { mounted_on($opt, $_) } sort keys %{ $report->{roots} };
	if (my $d = setting($tree, 'server.stat-cache-engine')) {
		my $engine = text_of($d->{value});
		$report->finding('stat-cache', 'breaks', $d, 'the whole server', "\"$engine\" gets changes from the kernel, which does not know those that "
			. "another host makes on $slow[0]{type}: names and sizes are up to 16 s old",
			{ replace => $d, in => 'instead of this line', text => "server.stat-cache-engine = \"simple\"\n" }) if @slow && $engine =~ /^(?:fam|inotify)\z/;
		$report->note('stat-cache', $d, 'the whole server', 'without the stat cache each step of a request calls stat() again; "simple" does it once a second')
			if $engine eq 'disable';
	}
	if (my $d = setting($tree, 'server.max-worker')) {
		$report->note('max-worker', $d, 'the whole server', 'more workers hide the waiting, each has its own caches, and mod_status shows only one of them: '
			. 'behind the accelerator one for each core is enough') if text_of($d->{value}) =~ /^\d+\z/ && $d->{value} > 1;
	}
	if (my $d = setting($tree, 'server.network-backend')) {
		$report->note('network-backend', $d, 'the whole server', 'writev and write copy each file through the server; sendfile does not')
			if text_of($d->{value}) =~ /^write/;
	}
}

# Settings that may stand in any block.
sub check_rest ($opt, $scope) {
	my $report = $opt->{report};
	my $root = root_of($opt, $scope);
	my $mount = defined $root ? mounted_on($opt, $root) : undef;
	my $type = $mount ? $mount->{type} : '';
	my $far = $mount && $mount->{kind} =~ /^(?:network|fuse)\z/;
	for my $d (grep { exists $_->{value} } @{ $scope->{kids} }) {
		my ($name, $value) = ($d->{name}, text_of($d->{value}));
		my $off = { replace => $d, in => 'instead of this line', text => "$name = \"disable\"\n" };
		if ($name =~ /^(?:dir-listing\.activate|server\.dir-listing)\z/ && $value eq 'enable') {
			$report->finding('dir-listing', 'blocks', $d, where($scope),
				'a listing calls stat() for every name in the directory, in the event loop; no accelerator can make all of them warm', $off);
		} elsif ($name eq 'server.follow-symlink' && $value eq 'disable' && $far) {
			$report->finding('follow-symlink', 'blocks', $d, where($scope), "lighttpd checks each directory of the path separately, and on $type each check can ask the file server",
				{ replace => $d, in => 'instead of this line', text => "$name = \"enable\"\n" });
		} elsif ($name =~ /^(?:deflate|compress)\.cache-dir\z/) {
			my $m = mounted_on($opt, $value);
			$report->finding('deflate-cache', 'blocks', $d, where($scope), "compressed files lie on $m->{type} and are opened in the event loop; the accelerator does not see them",
				{ advice => 'Move the directory to a local disk or to memory.' }) if $m && slow_kind($m->{kind}) && $value ne '';
		} elsif ($name =~ /^server\.(?:errorfile-prefix|errorfile-prefix-404)\z/) {
			my $m = mounted_on($opt, $value);
			$report->finding('error-page', 'blocks', $d, where($scope), "each error opens a file on $m->{type} in the event loop",
				{ advice => 'Copy the pages to a local disk.' }) if $m && slow_kind($m->{kind});
		} elsif ($name =~ /^server\.error-handler(?:-404)?\z/ && is_page($value)) {
			page_not_asked($opt, $d, where($scope), $value, $root);
		} elsif ($name eq 'accesslog.filename' && $value =~ m{^/} && $far) {
			my $m = mounted_on($opt, $value);
			$report->finding('access-log', 'blocks', $d, where($scope), "the log is written in the event loop, to the same $type as the files",
				{ advice => 'Write it to a local disk, or to a program: accesslog.filename = "|/usr/bin/logger".' }) if $m && $m->{point} eq $mount->{point};
		} elsif ($name eq 'index-file.names' && ref $d->{value}) {
			my @names = grep { !m{^/} } map { text_of($_->[1]) } @{ $d->{value} };
			$report->note('index', $d, where($scope), 'a request for a directory looks for these names in it: start fcgi-stat-accel with --index=' . join(',', @names)) if @names;
		} elsif ($name =~ /^url\.rewrite(?:-repeat)?-if-not-file\z/) {
			$report->note('rewrite', $d, where($scope), 'the file it rewrites to is not warm');
		} elsif ($name =~ /^(?:simple-vhost\.server-root|evhost\.path-pattern)\z/) {
			$report->note('vhost', $d, where($scope), 'lighttpd looks up the directory of the host before it asks the accelerator; it is in memory after the first request');
		}
	}
}

1;
