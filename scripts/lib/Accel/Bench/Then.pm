package Accel::Bench::Then;
# The figures of 2007, as they were published, beside which accel-bench prints today's.
#
#     my $then = Accel::Bench::Then::table('2007-cold-small');
#     say $then->{machine};
#     say $then->{rows}{'gthread-aio'}{mb_per_s};         # 15.04
#     say for @{ $then->{order} };                        # names of rows, in the order of the table
#
# `rows` are hashes with the keys of a result (Accel::Bench), `order` their names. A row that no program of today can stand for, LiteSpeed
# 3.0rc2, has figures of 2007 only. MByte are 10^6 bytes. The source is the series of benchmark posts on lighttpd.net, November 2006 to March 2007.
use v5.36;

my $B = 'February 2007: AMD64 3000+, 1 GB, Linux 2.6.16, RAID1 of 2 Seagate ST3160827AS; client AMD64 X2 4200+, Gigabit Ethernet';
my $A = 'November 2006: AMD64 3000+, 1 GB, Linux 2.6.16 Xen, the same disks; client Mac Mini, 100 Mbit/s';

# Name of a row, then one figure for each key.
sub rows ($keys, @rows) {
	my %row;
	for my $r (@rows) {
		my ($name, @figures) = @$r;
		@{ $row{$name} }{@$keys} = @figures;
	}
	return (rows => \%row, order => [map { $_->[0] } @rows]);
}

my %table = (
	'2007-cold-small' => { machine => $B, load => 'http_load, 100 parallel, 60 s, timeout 40; 100,000 files of 100 kB', rows([qw(mb_per_s requests_per_s)],
		['writev', 6.11, 59.77], ['linux-sendfile', 6.50, 63.62], ['posix-aio', 12.88, 125.75], ['gthread-aio', 15.04, 147.08],
		['linux-aio-sendfile', 15.56, 151.95], ['LiteSpeed writev', 4.35, 42.78], ['LiteSpeed sendfile', 5.49, 53.68],
		['Apache event', 15.04, 146.93]) },
	'2007-cold-large' => { machine => $B, load => 'http_load, 100 parallel, 60 s, timeout 40; 1,000 files of 10 MB', rows([qw(mb_per_s requests_per_s util user_sys)],
		['writev', 17.59, 2.35, 50, 25], ['linux-sendfile', 33.13, 3.77, 70, 30], ['posix-aio', 50.61, 5.69, 98, 60],
		['gthread-aio', 47.97, 5.51, 100, 50], ['linux-aio-sendfile', 44.15, 4.95, 90, 40], ['LiteSpeed sendfile', 22.18, 2.72, 65, 35],
		['Apache event', 42.81, 4.73, 95, 40]) },
	'2007-hot 100k' => { machine => $B, load => 'http_load, 100 MB of files in memory', rows([qw(mb_per_s requests_per_s server_cpu_percent)],
		['writev', 82.20, 802.71, 90], ['linux-sendfile', 70.27, 686.32, 56], ['gthread-aio', 75.39, 736.23, 98], ['posix-aio', 73.10, 713.88, 98],
		['linux-aio-sendfile', 31.32, 305.90, 35], ['Apache event', 70.28, 686.38, 60], ['LiteSpeed sendfile', 70.20, 685.65, 50]) },
	'2007-hot 10m' => { machine => $B, load => 'http_load, 100 MB of files in memory', rows([qw(mb_per_s requests_per_s server_cpu_percent)],
		['writev', 82.20, 8.76, 80], ['linux-sendfile', 53.95, 5.65, 40], ['gthread-aio', 83.02, 8.66, 90], ['posix-aio', 82.31, 8.60, 93],
		['linux-aio-sendfile', 70.17, 7.35, 60], ['Apache event', 50.92, 5.33, 40], ['LiteSpeed sendfile', 55.58, 5.80, 40]) },
	'2007-threads stat' => { machine => $B, load => 'gthread-aio, 100 kB, cold', rows(['mb_per_s'],
		['0', 8.55], ['1', 13.60], ['2', 14.18], ['4', 12.33], ['8', 12.62], ['12', 13.10], ['16', 12.71]) },
	'2007-threads read' => { machine => $B, load => 'gthread-aio, 100 kB, cold', rows(['mb_per_s'],
		['1', 6.83], ['2', 11.61], ['4', 13.02], ['8', 13.61], ['16', 13.81], ['32', 14.04], ['64', 14.87]) },
	'2007-stat-accel' => { machine => $B, load => 'http_load, 200 parallel, 60 s, 100 kB, cold', rows([qw(mb_per_s util wa us sy)],
		['none', 12.07, 81], ['fcgi-stat-accel tcp', 13.64, 99, 45.00, 9.20, 45.80], ['fcgi-stat-accel unix', 13.86, 99, 53.25, 8.19, 38.56],
		['threaded stat, 4 threads', 14.32, 99, 68.40, 5.00, 26.60]) },
	# The middle of the published lines of vmstat; "blocked" suggests that the two runs differed in concurrency as well.
	'2007-noatime' => { machine => $B, load => 'gthread-aio, vmstat 5', rows([qw(bi_per_s bo_per_s cs_per_s wa)],
		['on', 13062, 2, 6344, 66], ['off', 11020, 365, 1986, 33]) },
	'2007-november' => { machine => $A, load => 'http_load, 10,000 fetches, 100 parallel, 100 kB',
		rows([qw(seconds requests_per_s mb_per_s connect_p50_ms first_byte_p50_ms wa id)],
			['1.4 sendfile', 274.323, 36.4534, 3.73283, 51.78, 360.69, 82.52, 11.90], ['1.5 sendfile', 246.803, 40.5181, 4.14906, 55.58, 398.64, 82.55, 11.92],
			['1.5 linux-aio-sendfile', 137.551, 72.7004, 7.44452, 66.91, 226.18, 43.94, 43.26]) },
	'2007-november chunk' => { machine => $A, load => 'linux-aio-sendfile, 10 MB files, by the bytes read at a time', rows([qw(mb_per_s us sy wa id)],
		['1m', 52, 1.80, 46.20, 13.40, 38.60], ['768k', 55, 2.99, 56.37, 4.58, 36.06], ['512k', 58, 1.40, 62.67, 5.39, 30.54],
		['384k', 54, 5.18, 55.38, 1.99, 37.45], ['256k', 21, 21.00, 28.60, 0.80, 49.60], ['sendfile', 30, 1.20, 22.20, 71.00, 5.60]) },
	'2007-november siege' => { machine => $A, load => 'siege, one file of 700 MB, loopback', rows([qw(mb_per_s id)],
		['sendfile, 1', 52.38, 9], ['sendfile, 2', 39.94, 8], ['sendfile, 5', 35.45, 7], ['sendfile, 10'],
		['aio 512k, 1', 89.85, 70], ['aio 512k, 2', 94.52, 70], ['aio 512k, 5', 31.81, 86], ['aio 512k, 10', 25.22, 82],
		['aio 1m, 1', 107.50, 67], ['aio 1m, 2', 92.74, 70], ['aio 1m, 5', 72.84, 70], ['aio 1m, 10', 32.87, 90]) },
);

# undef for a table that 2007 did not have.
sub table ($name) { return $table{$name} }
sub names ()      { return sort keys %table }

1;
