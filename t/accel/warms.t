#!/usr/bin/perl
# fcgi-stat-accel answers when a file is warm: from then on, opening and reading it needs no disk.  The test counts the
# requests to the disk and uses no clock.

use v5.36;
use Test::More;
use Test::Fcgi qw(put temp_tree request eventually);
use Accel::Slowfs;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;

my $K = 1024;
my $tree = temp_tree();
put("$tree/$_", 'x' x (3000 * $K)) for qw(long longer other range late);
put("$tree/short$_", 'x' x (100 * $K)) for 1 .. 9;
put("$tree/css", 'x' x 1000);
put("$tree/css.gz", 'x' x 500);
mkdir "$tree/dir" or die $!;
mkdir "$tree/bare" or die $!;
put("$tree/dir/second.html", 'x' x 100);
put("$tree/outside", 'x');
mkdir "$tree/root" or die $!;
put("$tree/root/file", 'x' x 1000);
symlink '../outside', "$tree/root/escape" or die $!;

my ($slow, $app);

sub up (@options) {
	$slow = Accel::Slowfs->start(source => "$tree", spindles => 8, lookup_ms => 5, read_ms => 5);
	$app = Test::Fcgi->start('-t', 4, '--remember=0', @options);
}

sub down {
	is $app->stop, 0, 'it ends with 0';
	unlike $app->log_text, qr/level=(error|alert)/, 'without an error in its log';
	$slow->stop;
}

sub path { return $slow->dir . "/$_[0]" }
sub status ($name, @more) { return $app->ask(REQUEST_METHOD => 'GET', SCRIPT_FILENAME => path($name), @more)->{status} }

# The requests that this code makes to the disk.
sub disk :prototype(&) ($code) {
	my $before = $slow->counts;
	$code->();
	my $after = $slow->counts;
	return { map { $_ => $after->{$_} - $before->{$_} } qw(lookups reads) };
}

sub slurp ($name, $from = 0, $len = 1e9) {
	open my $h, '<:raw', path($name) or return undef;
	sysseek $h, $from, 0;
	my $bytes = '';
	1 while $len > length $bytes and sysread $h, $bytes, 64 * $K, length $bytes;
	return length $bytes;
}

# A kernel that takes memory back all the time (DAMON's pageout) may take pages between the answer and the look.  So for long files the
# reads before the answer count.  A short file is tried again from the beginning: a file that was never made warm fails each time.
use constant { ALL => 24, TRIES => 10 };        # reads of 3000 KiB

sub is_read ($what, $name, $status = 200) {
	my $asked = disk { is status($name), $status, $what };
	cmp_ok $asked->{reads}, '>=', ALL, '... all of it was read before the answer';
}

sub is_warm ($what, $ask, $look) {
	my $asked;
	for (1 .. TRIES) {
		$ask->();
		$asked = disk { $look->() };
		last if !grep { $_ } values %$asked;
		$slow->forget;
	}
	is_deeply $asked, { lookups => 0, reads => 0 }, "$what: no look-up, no read";
}

subtest 'a file is in memory when the answer comes' => sub {
	up('--warm=read:16m', '--behind=none');
	is_read('a long file', 'long');
	is slurp('long'), 3000 * $K, 'all bytes';
	is_warm("short file $_", sub { status("short$_") }, sub { slurp("short$_") }) for 1 .. 3;
	down();
};

subtest 'only the requested part is read' => sub {
	up('--warm=stat');
	is disk { is status('long'), 200, 'stat' }->{reads}, 0, 'reads nothing';
	is_warm('the name is there', sub { status('long') }, sub { stat path('long') });
	down();
	up('--warm=open');
	is disk { is status('long'), 200, 'open' }->{reads}, 0, 'reads nothing';
	down();
	up('--warm=read:256k', '--behind=none');
	is_warm('read:256k', sub { status('long') }, sub { slurp('long', 0, 256 * $K) });
	my $asked = disk { is status('other'), 200, 'read:256k' };
	cmp_ok $asked->{reads}, '<=', 4, 'reads two blocks of 128 KiB, and each once more if the kernel took it back';
	down();
};

subtest 'a range is warmed where it begins' => sub {
	up('--warm=read:256k', '--behind=none');
	is_warm('a range', sub { status('range', HTTP_RANGE => 'bytes=2000000-') }, sub {
		open my $h, '<:raw', path('range') or die $!;
		sysseek $h, 2_000_000, 0;
		sysread $h, my $buf, 200 * $K;
	});
	down();
};

