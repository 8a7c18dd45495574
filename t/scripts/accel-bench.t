# accel-bench: cells and options are judged, figures are added up, a tiny matrix runs with servers, a command and a URL.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Accel::Bench ();
use Accel::Bench::Charts   ();
use Accel::Bench::Run      ();
use Accel::Bench::Scenario ();
use Accel::Bench::Servers  ();
use Accel::Bench::Storage  ();
use Accel::Bench::Table    ();
use Accel::Bench::Then     ();
use Accel::Peer ();
use Test::Util qw(put slurp temp_tree);

my $script = "$FindBin::Bin/../../scripts/accel-bench";
my $dir = temp_tree();

sub reason ($code) { return eval { $code->(); 1 } ? 'no error' : $@ =~ s/\n.*//sr }

subtest 'names of servers' => sub {
	my $parse = \&Accel::Bench::Servers::parse;
	is_deeply $parse->('accel:writev'), { kind => 'accel', name => 'accel:writev', backend => 'writev' }, 'a backend of ours';
	is $parse->('accel')->{backend}, 'adaptive', 'the default backend';
	is_deeply $parse->(q{command:srv  -p {port} "a b" $HOME;ls})->{command}, ['srv', '-p', '{port}', 'a b', '$HOME;ls'],
	    'a command is split into words, nothing is expanded';
	is $parse->('url:http://[::1]:80/a/')->{url}, 'http://[::1]:80/a', 'a URL';
	like reason(sub { $parse->($_) }), qr/^no server "\Q$_\E"; there are: accel accel:BACKEND nginx /, "not $_" for 'iis', 'accel:a b', 'url:ftp://x', 'nginx:', 'command:';
	like reason(sub { $parse->('command:a "b') }), qr/the quotes do not match/, 'an open quote';
	is Accel::Bench::Servers::missing('accel:nothing') =~ s/;.*//r, 'no such backend', 'a backend that is not here';
	is Accel::Bench::Servers::missing('command:/no/such/program'), 'no program "/no/such/program"', 'a command that is not here';
	is Accel::Bench::Servers::missing('h2o', 'unix'), 'no fcgi-stat-accel for h2o', 'no accelerator for this server';
	is Accel::Bench::Servers::missing('url:http://127.0.0.1/', 'none'), undef, 'a URL needs no program';
};

subtest 'configurations are fair' => sub {
	my %conf = map { $_ => Accel::Bench::Servers::configuration($_, '/srv/a', 3) } qw(accel:writev nginx nginx:directio lighttpd:writev apache h2o);
	like $conf{'nginx'}, qr/worker_processes 3;.*access_log off;.*sendfile on;.*open_file_cache max/s, 'nginx';
	like $conf{'nginx:directio'}, qr/aio threads; directio 512;/, 'nginx with directio';
	like $conf{'lighttpd:writev'}, qr/network-backend = "writev".*max-worker = 3/s, 'lighttpd';
	like $conf{apache}, qr/ServerLimit 3.*MaxRequestWorkers 1200/s, 'Apache';
	like $conf{h2o}, qr/num-threads: 3.*file.dir: "\/srv\/a"/s, 'h2o';
	like $conf{'accel:writev'}, qr/max-worker = 3.*network-backend = "writev"/s, 'ours';
	my $quoted = Accel::Peer->sample('h2o', root => 'a"b\\c')->configuration;
	like $quoted, qr/file\.dir: "a\\"b\\\\c"/, 'a root with quotes';
	like +Accel::Peer->sample('nginx', root => '/a; b')->configuration, qr/root "\/a; b";/, 'a root with a space';
	mkdir "$dir/$_" or die $! for 'a" b', 'a$b';
	like reason(sub { Accel::Peer->start('accel', root => "$dir/$_") }), qr/cannot name a directory/, "no configuration with $_" for 'a" b', 'a$b';
};

subtest 'storages and file sets' => sub {
	is_deeply [Accel::Bench::Storage::parse('slowfs:7')], ['slowfs', 7], 'spindles';
	is_deeply [Accel::Bench::Storage::parse('ext4')], ['ext4', 2], 'two by default';
	is_deeply [Accel::Bench::Storage::parse_set('1000x100k')], [1000, 102_400], 'a set with a number';
	is_deeply [Accel::Bench::Storage::parse_set('10m')], [undef, 10_485_760], 'a set without';
	like reason(sub { Accel::Bench::Storage::parse($_->[0]) }), $_->[1], "not $_->[0]" for ['tape', qr/^no storage "tape"; there are: hot /],
	    ['slowfs:65', qr/expected 1 to 64 spindles/], ['slowfs:0', qr/expected 1 to 64/], ['hot:2', qr/hot has no spindles/];
	like reason(sub { Accel::Bench::Storage::parse_set($_->[0]) }), $_->[1], "not $_->[0]" for ['100kb', qr/expected SIZE or COUNTxSIZE/],
	    ['0x1k', qr/expected 1 to 1000000 files/], ['1000001x1k', qr/expected 1 to 1000000 files/], ['5g', qr/at most 4g/], ['0', qr/at most 4g/];
};

subtest 'cells' => sub {
	my $bench = Accel::Bench->new(rounds => 1, seconds => 0.3);
	my $c = $bench->complete({ server => 'accel', backend => 'writev', stat_threads => 0 });
	is_deeply [@$c{qw(server backend storage files concurrency accel timeout stat_threads)}], ['accel:writev', 'writev', 'hot', '100k', 100, 'none', 60, 0], 'defaults';
	ok !exists $c->{read_threads}, 'what is not set is not there';
	for ([{ concurrency => 0 }, qr/^concurrency: expected 1 to 10000, got "0"/], [{ stat_threads => '4;rm' }, qr/^stat-threads: expected 0 to 1024/],
		[{ read_ahead => 2_000_000 }, qr/^read-ahead: expected 4096 to 1048576/], [{ accel => 'sctp' }, qr/^accel: expected none, tcp or unix/]) {
		like reason(sub { $bench->complete($_->[0]) }), $_->[1], "not $_->[1]";
	}
	like $bench->left_out({ server => 'command:/no/such' }), qr/no program/, 'why a cell is left out';
	like $bench->left_out({ server => "url:http://127.0.0.1:1/", accel => 'unix' }), qr/no accelerator/, 'and this one';
	my $m = $bench->machine;
	ok $m->{cores} >= 1 && $m->{kernel} && $m->{versions}{accel}, 'the machine';
};

subtest 'figures' => sub {
	my $report = { mb_per_s => 12.5, requests_per_s => 100, answered => 200, latency_us => { p50 => 1500, p90 => 2000, p99 => 9000, max => 12_000 },
		first_byte_us => { p50 => 700, max => 3000 }, requests => 203, errors => { all => 3, timeout => 3 } };
	my $f = Accel::Bench::figures($report, 0.5, 2, { cs => 10, bi => 20, bo => 30, us => 1, sy => 2, id => 90, wa => 7 }, { util => 99 });
	is_deeply [@$f{qw(mb_per_s requests p50_ms p99_ms max_ms first_byte_p50_ms first_byte_max_ms cpu_us server_cpu_percent cs_per_s bi_per_s wa)}], [12.5, 203, 1.5, 9, 12, 0.7, 3, 2500, 25, 10, 20, 7], 'units';
	my $none = Accel::Bench::figures({ mb_per_s => 0, requests_per_s => 0, answered => 0 }, undef, 2, undef, undef);
	is_deeply [@$none{qw(p50_ms cpu_us server_cpu_percent cs_per_s)}], [undef, undef, undef, undef], 'what is not known is undef';
	my $sum = Accel::Bench::summed({ server => 'a', rounds => [map { { requests_per_s => $_, cpu_us => undef, errors => { all => 1, timeout => $_ },
		disk => { util => $_ / 2 } } } 10, 30, 20] });
	is_deeply $sum->{median}, { requests_per_s => 20, cpu_us => undef, errors => { all => 3, timeout => 60 }, disk => { util => 10 } }, 'medians; errors add up';
	is $sum->{spread_percent}, 50, 'half of the range';
	is join(' ', map { join '', Accel::Bench::rotated($_, 1, 2, 3) } 0 .. 3), '123 231 312 123', 'each round begins with another cell';
};

subtest 'a kept log has a line for each request' => sub {
	my $log = File::Temp->new;
	print $log "network_x.c.1: (trace) write-start: $_\nev=write-starts\n" for 1 .. 3;
	$log->flush;
	is Accel::Bench::await_lines($log->filename, 3), 3, 'they are there';
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		select undef, undef, undef, 0.3;
		syswrite $log, "{\"write-start\":4}\n";
		POSIX::_exit(0);
	}
	is Accel::Bench::await_lines($log->filename, 4), 4, 'the last one comes later';
	waitpid $pid, 0;
	is Accel::Bench::await_lines("$log.none", 1), undef, 'a server that writes none is not waited for without end';
	my @cells = map { @{ $_->{cells}->() } } @{ Accel::Bench::Scenario::find('starvation')->{groups} };
	is_deeply [map { $_->{label} =~ s/[^\w.-]+/-/gr } @cells], [qw(4-threads-64k 4-threads-1m 64-threads-64k 64-threads-1m)], 'the names of the logs of starvation';
};

