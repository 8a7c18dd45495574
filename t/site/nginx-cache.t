# nginx's own cache as examples/nginx/cache.conf sets it up: the accelerator makes the file warm that nginx opens.
use v5.36;
use File::Find ();
use Test::App;
use Test::More;
use Test::Site;
use Test::Site::Checks;
use Test::Util qw(eventually slurp);

Test::Site->need('nginx');

my $tree = tree();
my $www = "$tree/www";
my $app = Test::App->start;
chmod 0755, "$app->{dir}";
chmod 0777, $app->socket;

# nginx with the example. Its origin is one more server block of the same nginx. $change->(text) changes more.
sub start {
	my ($change) = @_;
	return Test::Site->start('nginx', 'cache.conf', root => $www, edit => sub {
		my ($text) = @_;
		my ($origin) = $text =~ /proxy_pass\s+http:\/\/(127.0.0.1:\d+)/ or die 'no proxy_pass';
		$text =~ s{unix:\S+/app\.sock}{"unix:" . $app->socket}e;
		$text =~ s{^(?=\tserver \{)}{\tserver { listen $origin; root $www; }\n}m or die 'no server';
		return $change ? $change->($text) : $text;
	});
}

# The names of all files in a cache.
sub files ($site, $cache) {
	my @found;
	File::Find::find({ no_chdir => 1, wanted => sub { push @found, $File::Find::name if -f } }, "$site->{dir}/$cache");
	return sort @found;
}

# [path, bytes] of each look-up since the last call; 0 bytes where nothing was found.
sub looked_up ($site) {
	my @lines;
	eventually(sub { @lines = $site->timing; @lines >= $site->asked }, 20);
	splice @lines, 0, $site->{told} // 0;
	$site->{told} += @lines;
	return [map { [@$_{qw(path bytes)}] } @lines];
}

sub cached { my ($r) = @_; return "$r->{status} " . ($r->{header}{'x-cache-status'} // '-') }

subtest 'proxy_cache: miss, hit, removed' => sub {
	my $site = start();
	my $body = slurp("$www/100k.bin");
	my $r = $site->get('/100k.bin');
	is cached($r), '200 MISS', 'the first request is a miss';
	ok $r->{body} eq $body, '... with its bytes';
	my ($file) = my @all = files($site, 'pages');
	is scalar @all, 1, '... and a file in the cache';
	is_deeply looked_up($site), [[$file, 0]], '... for which the accelerator looked in vain';

	$r = $site->get('/100k.bin');
	is cached($r), '200 HIT', 'the second request is a hit';
	ok $r->{body} eq $body, '... with its bytes';
	is_deeply looked_up($site), [[$file, -s $file]], '... for which the accelerator read the file with its head';
	cmp_ok -s $file, '>', length $body, '... which is longer than the answer';

	$r = $site->get('/100k.bin', Range => 'bytes=70000-70009');
	is cached($r), '206 HIT', 'a part of it';
	ok $r->{body} eq substr($body, 70_000, 10), '... has its bytes';
	is cached($site->head('/100k.bin')), '200 HIT', 'HEAD';
	is_deeply looked_up($site), [([$file, -s $file]) x 2], '... both asked';

	is cached($site->get('/100k.bin?a=b')), '200 MISS', 'a query belongs to the key';
	my ($other) = grep { $_ ne $file } files($site, 'pages');
	is_deeply looked_up($site), [[$other, 0]], '... also for the accelerator';

	unlink $file or die "$file: $!";
	$r = $site->get('/100k.bin');
	is cached($r), '200 MISS', 'one whose file was removed is fetched again';
	ok $r->{body} eq $body, '... with its bytes';
	is $site->complaints, '', 'nothing is in the log';
};

subtest 'proxy_cache: expired' => sub {
	my $site = start(sub { $_[0] =~ s/proxy_cache_valid 200 10m/proxy_cache_valid 200 1s/r });
	is cached($site->get('/one.txt')), '200 MISS', 'a miss';
	my ($file) = files($site, 'pages');
	my $size = -s $file;
	my $r;
	ok eventually(sub { cached($r = $site->get('/one.txt')) eq '200 EXPIRED' }, 20), 'after a second it is fetched again';
	is $r->{body}, slurp("$www/one.txt"), '... with its bytes';
	my @found = @{ looked_up($site) };
	is_deeply [grep { $_->[0] ne $file } @found], [], 'the accelerator looked for this file only';
	is $found[-1][1], $size, '... and made the expired one warm, which nginx opens first';
};

subtest 'fastcgi_cache, chosen by WARM_CACHE' => sub {
	my $site = start();
	my $r = $site->get('/app/env?x');
	is cached($r), '200 MISS', 'a miss';
	my ($file) = files($site, 'app');
	like $file, qr{/app/([0-9a-f]{2})/([0-9a-f]{2})/[0-9a-f]{28}\2\1\z}, 'a file in two levels of two digits';
	is_deeply [files($site, 'pages')], [], '... in the second cache';
	my $again = $site->get('/app/env?x');
	is cached($again), '200 HIT', 'a hit';
	is $again->{body}, $r->{body}, '... with its bytes';
	is_deeply looked_up($site), [[$file, 0], [$file, -s $file]], 'the accelerator looked for it twice';
	is $site->complaints, '', 'nothing is in the log';
};

subtest 'the key that nginx makes without proxy_cache_key' => sub {
	my $site = start(sub {
		my ($text) = @_;
		$text =~ s/\n\s+proxy_cache_key.*//;
		$text =~ s{WARM_CACHE_KEY \K\$scheme\$host}{http://origin};
		my ($origin) = $text =~ m{proxy_pass\s+http://([\d.:]+)} or die 'no proxy_pass';
		$text =~ s{proxy_pass\s+http://\K[\d.:]+}{origin};
		return $text =~ s{^(?=\tserver \{)}{\tupstream origin { server $origin; }\n}mr;
	});
	$site->get('/one.txt');
	my ($file) = files($site, 'pages');
	is_deeply looked_up($site), [[$file, 0]], 'is URL and host of proxy_pass, then $request_uri';
};

subtest 'what varies' => sub {
	my $site = start(sub { $_[0] =~ s/root \S+;\K/ add_header Vary X-Kind; add_header X-Is \$http_x_kind;/r });
	is $site->get('/one.txt', 'X-Kind' => $_)->{header}{'x-is'}, $_, "kind $_" for qw(a b a b);
	is scalar(my @all = files($site, 'pages')), 2, 'two variants are two files';
	my %size = map { $_->[0] => $_->[1] } @{ looked_up($site) };
	is_deeply [sort map { -s } keys %size], [values %size], 'the accelerator knows the one that was stored first';
	is cached($site->get('/one.txt', 'X-Kind' => 'b')), '200 HIT', 'nginx serves the other one';
};

subtest 'slices, with a key that "set" makes' => sub {
	my $site = start(sub {
		my ($text) = @_;
		my $key = '$uri$is_args$args$slice_range';
		$text =~ s/proxy_cache_key\s+\K\S+;/$key; slice 64k; proxy_set_header Range \$slice_range; proxy_cache_valid 206 10m; set \$warm_key $key;/;
		$text =~ s/WARM_CACHE_KEY\s+\K\S+;/\$warm_key;/;
		return $text;
	});
	my $body = slurp("$www/100k.bin");
	for my $want ('MISS', 'HIT') {
		my $r = $site->get('/100k.bin');
		is cached($r), "200 $want", "$want of the first slice";
		ok $r->{body} eq $body, '... and all bytes';
	}
	my %size = map { $_ => -s } files($site, 'pages');
	is scalar keys %size, 2, 'two slices are two files';
	my @looked = @{ looked_up($site) };
	is scalar @looked, 2, 'one question for each answer';
	is $looked[1][1], $size{ $looked[1][0] }, 'a slice is made warm';
	cmp_ok $looked[1][1], '>', 65_536, '... the first one';
};

subtest 'a cache that --nginx-cache does not name' => sub {
	my $site = start(sub { $_[0] =~ s/set \$warm_cache \Kpages/other/r });
	is cached($site->get('/one.txt')), '200 MISS', 'nginx serves';
	ok eventually(sub { $site->{app}->said =~ /ev=cache\.unknown .*WARM_CACHE=other/ }, 20), 'the log of the accelerator names it';
	$site->stop_accel;
	is cached($site->get('/one.txt')), '200 HIT', 'nginx serves without the accelerator';
};

done_testing;
