package Accel::Check::NginxAuth;
# How an nginx server reaches the accelerator: auth_request, or X-Accel-Redirect from a fastcgi_pass.
use v5.36;

use Accel::Check            qw(within);
use Accel::Check::NginxTree qw(kids own effective value around locations where root_of is_internal serves find_location pass_of params is_ours);
use Accel::Check::NginxWays ();
use Accel::Lines            ();

sub check_server ($opt, $server, $blocks) {
	my $report = $opt->{report};
	my @responders = responders($opt, $server);
	my ($target) = grep { own($_, 'internal') && serves($_) && root_of($_) && ($_->{args}[0] // '') ne '=' } locations($server);
	my %looked_at;
	for my $block (@$blocks) {
		next if is_internal($block);
		my $auth = effective($block, 'auth_request');
		if (my $module = effective($block, 'stat_accel')) {
			by_module($report, $server, $block, $module);
		} elsif ($auth && ($auth->{args}[0] // 'off') ne 'off') {
			my $asked = find_location($server, $auth->{args}[0]);
			check_target($opt, $server, $auth, $asked) unless $looked_at{ $auth->{file} . ':' . $auth->{line} }++;
			my $state = $asked && is_ours($asked) ? check_path($report, $server, $block, $asked, $auth) : 'cold';
			$report->place(where($block), $state, $auth, as => 'auth', root => scalar root_of($block),
				$state eq 'asked' ? (pass => pass_of($asked), address => [addresses($server, pass_of($asked))]) : ());
			check_satisfy($report, $block);
		} elsif (my ($lua) = map { effective($block, "access_by_lua$_") // () } '_block', '_file', '') {
			$report->note('lua', $lua, where($block), 'Lua code decides here which files the accelerator is asked for; it is not read');
			$report->place(where($block), 'unknown', $lua);
		} elsif ($auth) {
			exempt($report, $block, $auth);
		} elsif (!$target && (my ($r) = grep { same_files($_, $block) } @responders)) {
			$report->finding('accel-internal', 'breaks', $block, where($block),
				'X-Accel-Redirect leads here, and so can any client: it bypasses the accelerator, and the files are cold',
				{ after => $block, in => 'in this location', text => "internal;\n" });
		} else {
			add_auth($opt, $server, $block);
			$report->place(where($block), 'cold', $block);
		}
	}
	check_ways($report, $server);
	check_idle($report, $server, $_) for grep { my $l = $_; !grep { $_ == $l } @$blocks, @responders } locations($server);
	for my $loc (@responders) {
		check_responder($opt, $server, $loc);
		$report->place(where($loc), 'asked', $loc, as => 'X-Accel-Redirect', root => scalar root_of($loc), pass => pass_of($loc), address => [addresses($server, pass_of($loc))]);
	}
}

# Names that nginx itself makes: checks whether the place where each one ends asks for that name.
sub check_ways ($report, $server) {
	for my $way (Accel::Check::NginxWays::ways($server)) {
		my ($from, $block) = @$way{qw(from block)};
		my $auth = effective($block, 'auth_request') // next;
		my $asked = ($auth->{args}[0] // 'off') eq 'off' ? undef : find_location($server, $auth->{args}[0]);
		next if !$asked || !is_ours($asked);
		my $r = Accel::Check::NginxName::request($server, $block, $auth->{args}[0], map { $_ => $way->{$_} } qw(uri asked begun));
		next if $r->{told} eq $r->{opened} || !Accel::Check::NginxName::is_sure($r->{opened}) || $r->{block} != $block;
		$report->finding('wrong-name', 'blocks', $from, where($block), "$from->{name} leads to " . Accel::Check::NginxName::shown($r->{opened})
			. ', and the accelerator gets ' . ($r->{told} eq '' ? 'no name' : 'the name that the client sent'), name_snippets($server, $block, $asked));
		$report->place(where($block) . ", by $from->{name}", 'cold', $from);
	}
	for my $block ($server, locations($server)) {
		next if is_internal($block) || !serves($block) || value($block, 'auth_request', 'off') eq 'off';
		$report->finding('try-files-page', 'blocks', $_->{from}, where($block), "try_files opens $_->{page} without asking for it: it is asked for when it is the last word",
			{ advice => "Write $_->{page} as the last word of try_files, and \"set \$warm_path \$request_filename;\" in its location." }),
			$report->place(where($block) . ', by try_files', 'cold', $_->{from}) for Accel::Check::NginxWays::constant_tries($block);
	}
}

# auth_request has no effect where no file is served: "return" answers before it, a proxy after it.
sub check_idle ($report, $server, $loc) {
	my $auth = effective($loc, 'auth_request') or return;
	my $target = find_location($server, $auth->{args}[0] // '');
	return if !$target || $target == $loc || !is_ours($target) || is_internal($loc) || params($target)->{WARM_CACHE_KEY};
	my $own = $auth->{parent} == $loc;
	if (own($loc, 'return')) {
		$report->finding('auth-return', 'wastes', $auth, where($loc), '"return" answers before auth_request asks: it asks for nothing here',
			{ replace => $auth, in => 'instead of this line', text => "# no auth_request here\n" }) if $own;
	} elsif (my $pass = pass_of($loc)) {
		return if value($loc, $pass->{name} =~ s/_pass\z/_cache/r, 'off') ne 'off';    # its answers are files: NginxCache.pm
		my $why = "the accelerator is asked before $pass->{name}, and no file is opened here";
		$report->note('auth-proxy', $auth, where($loc), "$why: auth_request off; in this location saves the question") unless $own;
		$report->finding('auth-proxy', 'wastes', $auth, where($loc), $why, { replace => $auth, in => 'instead of this line', text => "auth_request off;\n" }) if $own;
	}
	return;
}

# "off" in a location is meant for its files; for a whole server or more it is seldom meant.
sub exempt ($report, $block, $auth) {
	$report->note('exempt', $auth, where($block), 'auth_request off: its files are opened cold, which is right for files that are always in memory'
		. ($auth->{parent} == $block ? '' : "; it inherits this from $auth->{parent}{name}" . join '', map { " $_" } @{ $auth->{parent}{args} }));
	$report->place(where($block), 'exempt', $auth);
}

# The addresses of a fastcgi_pass: paths of unix sockets, HOST:PORT; empty when they depend on the request.
sub addresses ($server, $pass) {
	my $to = $pass->{args}[0] // '';
	my $http = around($server, 'http') // $server->{parent};
	my ($upstream) = grep { ($_->{args}[0] // '') eq $to } kids($http, 'upstream');
	my @all = $upstream ? map { $_->{args}[0] // '' } kids($upstream, 'server') : $to;
	return map { /\$/ ? () : s/^unix://r =~ s/^localhost(?=:)/127.0.0.1/r } @all;
}

# ---------------------------------------------------------------- auth_request

sub check_target ($opt, $server, $auth, $target) {
	my ($report, $uri, $place) = ($opt->{report}, $auth->{args}[0], where($auth->{parent}));
	return if $uri =~ /\$/;
	my $wrong = sub ($id, $at, $why) {
		$report->finding($id, 'breaks', $at, $place, $why, warm_location($opt, $server, $auth));
	};
	return $wrong->('auth-404', $auth, "no location for $uri: nginx looks for a file of that name, and its 404 becomes a 500 for the client")
		unless $target;
	my $pass = pass_of($target);
	if (!$pass) {
		my $return = own($target, 'return') // return $wrong->('auth-404', $auth,
			"the location for $uri (line $target->{line}) answers with files: a 404 from auth_request becomes a 500 for the client");
		return $wrong->('auth-404', $auth, "the location for $uri returns $return->{args}[0], which becomes "
			. ($return->{args}[0] =~ /^40[13]\z/ ? 'the answer' : 'a 500') . ' for every client') if ($return->{args}[0] // '') !~ /^2/;
		return $wrong->('auth-other', $auth, "the location for $uri answers itself: no program opens the file before nginx");
	}
	if (!is_ours($target)) {
		$report->finding('auth-other', 'blocks', $auth, $place,
			"auth_request asks $pass->{args}[0] for permission, which opens no file, and there is one auth_request per location: "
			. 'the file is opened cold. Let an X-Accel-Redirect from fcgi-stat-accel --for=nginx follow it',
			{ advice => 'Keep auth_request; send the requests it allows to fcgi-stat-accel with fastcgi_pass, and serve from an internal location.' });
		return;
	}
	if (my $try = own($target, 'try_files')) {
		$report->finding('auth-try-files', 'blocks', $try, where($target),
			'try_files asks the disk for the name of the subrequest, in the event loop, before the accelerator is asked',
			{ replace => $try, in => 'instead of this line', text => "# no try_files here\n" });
	}
	$report->finding('auth-internal', 'breaks', $target, where($target),
		'clients can ask for this URI and learn which files exist',
		{ after => $target, in => 'in this location', text => "internal;\n" }) unless own($target, 'internal');
	my $body = $pass->{name} =~ s/_pass\z/_pass_request_body/r;
	$report->finding('auth-body', 'breaks', $target, where($target),
		'the subrequest announces the body of a POST that it does not carry',
		{ after => $target, in => 'in this location', text => "$body off;\n" }) if value($target, $body, 'on') ne 'off';
	$report->note('auth-fallback', $target, where($target), "without error_page 502 503 504 = $uri/down, where location = $uri/down returns 204, every request gets 500 while the accelerator is stopped") unless grep { "@{ $_->{args} }" =~ /50[24]/ } kids($target, 'error_page');
	return;
}

# Which file name does the accelerator get?  Returns the state of the place.
sub check_path ($report, $server, $block, $target, $auth) {
	my $params = params($target);
	my ($name) = grep { $params->{$_} } qw(WARM_PATH SCRIPT_FILENAME);    # the order of fcgi-stat-accel
	my $whole = joins($target);
	if (!$name && !$whole) {
		$report->finding('auth-path', 'breaks', $target, where($target),
			'no fastcgi_param names the file: the accelerator sees the URI of the subrequest and opens the wrong file',
			{ after => $target, in => 'in this location', text => Accel::Lines::nginx_names() }, needs_set($server, $block) ? told_by_set($block, $target) : ());
		return 'cold';
	}
	my ($value, $param) = $name ? @{ $params->{$name} } : ('', undef);
	if (!$whole && $value =~ /\$\{?(uri|document_uri|request_filename|fastcgi_script_name|request_uri)\b/) {
		my $why = $1 eq 'request_uri' ? 'is percent-encoded and has the query at its end'
			: 'belongs to the subrequest here, not to the requested file';
		$report->finding('auth-uri', 'blocks', $param, where($target), "\$$1 $why: the accelerator opens another file",
			$param->{parent} == $target
			? { replace => $param, in => 'instead of this line', text => "fastcgi_param WARM_PATH \$warm_path;\n" }
			: { after => $target, in => 'in this location', text => "fastcgi_param WARM_PATH \$warm_path;\n" });
		check_set($report, $server, $block, 'warm_path', $target);
		return 'cold';
	}
	my ($var) = $value =~ /\A\$\{?(\w+)\}?\z/;
	return 'cold' if !$whole && defined $var && check_set($report, $server, $block, $var, $target);
	return check_name($report, $server, $block, $auth, $param // $target);
}

# Plays a request: does the accelerator get the name that nginx opens?
sub check_name ($report, $server, $block, $auth, $at) {
	my $r = Accel::Check::NginxName::request($server, $block, $auth->{args}[0]);
	my ($told, $opened) = @$r{qw(told opened)};
	return 'asked' if $told eq $opened || $r->{block} != $block && $block->{name} ne 'server';    # a rewrite leads elsewhere
	my ($said, $file) = map { Accel::Check::NginxName::shown($_) } $told, $opened;
	if (grep { !Accel::Check::NginxName::is_sure($_) } $told, $opened) {
		$report->note('name', $at, where($block), "the accelerator gets the name $said, and nginx opens $file: whether these are equal depends on the request");
		return 'unknown';
	}
	$report->finding('wrong-name', 'blocks', $at, where($block), "for $r->{uri} nginx opens $file, and the accelerator gets "
		. ($told eq '' ? 'no name' : $said), name_snippets($server, $block, $r->{target}));
	return 'cold';
}

# True if the name of a file here is not the root of the server followed by the URI.
sub needs_set ($server, $block) {
	my ($mine, $theirs) = map { effective($_, 'root', 'alias') } $block, $server;
	return ($mine // 0) != ($theirs // 0) || !!($mine && $mine->{name} eq 'alias');
}

# True if the accelerator gets root and URI from this location.
sub joins ($target) { my $params = params($target); return $params->{DOCUMENT_ROOT} && $params->{REQUEST_URI} }

# The name of the variable that the asked location passes on, if it is a variable.
sub told_variable ($target) {
	my ($value) = @{ params($target)->{WARM_PATH} // [''] };
	return $value =~ /\A\$\{?(\w+)\}?\z/ ? $1 : undef;
}

# Lines that pass on another name, in both locations.
sub told_by_set ($block, $target) {
	my $var = $target ? told_variable($target) : undef;
	return ({ after => $block, in => "in this $block->{name}" , text => Accel::Lines::nginx_set($var // 'warm_path') },
		$target && !defined $var ? { after => $target, in => 'in the location that is asked', text => Accel::Lines::nginx_warm_path() } : ());
}

sub name_snippets ($server, $block, $target) {
	my $param = (params($target)->{WARM_PATH} // [])->[1];
	return { advice => 'Above the "rewrite ... break", write a "set" with the new name: nginx runs no "set" after it.' }
		if grep { ($_->{args}[2] // '') eq 'break' } kids($block, 'rewrite');
	return { replace => $param, in => 'instead of this line', text => Accel::Lines::nginx_names() }
		if $param && !defined told_variable($target) && $param->{parent} == $target && !needs_set($server, $block);
	return told_by_set($block, $target) if $block->{name} eq 'location' && !set_of($block, told_variable($target) // 'warm_path');
	return { advice => 'See "Other names than root and URI" in examples/nginx/README.md.' };
}

sub set_of ($block, $var) { return (grep { ($_->{args}[0] // '') eq "\$$var" } kids($block, 'set'))[0] }

# Plays the server block once more for the subrequest, whose $uri is that of auth_request.
sub check_server_set ($report, $server, $block, $var) {
	my $set = set_of($server, $var) or return 0;
	return 0 unless ($set->{args}[1] // '') =~ /\$\{?(?:uri|document_uri|request_filename|fastcgi_script_name)\b/;
	my $text = Accel::Lines::nginx_set($var);
	$report->finding('set-server', 'blocks', $set, where($block), "\"set\" of the server block is run again in the subrequest, where \$uri is that of auth_request: "
		. 'the accelerator gets the same name for every request, and the files are opened cold',
		{ replace => $set, in => 'instead of this line', text => "# set \$$var: in each location that serves files\n" },
		set_of($block, $var) ? () : $block == $server ? { after => $block, in => 'in the server block', text => "location / {\n\t$text}\n" }
		: { after => $block, in => 'in this location', text => $text });
	return 1;
}

# "set" is not inherited by a location inside; one in the server block is run before the location is known.
sub check_set ($report, $server, $block, $var, $target) {
	return 1 if check_server_set($report, $server, $block, $var);
	my $want = (effective($block, 'root', 'alias') // {})->{name} // 'root';
	my $text = Accel::Lines::nginx_set($var);
	my $set = set_of($block, $var);
	if (!$set) {
		return 0 if defined_elsewhere($server, $var);
		$report->finding('warm-path', 'blocks', $block, where($block), "\$$var is empty here: a location does not inherit \"set\" from another one; the accelerator opens nothing",
			$block->{name} eq 'server' ? { after => $target, in => 'in the location that is asked', text => Accel::Lines::nginx_names() }
			: { after => $block, in => 'in this location', text => $text });
		return 1;
	}
	my $value = $set->{args}[1] // '';
	my $wrong = $want eq 'alias' && $value =~ /\$(?:document_)?uri\b/;
	$report->finding('warm-path', 'blocks', $set, where($block), 'with alias the name of the file is $request_filename; this names another one',
		{ replace => $set, in => 'instead of this line', text => $text }) if $wrong;
	my ($late) = grep { $_->{line} > $set->{line} && ($_->{args}[2] // '') eq 'break' } kids($block, 'rewrite');
	$report->finding('warm-path', 'blocks', $set, where($block), "the rewrite in line $late->{line} changes the name later",
		{ advice => 'Write the "set" with the new name above the "rewrite": nginx runs no "set" after "break".' }) if $late;
	return $wrong || $late;
}

sub defined_elsewhere ($server, $var) {
	my $http = around($server, 'http') // $server->{parent};
	return grep { grep { $_ eq "\$$var" } @{ $_->{args} } } map { kids($http, $_) } qw(map geo split_clients perl_set js_set);
}

sub check_satisfy ($report, $block) {
	my $d = effective($block, 'satisfy') or return;
	return unless ($d->{args}[0] // '') eq 'any' && (effective($block, 'allow') || effective($block, 'auth_basic'));
	$report->finding('satisfy', 'breaks', $d, where($block),
		'with "any" the 204 of the accelerator is a permission: it admits clients that allow and auth_basic refused',
		{ replace => $d, in => 'instead of this line', text => "satisfy all;\n" });
}

# The module of nginx/ takes the names from nginx itself, so there is nothing to judge.
sub by_module ($report, $server, $block, $module) {
	my $by = $module->{args}[0] // '';
	my $off = $by eq 'off';
	$report->note('exempt', $module, where($block), 'stat_accel off: its files are opened cold, which is right for files that are always in memory') if $off;
	$report->place(where($block), $off ? 'exempt' : 'asked', $module, $by eq 'on' ? (itself => 1) : $off ? () : (pass => $module, address => [addresses($server, $module)]));
}

# ---------------------------------------------------------------- what to add

sub add_auth ($opt, $server, $block) {
	my $target = find_location($server, '/stat-accel');
	undef $target unless $target && is_ours($target);
	my $is_server = $block->{name} eq 'server';
	my $joined = !$target || joins($target);
	my $set = !$is_server && (!$joined || needs_set($server, $block));
	my $lines = Accel::Lines::nginx_ask('/stat-accel') . ($set ? Accel::Lines::nginx_set(($target ? told_variable($target) : undef) // 'warm_path') : '');
	my $off = own($block, 'auth_request');
	$opt->{report}->finding('no-auth-request', 'blocks', $block, where($block),
		'open() of a file that is not in memory stops the worker and all its clients; "aio threads" does not cover it '
		. '(16 cold files on a disk of 200 ms: a hot one waits 3.2 s, with or without)',
		{ $off ? (replace => $off, in => 'instead of this line') : (after => $block, in => $is_server ? 'in the server block' : 'in this location'), text => $lines },
		$is_server && !$joined ? { after => $target, in => 'in the location that is asked', text => Accel::Lines::nginx_names() } : (),
		$set && $target && !defined told_variable($target) ? { after => $target, in => 'in the location that is asked', text => Accel::Lines::nginx_warm_path() } : (),
		warm_location($opt, $server, undef));
}

# The location to ask, unless the server has a suitable one.
sub warm_location ($opt, $server, $auth) {
	my $uri = $auth ? $auth->{args}[0] : '/stat-accel';
	my $there = find_location($server, $uri);
	return if $there && is_ours($there);
	my @parts;
	if ($auth && $there && "@{ $there->{args} }" eq "= $uri") {    # in the way: ask somewhere else
		($uri = "$uri-stat-accel", push @parts, { replace => $auth, in => 'instead of this line', text => Accel::Lines::nginx_ask($uri) });
	}
	my $address = $opt->{socket} =~ m{^/} ? "unix:$opt->{socket}" : $opt->{socket};
	my $set = grep { needs_set($server, $_) && !is_internal($_) } Accel::Check::Nginx::file_blocks($server);
	return (@parts, { after => $server, in => 'in the server block', text => Accel::Lines::nginx_location($uri, $address, Accel::Lines::nginx_names() . ($set ? Accel::Lines::nginx_warm_path() : '')) });
}

# ---------------------------------------------------------------- X-Accel-Redirect

# Locations outside of auth_request that pass to the accelerator, known by its socket or by a name like it.
sub responders ($opt, $server) {
	my %asked = map { ($_->{args}[0] // '') => 1 } map { kids($_, 'auth_request') } $server, locations($server);
	my %target = map { my $l = find_location($server, $_); $l ? ($l => 1) : () } grep { /^\// } keys %asked;
	return grep {
		my $pass = pass_of($_);
		$pass && $pass->{name} eq 'fastcgi_pass' && !$target{$_} && !own($_, 'internal')
			&& (($pass->{args}[0] // '') =~ /accel|warm/i || ($pass->{args}[0] // '') =~ /\Q$opt->{socket}\E\z/)
	} locations($server);
}

sub same_files ($responder, $block) {
	my ($a, $b) = map { scalar root_of($_) } $responder, $block;
	return $block->{name} eq 'location' && defined $a && defined $b && within($b, $a);
}

sub check_responder ($opt, $server, $loc) {
	my $report = $opt->{report};
	my $params = params($loc);
	$report->finding('accel-path', 'breaks', $loc, where($loc), 'no fastcgi_param names a file: the accelerator answers 403',
		{ after => $loc, in => 'in this location', text => "fastcgi_param REQUEST_METHOD \$request_method;\nfastcgi_param REMOTE_ADDR \$remote_addr;\nfastcgi_param SCRIPT_FILENAME \$document_root\$uri;\n" })
		unless $params->{SCRIPT_FILENAME} || $params->{WARM_PATH} || $params->{DOCUMENT_ROOT} && $params->{SCRIPT_NAME};
	my $ignored = effective($loc, 'fastcgi_ignore_headers');
	$report->finding('accel-ignored', 'breaks', $ignored, where($loc), 'the header that names the file is ignored: clients get an empty answer',
		{ replace => $ignored, in => 'instead of this line', text => "# X-Accel-Redirect must not be ignored\n" })
		if $ignored && grep { lc eq 'x-accel-redirect' } @{ $ignored->{args} };
	my $root = root_of($loc) // $opt->{root} // '/srv/www';
	$report->finding('accel-target', 'breaks', $loc, where($loc), 'X-Accel-Redirect has no target: no internal location serves files',
		{ after => $server, in => "in the server block; start fcgi-stat-accel with --for=nginx --map $root=/.files",
			text => "location /.files/ {\n\tinternal;\n\talias " . $root =~ s{/*\z}{/}r . ";\n}\n" })
		unless grep { serves($_) && (is_internal($_) || same_files($loc, $_)) } locations($server);
}

1;