subtest 'load' => sub {
	is join(' ', Accel::Bench::load_args({ concurrency => 5, timeout => 4, seconds => 2.5, storage => 'slowfs:2' }, { list => 'l', at_most => 7 })),
	    '-c 5 --silence 4 -u l -n 7 -d 10', 'this many files, and an end';
	is join(' ', Accel::Bench::load_args({ concurrency => 5, timeout => 4, seconds => 2, storage => 'hot' }, { list => 'l', count => 7 })), '-c 5 --silence 4 -u l -d 2', 'by the clock';
	is join(' ', Accel::Bench::load_args({ concurrency => 5, timeout => 4, seconds => 2, storage => 'evict' }, { list => 'l', count => 7 })), '-c 5 --silence 4 -u l -n 7 -d 2', 'each file once';
};

subtest 'a matrix out of lists' => sub {
	my ($g) = Accel::Bench::Run::groups(undef, { server => ['accel', 'nginx'], concurrency => [1, 10], noatime => [1] }, { timeout => 4 });
	is join(', ', map { $_->{label} } @{ $g->{cells} }), 'accel 1, accel 10, nginx 1, nginx 10', 'rows are named by what varies';
	is_deeply $g->{cells}[3], { server => 'nginx', concurrency => 10, noatime => 1, timeout => 4, label => 'nginx 10' }, 'a cell';
	like reason(sub { Accel::Bench::Run::groups(undef, { map { $_ => [1 .. 30] } qw(server concurrency read_threads) }, {}) }), qr/^more than 10000 cells/, 'a bound';
};

