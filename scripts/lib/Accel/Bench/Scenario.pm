package Accel::Bench::Scenario;
# The named runs of accel-bench: which cells, which columns, which table of 2007.
#
#     for my $name (Accel::Bench::Scenario::names()) { say "$name  ", Accel::Bench::Scenario::find($name)->{title} }
#     my $s = Accel::Bench::Scenario::find('2007-hot');
#     for my $group (@{ $s->{groups} }) { say "$group->{title}: ", scalar @{ $group->{cells}->() }, ' cells' }
#
# A scenario has `title`, `about`, `full` and `quick` (rounds and seconds), `groups`. A group is one table: `title`, `then` (its name in
# Accel::Bench::Then), `first` (the header of the first column), `columns` (keys of Accel::Bench::Table), `cells`, a function that returns
# cells, each with `label`, the name of its row.
use v5.36;
use Accel::Bench::Servers ();

my $SLOW = 'slowfs:2';
my %PEER = (nginx => 'nginx', 'nginx:aio' => 'nginx aio threads', 'nginx:directio' => 'nginx directio', lighttpd => 'lighttpd sendfile',
	'lighttpd:writev' => 'lighttpd writev', apache => 'Apache event', h2o => 'h2o');
# The rows of 2007 first, in their order.
my @OURS = qw(writev linux-sendfile posix-aio gthread-aio linux-aio-sendfile gthread-sendfile io-uring adaptive);

# Our backends and today's peers, each with these settings.  The matrix notes backends that this kernel lacks.
sub everyone (%cell) {
	return [(map { { %cell, server => "accel:$_", label => $_ } } @OURS),
		map { { %cell, server => $_, label => $PEER{$_} } } Accel::Bench::Servers::peers()];
}

sub threads ($which, $files, @counts) {
	return sub () {
		return [map { { server => 'accel:gthread-aio', storage => $SLOW, files => $files, concurrency => 100, "${which}_threads" => $_, label => "$_" } } @counts];
	};
}

sub stat_accel () {
	my %cell = (server => 'accel:gthread-aio', storage => $SLOW, files => '100k', concurrency => 200);
	return [{ %cell, stat_threads => 0, label => 'none' }, { %cell, stat_threads => 0, accel => 'tcp', label => 'fcgi-stat-accel tcp' },
		{ %cell, stat_threads => 0, accel => 'unix', label => 'fcgi-stat-accel unix' }, { %cell, stat_threads => 4, label => 'threaded stat, 4 threads' }];
}

sub noatime () {
	my %cell = (server => 'accel:gthread-aio', storage => 'ext4:2', files => '100k', concurrency => 64, atime => 1);
	return [{ %cell, noatime => 1, label => 'on' }, { %cell, noatime => 0, label => 'off' }];
}

sub november () {
	my %cell = (storage => $SLOW, files => '100k', concurrency => 100);
	return [{ %cell, server => 'lighttpd', label => '1.4 sendfile' }, { %cell, server => 'accel:linux-sendfile', label => '1.5 sendfile' },
		{ %cell, server => 'accel:linux-aio-sendfile', label => '1.5 linux-aio-sendfile' }];
}

my %CHUNK = ('1m' => 1_048_576, '768k' => 786_432, '512k' => 524_288, '384k' => 393_216, '256k' => 262_144);

sub chunks () {
	my %cell = (storage => $SLOW, files => '10m', concurrency => 100);
	return [(map { { %cell, server => 'accel:linux-aio-sendfile', read_ahead => $CHUNK{$_}, label => $_ } } qw(1m 768k 512k 384k 256k)),
		{ %cell, server => 'accel:linux-sendfile', label => 'sendfile' }];
}

sub siege () {
	my @how = (['sendfile', 'linux-sendfile'], ['aio 512k', 'linux-aio-sendfile', 524_288], ['aio 1m', 'linux-aio-sendfile', 1_048_576]);
	return [map { my ($name, $backend, $bytes) = @$_; map {
		{ server => "accel:$backend", storage => $SLOW, files => '1x700m', concurrency => $_, read_ahead => $bytes, label => "$name, $_" } } 1, 2, 5, 10 } @how];
}

# The two charts of 2007 each for 4 and 64 threads.  Clients that give up, and those at the end, leave a line with cut=1.
sub starvation () {
	return [map { my $threads = $_; map { my $k = $_; {
		server => 'accel:gthread-aio', storage => 'slowfs:16', files => '300x10m', concurrency => 100, fetches => 300, timing => 1, timeout => 4,
		read_threads => $threads, read_ahead => $k * 1024, label => "$threads threads, " . ($k == 1024 ? '1m' : "${k}k") } } 64, 1024 } 4, 64];
}

my @COLD = ('Names and bytes are cold: slowfs with 2 spindles, 6 ms for a name, 4 ms for 128 KiB, as the two disks of 2007 had.');

