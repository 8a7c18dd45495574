# make demo: its table tells what was measured, it leaves nothing behind, however it ends, and says what is missing.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use File::Temp ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep time);
use Test::Demo::Chart;
use Accel::Peer;
use Accel::Slowfs;
use Test::Util qw(slurp);

my $demo  = "$FindBin::Bin/../../scripts/demo";
my $build = $ENV{B} // 'build';

# ---------------------------------------------------------------- figures

my @rows = map { {
	server => 'nginx', spindles => $_, disk_mb => 5.12 * $_,
	before => { alone_p99 => 0.2, p50 => 300, p99 => 1200, worst => 1234, asked => 200, answered => 190, mb => 4.6, errors => 0 },
	after => { alone_p99 => 0.2, p50 => 0.08, p99 => 1, worst => 12.34, asked => 200, answered => 200, mb => 4.9 * $_, errors => 0 },
} } 2, 16;

subtest 'the table shows what was measured' => sub {
	is join(' ', map { Test::Demo::Chart::figure($_) } 0.0812, 1.234, 12.34, 1234), '0.08 1.23 12.3 1234', 'three digits';
	my $table = Test::Demo::Chart::table(\@rows);
	like $table, qr/^16 spindles\n  nginx +before +0\.20 +300 +>1200 +>1234 +95 % +4\.6 +6 %\n +after +0\.20 +0\.08 +1\.00 +12\.3 +100 % +78\.4 +96 %\n/m,
	    'a row before, a row after; requests without an answer are longer than they are old';
	my $bars = Test::Demo::Chart::bars(\@rows, width => 80);
	my %bar = $bars =~ /(before|after) +(#+) >?[\d.]+$/mg;
	is length($bar{before}), int(0.5 + 42 * log(12_000) / log 100_000), 'a bar as long as the power of ten';
	is length($bar{after}), int(0.5 + 42 / 5), '... and one of 1 ms, a fifth of five decades';
	is scalar(grep { length > 80 } split /\n/, $bars), 0, 'no line is wider than the terminal';
	unlike $bars, qr/[^\n\x20-\x7e]/, 'plain unless asked for more';
	like Test::Demo::Chart::bars(\@rows, width => 80, colour => 1, unicode => 1), qr/\e\[31m\x{2588}+\e\[0m >1200/, 'in colour if asked';
	my $script = Test::Demo::Chart::gnuplot_script([map { { %$_, server => 'nginx, proxy_cache' } } @rows], 'x.png');
	like $script, qr/^set terminal pngcairo .* noenhanced .*^"nginx\\nproxy_cache" /ms, 'names in the picture: "_" is a letter, and long ones take two lines';
	my $page = Test::Demo::Chart::page(\@rows, title => 'a <b>', story => ['one & two'], lines => { nginx => ['x;'] });
	is_deeply [$page =~ /(<title>.*?<\/title>)/g], ['<title>a &#60;b&#62;</title>'], 'text in the page is text';
	is scalar(() = $page =~ /<rect /g), 8, 'two bars and two worst ones for each row';
	unlike $page, qr/(?:src|href)=/, 'and it needs nothing else';
};

# ---------------------------------------------------------------- runs

# What the demo makes lies below a directory of ours; so do the names in the command lines of all that it starts.
sub traces ($tmp) {
	my @left = grep { /\Q$tmp\E/ } split /\n/, slurp('/proc/self/mounts');
	for my $proc (glob '/proc/[0-9]*') {
		my $command = slurp("$proc/cmdline") =~ tr/\0/ /r;
		push @left, "$proc: $command" if $command =~ /\Q$tmp\E/;
	}
	opendir my $dh, $tmp or die "$tmp: $!";
	return @left, grep { !/^\.\.?$/ } readdir $dh;
}

# Runs it: exit status and what it said. $while->(pid of its process group, directory) is called while it does.
sub run_demo ($tmp, $before, $while, @args) {
	my $said = File::Temp->new;
	my $pid = fork // die "fork: $!";
	if (!$pid) {
		setpgrp;
		@ENV{qw(TMPDIR B LC_ALL COLUMNS)} = ($tmp, $build, 'C', 80);
		open STDIN, '<', '/dev/null';
		open STDOUT, '>&', $said;
		open STDERR, '>&', $said;
		{ no warnings; exec @$before, $^X, $demo, @args }
		POSIX::_exit(127);
	}
	my $watchdog = time + 120;
	$while->($pid, $tmp);
	while (waitpid($pid, POSIX::WNOHANG()) == 0) {
		kill KILL => -$pid if time > $watchdog;
		sleep 0.05;
	}
	my $status = $? >> 8;
	return ($status, slurp("$said"));
}

sub scratch () { return File::Temp->newdir('demo-test-XXXXXX', TMPDIR => 1) }
sub nothing { return }

my @here = grep { !Accel::Peer->missing($_) } qw(nginx lighttpd);
my ($fuse, $no_fuse) = Accel::Slowfs->usable;
my $why_not = !-x "$build/bin/accel-load" ? 'no accel-load (make)' : !@here ? 'neither nginx nor lighttpd is installed' : $fuse ? undef : $no_fuse;

# Speeds depend on the load of the machine.  That the figures belong together does not.
sub is_sane ($alone, $p50, $p99, $worst, $answered, $, $mb, $of_disk, $) {
	my ($low, $mid, $high) = map { s/>//r } $p50, $p99, $worst;
	ok $alone > 0 && $low > 0 && $low <= $mid && $mid <= $high, "$p50 <= $p99 <= $worst ms";
	ok $answered =~ /^\d+$/ && $answered <= 100, "$answered % answered";
	ok $mb > 0 && $of_disk =~ /^\d+$/, "$mb MB/s, $of_disk % of the disk";
	return;
}

subtest 'a short run prints its table' => sub {
	plan skip_all => $why_not if $why_not;
	my ($tmp, $out) = (scratch(), scratch());
	my ($status, $said) = run_demo("$tmp", [], \&nothing, '--seconds', 0.6, '--spindles', 16, '--output', "$out");
	is $status, 0, 'exit status 0' or diag $said;
	my @row = map { [split] } $said =~ /^ .*?(?:before|after) +(.*%)$/mg;      # p99 alone, p50, p99, worst, answered %, MB/s, of disk %
	my $nginx = grep { $_ eq 'nginx' } @here;
	my $module = $nginx && -e Test::Util::nginx_module() ? 1 : 0;
	is scalar @row, 2 * (@here + 2 * $nginx + $module), 'two rows for each server' or diag $said;
	is scalar(() = $said =~ /^  nginx, module +before +\d.*\n +after +\d/mg), $module, 'two for the module of nginx, if it is built' or diag $said;
	is scalar(() = $said =~ /^  nginx, proxy_cache +before +\d.*\n +after +\d/mg), $nginx, 'two for the cache of nginx' or diag $said;
	while (my ($before, $after) = splice @row, 0, 2) {
		is_sane(@$before);
		is_sane(@$after);
	}
	like $said, qr/^    stat_accel unix:/m, '... and its lines' if $module;
	like $said, qr/auth_request \/stat-accel;/, 'the lines for nginx' if grep { $_ eq 'nginx' } @here;
	like $said, qr/"mode" => "authorizer"/, 'the lines for lighttpd' if grep { $_ eq 'lighttpd' } @here;
	unlike $said, qr/[\e\r]/, 'no terminal, no progress, no colour';
	like slurp("$out/demo.html"), qr/<svg.*<\/svg>.*<table>/s, 'a page with drawings';
	SKIP: {
		skip 'gnuplot is not installed', 1 unless grep { -x "$_/gnuplot" } split /:/, $ENV{PATH};
		like slurp("$out/demo.png"), qr/\A\x89PNG\r\n/, 'a PNG';
	}
	is_deeply [traces("$tmp")], [], 'no mount, no process, no file is left';
};

# As a terminal does it: the whole process group gets the signal.
subtest 'Ctrl-C leaves nothing mounted' => sub {
	plan skip_all => $why_not if $why_not;
	my $tmp = scratch();
	my $interrupt = sub ($pid, $dir) {
		my $patience = time + 30;
		my @left;
		do { sleep 0.02; @left = traces($dir) } until time > $patience || "@left" =~ /fcgi-stat-accel/ && "@left" =~ /accel-load .*\.list/;
		is scalar(grep { /fuse\.slowfs|bin\/slowfs/ } @left) > 1, 1, 'in the middle there are a mount and its slowfs' or diag "@left";
		kill INT => -$pid;
	};
	my ($status, $said) = run_demo("$tmp", [], $interrupt, '--seconds', 2, '--spindles', 2, '--server', $here[0]);
	is $status, 130, 'exit status 130' or diag $said;
	like $said, qr/^demo: stopped$/m, 'it says so';
	my $patience = time + 5;                # a keeper ends after the one it watches
	sleep 0.05 while time < $patience && traces("$tmp");
	is_deeply [traces("$tmp")], [], 'no mount, no process, no file is left';
};

subtest 'a machine without FUSE gets a message' => sub {
	plan skip_all => 'no refuse (make rigs)' unless -x "$build/bin/refuse" && -x "$build/bin/slowfs" && -x "$build/bin/accel-load";
	my $tmp = scratch();
	my ($status, $said) = run_demo("$tmp", ["$build/bin/refuse", 'mount=EPERM', '--'], \&nothing);
	is $status, 69, 'exit status 69';
	like $said, qr/^demo: .*(?:fuse|slow disk).*: |^demo: .*\/dev\/fuse/mi, 'it says what is missing';
	like $said, qr/--device \/dev\/fuse|apt-get install fuse3/, '... and what to do';
	is_deeply [traces("$tmp")], [], 'nothing is left';
};

subtest 'wrong options exit with 64' => sub {
	for my $case (['--seconds', '0.1'], ['--spindles', 0], ['--server', 'iis'], ['--storage', 'floppy'], ['now']) {
		my $tmp = scratch();
		my ($status, $said) = run_demo("$tmp", [], \&nothing, @$case);
		is $status, 64, "@$case" or diag $said;
		like $said, qr/^demo: .*(?:--seconds|--spindles|iis|floppy|now)/m, '... is named';
	}
};

done_testing;
