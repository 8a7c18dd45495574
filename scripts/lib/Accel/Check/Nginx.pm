package Accel::Check::Nginx;
# What in an nginx configuration still makes a worker wait for a disk.
#
# The order of a request, as strace shows it: set, rewrite and "if (-f ...)" | allow, auth_basic, auth_request |
# try_files | index, gzip_static, the file itself.  So every step right of auth_request finds a warm name, and "if (-f ...)" does not.  A
# subrequest skips the middle step.
use v5.36;

use Accel::Check            qw(within mounted_on slow_kind);
use Accel::Check::NginxFile ();
use Accel::Check::NginxTree qw(kids own effective value around servers locations where root_of is_internal serves has_module);
use Accel::Check::NginxName ();
use Accel::Check::NginxAuth ();
use Accel::Check::NginxCache ();

# Blocks of a server that answer with files: its locations, and the server itself for what no location matches.
sub file_blocks ($server) {
	return if own($server, 'return') || !serves($server);
	my @locs = locations($server);
	my $whole = grep { join(' ', @{ $_->{args} }) =~ m{^(?:\^~ )?/\z} } @locs;
	return ((grep { serves($_) && !Accel::Check::NginxName::moves_on($server, $_) } @locs), $whole || !effective($server, 'root') ? () : $server);
}

# ---------------------------------------------------------------- the check

sub check ($opt, $file) {
	my $tree = Accel::Check::NginxFile::read_tree($opt->{state} = {}, $file);
	my $report = $opt->{report};
	$opt->{server_user} = value($tree, 'user', 'nobody');
	for my $server (servers($tree)) {
		my @blocks = file_blocks($server);
		$report->root(scalar root_of($_), where($_)) for @blocks;
		Accel::Check::NginxAuth::check_server($opt, $server, \@blocks);
		check_early($report, $_) for $server, locations($server);
		for my $block (@blocks) {
			next if is_internal($block) && !root_of($block);
			check_reads($report, $block);
			check_names($report, $block) unless has_module($block);
			check_listing($opt, $block);
			check_mount($opt, $block);
		}
		check_error_pages($opt, $server);
	}
	Accel::Check::NginxCache::check($opt, $tree);
}