my @scenario = (
	{ name => '2007-cold-small', title => 'Cold disk, files of 100 kB', about => \@COLD, full => [3, 5], quick => [2, 2], groups => [
		{ title => '100 parallel', then => '2007-cold-small', first => 'server', columns => [qw(mb_per_s requests_per_s p99_ms util errors)],
			cells => sub () { everyone(storage => $SLOW, files => '100k', concurrency => 100) } }] },
	{ name => '2007-cold-large', title => 'Cold disk, files of 10 MB', full => [3, 6], quick => [2, 2],
		about => [@COLD, 'Transfers are cut by the clock, as then. req/s is MByte/s over the size of a file.'],
		groups => [{ title => '100 parallel', then => '2007-cold-large', first => 'server', columns => [qw(mb_per_s requests_per_s util user_sys errors)],
			cells => sub () { everyone(storage => $SLOW, files => '10m', concurrency => 100) } }] },
	{ name => '2007-hot', title => 'Files in memory', about => ['CPU is that of the server, in percent of one core.'], full => [3, 3], quick => [2, 1],
		groups => [map { { title => "$_->[1], 100 parallel", then => "2007-hot $_->[0]", first => 'server', columns => [qw(mb_per_s requests_per_s server_cpu_percent errors)],
			cells => do { my $files = $_->[0]; sub () { everyone(storage => 'hot', files => $files, concurrency => 100) } } } } ['100k', '100 kB'], ['10m', '10 MB']] },
	{ name => '2007-threads', title => 'Numbers of threads (gthread-aio, cold)', full => [3, 5], quick => [2, 1.5],
		about => [@COLD, 'A stat thread of today opens a file and reads its first 256 KiB, so files of 100 kB never meet a read thread.'], groups => [
			{ title => 'stat threads, 100 kB', then => '2007-threads stat', first => 'threads', columns => [qw(mb_per_s p50_ms p99_ms util)],
				cells => threads('stat', '100k', 0, 1, 2, 4, 8, 12, 16) },
			{ title => 'read threads, 100 kB', then => '2007-threads read', first => 'threads', columns => [qw(mb_per_s p50_ms p99_ms util)],
				cells => threads('read', '100k', 1, 2, 4, 8, 16, 32, 64) },
			{ title => 'read threads, 10 MB', first => 'threads', columns => [qw(mb_per_s util)], cells => threads('read', '10m', 1, 2, 4, 8, 16, 32, 64) }] },
	{ name => '2007-stat-accel', title => 'Stat acceleration (gthread-aio, 100 kB, cold)', full => [3, 5], quick => [2, 2],
		about => [@COLD, 'Without stat threads the event loop of today opens a file and reads its first 256 KiB; in 2007 read threads read it.'], groups => [
		{ title => '200 parallel', then => '2007-stat-accel', first => 'name', columns => [qw(mb_per_s util wa us sy)], cells => \&stat_accel }] },
	{ name => '2007-noatime', title => 'O_NOATIME (gthread-aio, 100 kB, cold)', full => [3, 5], quick => [2, 3],
		about => ['ext4 on 2 spindles, 4 ms for each request, mounted with strictatime and commit=1, which writes each second. bi and bo are those of this disk.'], groups => [
		{ title => '64 parallel', then => '2007-noatime', first => 'noatime', columns => [qw(bi_per_s bo_per_s cs_per_s wa mb_per_s)], cells => \&noatime }] },
	{ name => '2007-november', title => 'sendfile against linux-aio-sendfile', full => [3, 5], quick => [2, 1.5],
		about => [@COLD, 'The clients of one file share what the first of them brought into memory.'], groups => [
		{ title => '100 kB, 100 parallel', then => '2007-november', first => 'server', columns => [qw(requests_per_s mb_per_s first_byte_p50_ms wa id)], cells => \&november },
		{ title => 'chunk size, 10 MB, 100 parallel', then => '2007-november chunk', first => 'chunk', columns => [qw(mb_per_s us sy wa id)], cells => \&chunks },
		{ title => 'one file of 700 MB', then => '2007-november siege', first => 'how, parallel', columns => [qw(mb_per_s id)], cells => \&siege }] },
	{ name => 'starvation', title => 'Too few read threads (gthread-aio, 10 MB, cold)', full => [2, 25], quick => [1, 11],
		about => ['slowfs with 16 spindles, 4 ms for each read; 100 parallel. Threads are server.max-read-threads, bytes server.network-chunk-size.',
			'Each file is fetched once, or the clock ends the cell. Clients that starve give up. The time of a file is long when the disk is slow, even if no client starves.',
			'With --keep DIR the error log of each cell has a line of stage times for each file, also for those that were cut, for accel-graph.'], groups => [
		{ title => 'clients give up after 4 s without a byte', first => 'read threads, bytes',
			columns => [qw(mb_per_s timeouts first_byte_max_ms p50_ms max_ms util)], cells => \&starvation }] },
);

sub names ()      { return map { $_->{name} } @scenario }
sub find ($name)  { return (grep { $_->{name} eq $name } @scenario)[0] }

1;
