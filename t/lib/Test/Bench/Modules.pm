package Test::Bench::Modules;
# What everyday modules cost: rules that every request goes through, and compressed pages.
#
# `run($bench)` gives accel-server and lighttpd one and the same configuration with ten redirects, ten rewrites, five conditions and a
# rule of expire, and accel-server once more without it. Files of 1 kB are asked for under their own name, which no rule changes, and under
# one that the tenth rewrite changes. Then pages of 10 kB of text are asked for by clients that accept gzip: accel-server and lighttpd keep
# what they have compressed on disk, nginx compresses each reply, and once more finds a compressed file beside the page.
#
# The first reply of each server is compared with the file.
use v5.36;
use HTTP::Tiny;
use IO::Compress::Gzip ();
use IO::Uncompress::Gunzip ();
use Test::Bench::Hot;
use Test::Util qw(put slurp);

my $modules = 'server.modules += ( "mod_access", "mod_redirect", "mod_rewrite", "mod_setenv", "mod_expire" )';
my $rules = join "\n",
	'url.redirect = (' . join(', ', map { qq{"^/old$_/(.*)" => "/new$_/\$1"} } 1 .. 10) . ')',
	'url.rewrite-once = (' . join(', ', map { qq{"^/short$_/([a-z0-9]+)\$" => "/\$1.bin"} } 1 .. 10) . ')',
	'expire.url = ( "/" => "access plus 1 hours" )',
	(map { qq{\$HTTP["url"] =~ "^/area$_/" { expire.url = ( "" => "access plus $_ days" ) }} } 1 .. 3),
	'$HTTP["host"] =~ "^www\." { url.redirect = ( "^/(.*)" => "http://example.org/$1" ) }',
	'$HTTP["useragent"] =~ "badbot" { url.access-deny = ( "" ) }', '';
my $gzip = ['-H' => 'Accept-Encoding: gzip'];

our @cases = (
	{ name => 'rules', title => '1 kB, past all rules, keep-alive, 100 connections', path => '/1k.bin', servers => [qw(accel lighttpd alone)] },
	{ name => 'rewritten', title => '1 kB, rewritten by the tenth rule, 100 connections', path => '/short10/1k', servers => [qw(accel lighttpd)] },
	{ name => 'rules-1000', title => '1 kB, past all rules, 1000 connections', path => '/1k.bin', clients => 1000, servers => [qw(accel lighttpd alone)] },
	{ name => 'gzip', title => '10 kB of text as gzip, keep-alive, 100 connections', path => '/page.html', more => $gzip,
	  servers => ['accel', 'lighttpd', 'nginx', 'nginx beside'] },
);

sub servers ($dir) {
	mkdir "$dir/cache-$_" for qw(accel lighttpd);
	my $deflate = sub { qq{deflate.mimetypes = ( "text/html" )\ndeflate.allowed-encodings = ( "gzip" )\ndeflate.cache-dir = "$dir/cache-$_[0]"\nmimetype.assign := ( ".html" => "text/html" )\n} };
	my $load = qq{server.modules += ( "mod_deflate" )\n};
	return (
		{ kind => 'accel', name => 'accel', conf => $modules . "\n" . $load . $rules . $deflate->('accel') },
		{ kind => 'lighttpd', name => 'lighttpd', conf => $modules . "\n" . $load . $rules . $deflate->('lighttpd') },
		{ kind => 'accel', name => 'alone' },
		{ kind => 'nginx', name => 'nginx', http => 'gzip on; types { text/html html; }' },
		{ kind => 'nginx', name => 'nginx beside', http => 'gzip_static on; types { text/html html; }' },
	);
}

sub run ($bench) {
	my $root = $bench->files;
	pages($root);
	my %server = map { $_->{name} => start($bench, $_, $root) } grep { wanted($bench, $_) } servers($bench->dir);
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @cases);
	for my $case (@chosen) {
		my @able = able($bench, $case, $root, grep { $_ } @server{ @{ $case->{servers} } });
		my %runs;
		for my $round (1 .. $bench->opt('rounds')) {
			push @{ $runs{ $_->name } }, $bench->measure($_, $case->{path}, [load($case)]) for @able;
		}
		$bench->result->{hot}{ $case->{name} } = { map { $_ => $bench->summary(@{ $runs{$_} }) } keys %runs };
		Test::Bench::Hot::print_case($bench, $case, map { $_->name } @able);
	}
	print "\nAims\n";
	print_aims($bench, @chosen);
}

sub load ($case) { return (-c => $case->{clients} // 100, @{ $case->{more} // [] }) }

# Text as people write it: words that come again, in another order.
sub pages ($root) {
	my @words = map { my $n = $_; join '', map { chr(97 + ($_ * 7 + $n) % 26) } 1 .. 3 + $n % 7 } 1 .. 400;
	srand 2;
	my $page = "<!doctype html><title>page</title>\n";
	$page .= '<p class=text>' . join(' ', map { $words[rand @words] . int rand 50 } 1 .. 12) . "</p>\n" while length $page < 10_240;
	put("$root/page.html", substr $page, 0, 10_240);
	IO::Compress::Gzip::gzip("$root/page.html", "$root/page.html.gz") or die "page.html.gz\n";
}

sub wanted ($bench, $k) {
	return unless $bench->asked($k->{kind});
	my $why = Accel::Peer->missing($k->{kind}) // return 1;
	$bench->note("$k->{name} left out: $why");
	return;
}

sub start ($bench, $k, $root) {
	my $srv = eval { $bench->server($k, $root) } or $bench->note("$k->{name} left out: $@");
	return $srv;
}

# The servers that give the right bytes, after a warm-up.
sub able ($bench, $case, $root, @servers) {
	my @able;
	my $want = slurp($root . ($case->{path} =~ s{^/short10/(.*)}{/$1.bin}r));
	for my $srv (@servers) {
		my $r = HTTP::Tiny->new(timeout => 20)->get($srv->url . $case->{path}, { headers => $case->{more} ? { 'Accept-Encoding' => 'gzip' } : {} });
		my ($got, $packed) = ($r->{content}, ($r->{headers}{'content-encoding'} // '') eq 'gzip');
		IO::Uncompress::Gunzip::gunzip(\(my $in = $r->{content}), \$got) if $packed;
		if ($r->{status} != 200 || $got ne $want || $packed != !!$case->{more}) {
			$bench->note($srv->name . " left out of $case->{name}: status $r->{status}" . ($got ne $want ? ', wrong bytes' : $packed ? '' : ', not compressed'));
			next;
		}
		$bench->load(load($case), -d => 0.3, $srv->url . $case->{path});
		push @able, $srv;
	}
	return @able;
}

sub print_aims ($bench, @chosen) {
	my $of = $bench->result->{hot};
	for my $case (@chosen) {
		my $runs = $of->{ $case->{name} };
		my $ours = $runs->{accel} // next;
		for my $aim ($case->{name} eq 'gzip' ? (['lighttpd', 1.2], ['nginx', 3], ['nginx beside', 1.2]) : (['lighttpd', 1.3])) {
			my $theirs = $runs->{ $aim->[0] } // next;
			$bench->aim("$case->{name}: req/s / $aim->[0]", $ours->{rps} / $theirs->{rps}, '>=', $aim->[1], $ours, $theirs);
		}
	}
}

1;