# 3000 KiB are 24 blocks of the disk.  The default reads all of them, before the answer or after it.
subtest 'windows that are not sent are not read' => sub {
	up();
	is disk { is $app->ask(REQUEST_METHOD => 'HEAD', SCRIPT_FILENAME => path('long'))->{status}, 200, 'HEAD' }->{reads}, 0, 'reads nothing';
	is disk { is status('long', HTTP_RANGE => 'bytes=1000000-1000000'), 200, 'one byte' }->{reads}, 1, 'reads the block it is in';
	is disk { is status('longer', HTTP_RANGE => 'bytes=-1'), 200, 'the last byte' }->{reads}, 1, 'reads the block it is in';
	cmp_ok disk { is status('other', HTTP_RANGE => 'bytes=0-0,1000000-1000000,-1'), 200, 'three bytes' }->{reads}, '<=', 4,
	    'reads the first window and two blocks';
	my $so_far = $slow->counts->{reads};
	is status('late', HTTP_RANGE => 'bytes=0-0', HTTP_IF_RANGE => '"tag"'), 200, 'one byte of a version that may be gone';
	is $slow->counts->{reads} - $so_far, 24, 'reads the whole file, and nothing has been read after the others';
	down();
};

# Reads after 1 MiB hang.
subtest 'auto:threads answers at the turn of a file' => sub {
	up('--warm=auto:threads');
	$slow->hang_after(1 << 20);
	is status('longer'), 200, 'a long file is answered although it cannot be read';
	ok eventually(sub { $slow->counts->{reads} > 0 }), 'it is being read';
	$slow->go;
	ok eventually(sub { $slow->counts->{reads} >= ALL }), 'all of it is read without a further request';
	is_warm("short file $_", sub { status("short$_") }, sub { slurp("short$_") }) for 1 .. 3;
	down();
};

subtest 'auto answers when all of a file is there' => sub {
	up('--warm=auto', '--deadline=2500', '--mode=auth', '--late=503');
	$slow->hang_after(1 << 20);
	is status('longer'), 503, 'a long file that cannot be read is not answered before the deadline';
	$slow->go;
	is_read('one that can is', 'other', 204);
	down();
};

subtest 'the rest of a file is read after the answer' => sub {
	up('--warm=read:256k', '--behind=all');
	is status('longer'), 200, 'answered';
	ok eventually(sub { $slow->counts->{reads} >= ALL }), 'all of it is read without a further request';
	down();
	up('--warm=read:256k', '--behind=512k');
	is status('longer'), 200, 'answered';
	ok eventually(sub { $slow->counts->{reads} >= 6 }), '512 KiB more';
	is status('other', SERVER_NAME => 'x'), 200, 'another file';
	ok eventually(sub { $slow->counts->{reads} >= 12 }), '512 KiB more of that';
	is $slow->counts->{reads}, 12, 'and that was all';
	down();
	up('--warm=open', '--behind=256k');
	is status('longer'), 200, 'answered when it is open';
	ok eventually(sub { $slow->counts->{reads} >= 2 }), 'the start comes after that';
	down();
};

subtest 'equal requests wait for one read' => sub {
	up('--warm=read:1m', '--remember=60000');
	my $asked = disk {
		$slow->hang;
		my @c = map { my $c = $app->connect; $c->send(request(1, 0, SCRIPT_FILENAME => path($_))); $c } ('short4', 'none') x 10;
		ok $slow->wait_hanging(2), 'they hang';
		is $slow->hanging, 2, 'as two look-ups';
		$slow->go;
		is_deeply [map { $_->reply->{status} } @c], [(200, 404) x 10], 'one answer for ten';
	};
	is $asked->{lookups}, 2, 'the disk was asked for two names';
	is disk { is status('none'), 404, 'what is not there' }->{lookups}, 0, 'is remembered';
	$slow->forget;
	is disk { is status('none'), 404, 'and so it is' }->{lookups}, 0, 'when the kernel has forgotten it';
	is disk { is status('short4'), 200, 'as is a file' }->{lookups}, 0, 'that was found';
	down();
};

subtest 'index files and siblings are warmed' => sub {
	up('--index=first.html,second.html', '--siblings=.gz,.br', '--warm=read:64k');
	is status('dir/'), 200, 'a directory with an index';
	is_warm('which is there', sub { status('dir/') }, sub { slurp('dir/second.html') });
	is status('dir'), 200, 'without its slash';
	is status('bare/'), 403, 'a directory without one';
	is status('nodir/'), 404, 'no directory';
	is status('css'), 200, 'a file with a sibling';
	is_warm('both are there, and what is not there is known', sub { status('css') }, sub { slurp($_) for qw(css css.gz css.br) });
	down();
};

subtest 'files outside the roots are not read' => sub {
	$slow = Accel::Slowfs->start(source => "$tree", spindles => 8, lookup_ms => 5, read_ms => 5);
	$app = Test::Fcgi->start('-t', 4, '--root', $slow->dir . '/root');
	is status('root/file'), 200, 'below the root';
	is status('root/escape'), 403, 'a link that leaves it';
	is status('outside'), 403, 'beside it';
	is status('root/none'), 404, 'not there';
	down();
};

done_testing;