# "if (-f ...)" asks the disk in the rewrite step.
sub check_early ($report, $block) {
	for my $if (kids($block, 'if')) {
		my $cond = join ' ', @{ $if->{args} };
		next unless $cond =~ /^\(\s*(!?)(-[fdex])\s/;
		my ($not, $test) = ($1, $2);
		$report->finding('if-file', 'blocks', $if, where($block),
			"\"$test\" asks the disk before auth_request runs, when the name is not warm yet",
			$not && $block->{name} eq 'location' && !own($block, 'try_files') ? else_location($if, $block)
			: { advice => 'try_files does the same after auth_request, when the name is in memory.' });
	}
}

# if (!-f $request_filename) { BODY }  says what  try_files $uri @name; location @name { BODY }  says.
sub else_location ($if, $block) {
	my $name = "\@not_a_file_$if->{line}";
	my $body = join '', map { "\t\t" . join(' ', $_->{name}, map { /[\s;{}]/ ? "\"$_\"" : $_ } @{ $_->{args} }) . ";\n" }
		grep { !$_->{kids} && $_->{name} ne 'break' } @{ $if->{kids} };
	return ({ replace => $if, to => $if->{close}, in => 'instead of these lines', text => "try_files \$uri $name;\n" },
		{ after => around($block, 'server'), in => 'in the server block', text => "location $name {\n" . $body =~ s/^\t//gmr . "}\n" });
}

# Reading and sending.
sub check_reads ($report, $block) {
	my $aio = effective($block, 'aio');
	$report->note('aio', $aio, where($block), 'aio threads: off beside the accelerator, unless files are longer than --warm; with it a hot file waits for a thread, too')
		if $aio && ($aio->{args}[0] // '') =~ /^threads/;
	if (my $d = effective($block, 'directio')) {
		$report->finding('directio', 'blocks', $d, where($block),
			'files of this size bypass the page cache, so making them warm does not help',
			{ replace => $d, in => 'instead of this line', text => "directio off;\n" }) if ($d->{args}[0] // '') ne 'off';
	}
}

# Checks names that nginx opens besides the requested one.
sub check_names ($report, $block) {
	for my $name (qw(ssi add_before_body add_after_body)) {
		my $d = effective($block, $name) or next;
		next if ($d->{args}[0] // '') =~ /^(?:off|)\z/;
		$report->finding('subrequest', 'blocks', $d, where($block),
			"$name makes subrequests, and nginx skips auth_request in these: the included files are opened cold",
			{ replace => $d, in => 'instead of this line', text => $name eq 'ssi' ? "ssi off;\n" : "# $name was here\n" });
	}
	for (['gzip_static', '.gz'], ['brotli_static', '.br'], ['zstd_static', '.zst']) {
		my ($name, $suffix) = @$_;
		my $d = effective($block, $name) or next;
		$report->note('siblings', $d, where($block), "$name opens FILE$suffix first: start fcgi-stat-accel with --siblings=$suffix")
			if ($d->{args}[0] // '') ne 'off';
	}
	if (my $try = own($block, 'try_files')) {
		my @more = @{ $try->{args} };
		pop @more;
		@more = grep { !m{^\$(?:uri|document_uri)/?\z} } @more;
		my @ends = map { m{^\$(?:uri|document_uri)(\.\w+)\z} ? $1 : () } @more;
		$report->note('try-files', $try, where($block), "@more asks for names that are not warm"
			. (@ends ? ': start fcgi-stat-accel with --siblings=' . join(',', @ends) : '')) if @more;
	}
	my $index = effective($block, 'index');
	my @names = $index ? grep { !m{^/|\$} } @{ $index->{args} } : 'index.html';
	$report->note('index', $index // $block, where($block), "a request for a directory looks for these names in it: start "
		. 'fcgi-stat-accel with --index=' . join(',', @names)) if @names;
}

# The module reads a directory in a thread; where each stat() asks another machine, nginx asks again.
sub check_listing ($opt, $block) {
	my $d = effective($block, 'autoindex') or return;
	return if ($d->{args}[0] // '') ne 'on';
	my $mount = mounted_on($opt, root_of($block) // '/') // { kind => '' };
	return if has_module($block) && $mount->{kind} !~ /^(?:network|fuse)\z/;
	$opt->{report}->finding('autoindex', 'blocks', $d, where($block),
		'a listing calls stat() for every name in the directory, in the event loop; no accelerator can make all of them warm',
		{ replace => $d, in => 'instead of this line', text => "autoindex off;\n" });
}

# Checks what depends on the mount of the files.
sub check_mount ($opt, $block) {
	my $report = $opt->{report};
	my $root = root_of($block) or return;
	my $mount = mounted_on($opt, $root) or return;
	my $kind = $mount->{kind};
	if ($kind =~ /^(?:network|fuse)\z/) {
		my $d = effective($block, 'open_file_cache');
		$report->finding('open-file-cache', 'breaks', $d, where($block),
			"open_file_cache keeps descriptors and sizes of files on $mount->{type} for " . value($block, 'open_file_cache_valid', '60s')
			. ': a file replaced on another host gives ESTALE or its old length',
			{ replace => $d, in => 'instead of this line', text => "open_file_cache off;\n" }) if $d && ($d->{args}[0] // '') ne 'off';
		$d = effective($block, 'disable_symlinks');
		$report->finding('disable-symlinks', 'blocks', $d, where($block),
			"disable_symlinks opens each directory of the path separately, and on $mount->{type} each open can ask the file server",
			{ replace => $d, in => 'instead of this line', text => "disable_symlinks off;\n" }) if $d && ($d->{args}[0] // '') ne 'off';
	}
	my $log = effective($block, 'access_log') // return;
	my ($name, @rest) = @{ $log->{args} };
	return if !slow_kind($kind) || ($name // '') !~ m{^/[^\$]*\z} || grep { /^(?:buffer|gzip)/ } @rest;
	my $disk = mounted_on($opt, $name);
	return if !$disk || $disk->{point} ne $mount->{point};
	my $why = "a line is written for every request, in the event loop, to the same $mount->{type} as the files";
	my $line = join(' ', 'access_log', $name, @rest ? @rest : 'combined', 'buffer=64k', 'flush=5s') . ";\n";
	# The kernel writes to a local disk later, so the line waits only for memory.
	if ($kind eq 'rotating') { $report->note('access-log', $log, where($block), "$why: buffer=64k flush=5s writes less often") }
	else { $report->finding('access-log', 'blocks', $log, where($block), $why, { replace => $log, in => 'instead of this line', text => $line }) }
}

# A page of error_page is a file like others; with "internal" and without auth_request it is never made warm.
sub check_error_pages ($opt, $server) {
	for my $loc (grep { own($_, 'internal') && serves($_) && ($_->{args}[0] // '') eq '=' } locations($server)) {
		my $uri = $loc->{args}[1] // next;
		my ($page) = grep { ($_->{args}[-1] // '') eq $uri } map { kids($_, 'error_page') } $server, locations($server);
		next if !$page || value($loc, 'auth_request', 'off') ne 'off' || has_module($loc);
		my $mount = mounted_on($opt, root_of($loc) // next) or next;
		next unless slow_kind($mount->{kind});
		$opt->{report}->finding('error-page', 'blocks', $page, where($loc),
			"each error opens a file on $mount->{type} in the event loop; its root belongs on a disk that is always warm",
			{ advice => "Copy $uri to a local disk and give this location a root there." });
	}
}

1;