subtest 'scenarios and 2007' => sub {
	my $bench = Accel::Bench->new(rounds => 1, seconds => 1);
	for my $name (Accel::Bench::Scenario::names()) {
		my $s = Accel::Bench::Scenario::find($name);
		my @groups = Accel::Bench::Run::groups($s, {}, {});
		my @cells = map { @{ $_->{cells} } } @groups;
		ok !(grep { !defined $_->{label} || !eval { $bench->complete($_) } } @cells), "$name: " . @cells . ' cells that can be' or diag $@;
		for my $g (@groups) {
			ok !(grep { !Accel::Bench::Table::known($_) } @{ $g->{columns} }), "$g->{title}: columns";
			my $then = Accel::Bench::Then::table($g->{then} // next);
			my %row = map { $_->{label} => 1 } @{ $g->{cells} };
			is_deeply [grep { !$row{$_} && !/LiteSpeed/ } @{ $then->{order} }], [], 'all rows of 2007 are measured again';
			ok !(grep { !Accel::Bench::Table::known($_) } map { keys %$_ } values %{ $then->{rows} }), 'figures of 2007 have columns';
		}
	}
	is Accel::Bench::Then::table('2007-cold-small')->{rows}{'linux-aio-sendfile'}{mb_per_s}, 15.56, 'a figure';
};

subtest 'tables' => sub {
	my $then = Accel::Bench::Then::table('2007-threads stat');
	my @rows = map { { label => $_, spread_percent => 2, median => { mb_per_s => 10 + $_, disk => { util => 97.4 }, errors => {} } } } 0, 2;
	my @lines = split /\n/, Accel::Bench::Table::text('threads', ['mb_per_s', 'util', 'errors'], $then, @rows);
	is $lines[1], '  threads  MByte/s  util %  +-%  |  MByte/s', 'a column without errors is left out';
	is $lines[2], '  0          10.00      97    2  |     8.55', 'today and 2007';
	is $lines[4], '  1                              |    13.60', 'only 2007';
	is index($lines[0], '2007'), index($lines[1], '|') + 3, 'the word above';
	is Accel::Bench::Table::label({ label => "a\e[2Jb\n" }), 'a?[2Jb?', 'names do not reach the terminal as they are';
	my ($head, $line) = split /\r\n/, Accel::Bench::Table::csv({ label => 'a "b", c', server => 'nginx', median => { mb_per_s => 1.5 }, spread_percent => 0, rounds => [1] });
	like $head, qr/^table,label,server,/, 'CSV';
	like $line, qr/^,"a ""b"", c",nginx,.*,1\.5,/, 'quotes and commas';
};

subtest 'charts' => sub {
	my $cell = sub ($label, %more) { return { label => $label, table => 'a', server => 'accel', spread_percent => 1, median => { mb_per_s => 5 }, %more } };
	my @points = Accel::Bench::Charts::points({ then => '2007-threads stat' }, map { $cell->($_, stat_threads => $_) } 0, 3, 4);
	is join(', ', map { "$_->{label} $_->{stat_threads} $_->{median}{mb_per_s}" } @points), 'today 0 5, today 3 5, today 4 5, 2007 0 8.55, 2007 4 12.33', 'two curves';
	is_deeply [map { join ' ', sort keys %$_ } Accel::Bench::Charts::points({}, map { $cell->($_) } 'a', 'b')], [('label median spread_percent') x 2], 'bars';
	@points = Accel::Bench::Charts::points({}, $cell->('x', concurrency => 1, server => 'a'), $cell->('y', concurrency => 2, server => 'b'));
	is join(' ', sort keys %{ $points[0] }), 'concurrency median server spread_percent', 'curves by what varies';
};

# accel-bench with these words: its status and what it printed.
sub run (@words) {
	open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', $^X, $script, @words or die "accel-bench: $!";
	my $said = do { local $/; <$fh> } // '';
	close $fh;
	return ($? >> 8, $said);
}

subtest 'wrong options' => sub {
	for (['--rounds=0', qr/rounds: expected 1 to 100, got "0"/], ['--seconds=0.01', qr/seconds: expected 0\.2 to/], ['--server=iis', qr/no server "iis"/],
		['--noatime=maybe', qr/--noatime: expected on or off/], ['no-such', qr/no scenario "no-such"; there are: 2007-cold-small /],
		['--dir=/no/such', qr/--dir: no directory/], ['--concurrency=0', qr/concurrency: expected 1 to 10000/], ['--nonsense', qr/unknown option: nonsense/i]) {
		my ($status, $said) = run($_->[0]);
		is $status, 64, "$_->[0] is refused";
		like $said, $_->[1], 'with the reason';
	}
	my ($status, $said) = run('--concurrency', 5, '2007-hot');
	like $said, qr/^accel-bench: a scenario has settings of its own; leave out --concurrency;/, 'no axes beside a scenario';
};

subtest 'what can be asked' => sub {
	is scalar(() = (run('--list'))[1] =~ /^\S/mg), scalar(Accel::Bench::Scenario::names()), 'a line for each scenario';
	run('--print-config', '--server', 'h2o', '--keep', "$dir/new/logs", '--charts', "$dir/new/charts");
	ok -d "$dir/new/$_", "$_: the directory is made" for qw(logs charts);
	my ($status, $said) = run('--list', '--keep', '/dev/null/logs');
	is $status, 73, 'one that cannot be made';
	like $said, qr{^accel-bench: --keep: cannot make the directory "/dev/null/logs": .*directory}m, '... with the reason';
	like ((run('--print-config', '--server', 'h2o,command:x {port}'))[1], qr/^# h2o\n.*num-threads: 1.*^# command:x \{port\}\nx 8080\n/ms, 'configurations');
};

# A server for one request after the other: perl tiny.pl PORT ROOT; with a third word its bytes are wrong.
put("$dir/tiny.pl", <<'END');
use v5.36;
use IO::Select;
use IO::Socket::INET;
my ($port, $root) = @ARGV;
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 100, ReuseAddr => 1) or die "listen: $!\n";
my $body = sub ($name) { open my $fh, '<:raw', "$root$name" or return ''; local $/; $ARGV[2] ? 'x' x -s $fh : <$fh> };
my $all = IO::Select->new($listener);
while (1) {
	for my $s ($all->can_read) {
		if ($s == $listener) { $all->add($listener->accept); next }
		if (sysread $s, my $head, 4096) { my $b = $body->((split ' ', $head)[1]); syswrite $s, "HTTP/1.1 200 OK\r\nContent-Length: " . length($b) . "\r\n\r\n$b" }
		else { $all->remove($s); close $s }
	}
}
END

subtest 'a tiny matrix, with a command' => sub {
	my @servers = ('accel', Accel::Peer->missing('nginx') ? () : 'nginx', "command:$^X '$dir/tiny.pl' {port} {root}");
	my ($status, $said) = run('-r', 1, '-d', 0.3, '--files', '4x1k', '--concurrency', 4, (map { ('--server', $_) } @servers, 'command:/no/such', "$servers[-1] wrong"),
		'--charts', "$dir", '--json', "$dir/result.json", '--csv', "$dir/result.csv", '--keep', "$dir");
	is $status, 0, 'it ends well' or diag $said;
	like $said, qr{^# left out or noted: command:/no/such left out: no program "/no/such"$}m, 'what cannot run is noted';
	like $said, qr{wrong left out: command:.*: 4 of 4 answers have wrong bytes$}m, 'and so is who sends wrong bytes';
	my $r = JSON::PP::decode_json(slurp("$dir/result.json"));
	is_deeply [map { $_->{label} } @{ $r->{rows} }], \@servers, 'a row for each server';
	for my $row (@{ $r->{rows} }) {
		my $m = $row->{median};
		ok $m->{requests_per_s} > 0 && $m->{cpu_us} > 0 && $m->{p99_ms} > 0 && defined $m->{sy}, "$row->{server}: figures";
		is $m->{errors}{all}, 0, 'no errors';
		is scalar @{ $row->{rounds} }, 1, 'one round';
	}
	is_deeply [sort keys %$r], [sort qw(scenario title about machine started seconds rounds rows tables then notes)], 'what the JSON has';
	is scalar(split /\r\n/, slurp("$dir/result.csv")), 1 + @servers, 'CSV has a line for each';
	ok -e "$dir/accel.log", 'the error log is kept';
	is JSON::PP::decode_json(slurp("$dir/matrix.json"))->{rows}[0]{label}, 'accel', 'what accel-graph draws';
	ok -s "$dir/matrix-sweep.png", 'a chart' if Accel::Util::find_program('gnuplot');
};

subtest 'a command that forks away' => sub {
	put("$dir/daemon", <<~'EOT');
		use v5.36;
		use IO::Socket::INET;
		use POSIX ();
		if (fork) { sleep 60; exit }
		POSIX::setsid();
		exit if fork;
		$SIG{TERM} = 'IGNORE' if $ARGV[2];
		my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[1], Listen => 5) or die;
		open my $fh, '>', $ARGV[0] or die;
		print $fh $$;
		close $fh;
		sleep 1 while 1;
		EOT
	for my $ends (0, 1) {                   # is the first process gone before?
		my $peer = Accel::Peer->start('command', root => "$dir", command => [$^X, "$dir/daemon", "$dir/daemon.pid", '{port}', $ends]);
		my $pid;
		for (1 .. 1000) { last if $pid = slurp("$dir/daemon.pid"); select undef, undef, undef, 0.02 }
		ok $pid && kill(0 => $pid), 'it runs in a session of its own';
		kill KILL => $peer->pid if $ends;
		$peer->stop;
		ok !kill(0 => $pid), '... and ends with the others, even if it ignores TERM';
		unlink "$dir/daemon.pid";
	}
};

subtest 'a server that runs' => sub {
	put("$dir/one.bin", 'x' x 5000);
	my $peer = Accel::Peer->start('accel', root => "$dir");
	my ($status, $said) = run('-r', 1, '-d', 0.3, '--concurrency', 2, '--server', 'url:' . $peer->url . '/one.bin', '--json', "$dir/url.json");
	is $status, 0, 'it is measured' or diag $said;
	put("$dir/urls", "/one.bin\n/tiny.pl\n");
	is +(run('-r', 1, '-d', 0.2, '--server', 'url:' . $peer->url, '--urls', "$dir/urls", '--json', "$dir/no/such"))[0], 73, 'a file that cannot be written';
	my $row = JSON::PP::decode_json(slurp("$dir/url.json"))->{rows}[0];
	ok $row->{median}{requests_per_s} > 0, 'its figures';
	is $row->{median}{cpu_us}, undef, 'its processor time is not known';
};

done_testing;
