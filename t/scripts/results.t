# doc/RESULTS.md and README.md: one set of figures, made by one command.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../scripts/lib";
use Test::More;
use Test::Results ();
use Test::Util qw(slurp);

my $root = "$FindBin::Bin/../..";
my ($readme, $results, $template) = map { scalar slurp("$root/$_") } qw(README.md doc/RESULTS.md doc/RESULTS.md.in);

subtest 'README.md quotes doc/RESULTS.md' => sub {
	my ($quoted, $measured) = map { Test::Results->marked($_) } $readme, $results;
	is_deeply [sort keys %$quoted], [qw(accel machine)], 'README.md has one table of results, and the machine';
	for my $name (sort keys %$quoted) {
		is $quoted->{$name}, $measured->{$name}, "$name: the same table in both; 'make results' writes them";
	}
};

subtest 'doc/RESULTS.md is made of its template' => sub {
	my $block = Test::Results->marked($results);
	is_deeply [grep { !defined $block->{$_} } qw(hot accel fcgi asking cold pressure)], [], 'the tables of today';
	my ($text, @missing) = Test::Results->fill($template, $block);
	is "@missing", '', 'each table was measured';
	is $text, $results, 'nothing was written into it by hand';
};

# A figure of a measurement that README.md or a document without tables names in a sentence: a number with one of these units.  What is not a measurement: settings and
# facts, which stand in code or have other units.
subtest 'sentences of the documents name no other figures' => sub {
	my $prose = join "\n", $readme, map { slurp("$root/doc/$_.md") } qw(accelerator production server);
	$prose =~ s/^<!-- ([\w-]+) -->\n.*?^<!-- \/\1 -->$//gms;
	$prose =~ s/^(?:    .*\n)+//gm;
	$prose =~ s/`[^`]*`//g;
	my $measured = join "\n", values %{ Test::Results->marked($results) }, $results;
	my @figures = $prose =~ /(?<![\w.,])((?:\d[\d.,]*\d|\d)(?: to \d[\d.,]*)? (?:µs|MB\/s|GB\/s|kB each|req\/s))/g;
	for my $figure (@figures) {
		like $measured, qr/(?<![\d.,])\Q$figure\E/, "\"$figure\" stands in doc/RESULTS.md";
	}
	pass 'as many as there are' unless @figures;
};

subtest 'blocks and templates' => sub {
	my ($text, @missing) = Test::Results->fill("a\n\@one\@\nb \@two\@\n\@three\@\n", { one => "| 1 |\n" });
	is $text, "a\n<!-- one -->\n| 1 |\n<!-- /one -->\nb \@two\@\n<!-- three -->\n(not measured)\n<!-- /three -->\n", 'only whole lines are places';
	is "@missing", 'three', 'what was not measured is named';
	is_deeply Test::Results->marked($text), { one => "| 1 |\n", three => "(not measured)\n" }, 'found again';
	is Test::Results->replace($text, { one => "| 2 |\n" }), $text =~ s/1 \|/2 |/r, 'replaced, and the others kept';
};

subtest 'figures have three digits' => sub {
	is Test::Results::Tables::number($_->[0]), $_->[1], $_->[1]
	    for [199_123, '199,000'], [75.312, '75.3'], [0.3771, '0.377'], [9.996, '10.0'], [999.6, '1,000'], [1_846_123, '1,850,000'], [0, '0'], [undef, '-'];
};

subtest 'tables' => sub {
	my $runs = sub { my %m = @_; return { map { $_ => { rps => $m{$_}, cpu => 5, mb => $m{$_} / 1000 } } keys %m } };
	my $block = Test::Results::Tables->blocks({ hot => { hot => { '1k' => $runs->(accel => 200_000, nginx => 100_000, lighttpd => 160_000, floor => 300_000) } },
		idle => { idle => { map { $_ => { kb_each => 0.5 } } qw(accel nginx lighttpd) } } });
	is_deeply [sort keys %$block], ['hot'], 'blocks whose steps were run';
	like $block->{hot}, qr/^\| 1 kB, keep-alive \| 200,000 req\/s \| \*\*2\.00\*\* \| \*\*1\.25\*\* \| 5\.00, 5\.00, 5\.00, 5\.00 \|$/m, 'ratios are to ours';
	is scalar(() = $block->{hot} =~ /^\|/mg), 4, 'a row for each case that was measured';

	my $cell = sub { return { alone_p99 => 0.25, p99 => 0.5, slept_ms => 21.94, cold_mb => 71.6, answered_pc => 49.75, cold_stuck => 20, @_ } };
	my $of = { map { my $disk = $_; $disk => { adaptive => $cell->(), apache => $cell->(slept_ms => undef, answered_pc => 100, cold_stuck => 0) } } qw(slow hung) };
	my $pressure = Test::Results::Tables->blocks({ pressure => { pressure => { '50 %' => $of } } })->{pressure};
	like $pressure, qr/^\| accel-server, `adaptive` \| 0\.250 \| \*\*0\.500\*\* \| 21\.9 \| 71\.6 \| \*\*50 %\*\* \| 0\.500 \| 21\.9 \| 20 \|$/m, 'memory that is short';
	like $pressure, qr/^\| Apache, event \| 0\.250 \| 0\.500 \| - \| 71\.6 \| 100 % \| 0\.500 \| - \| 0 \|$/m, '... and a server without a loop';

	my $waits = sub ($alone, $p99) { return { alone => $alone, p99 => $p99 } };
	my $tls = Test::Results::Tables->blocks({ tls => { tls => {
		'new-rsa' => { accel => { cpu => 1367 }, nginx => { cpu => 1355.2 }, lighttpd => { cpu => 1400 }, h2o => {} },
		'flood-2048-one' => { accel => $waits->(212, 270), nginx => $waits->(200, 8615), lighttpd => $waits->(210, 420_900), h2o => $waits->(300, 559_900) },
		cold => { accel => { alone_p99 => 250, p99 => 262 }, 'accel-plain' => { alone_p99 => 240, p99 => 251 }, nginx => { alone_p99 => 240, p99 => 4_000_000 } } } } })->{tls};
	like $tls, qr/^\| \.\.\. RSA 2048 \| 1,370 \| 1,360 \| 1,400 \| - \| \*\*1\.01\*\* \|$/m, 'what TLS costs';
	like $tls, qr/^\| \.\.\. RSA 2048, one address \| 0\.212, \*\*0\.270\*\* \| 0\.200, \*\*8\.62\*\* \| 0\.210, \*\*421\*\* \| 0\.300, \*\*560\*\* \| - \|$/m, 'who waits for handshakes';
	like $tls, qr/^\| 16 clients of cold files \| 0\.250, \*\*0\.262\*\* \| 0\.240, \*\*4,000\*\* \| - \| - \| 0\.240, \*\*0\.251\*\* \|$/m, '... and for cold files';

	my $cpu = sub { my %m = @_; return { map { $_ => { cpu => $m{$_} } } keys %m } };
	my $http2 = Test::Results::Tables->blocks({ http2 => { http2 => { '10k-10-100-clear' => $cpu->(accel => 6, nginx => 15, lighttpd => 5), '1k-100-1-tls' => $cpu->(accel => 3, nginx => 9, h2o => 2.5) },
		fair => { accel => { alone_p99 => 140, p99 => 150, served => 1000, cold_mb => 9.5 }, nginx => { alone_p99 => 144, p99 => 2_915_000, served => 16.7, cold_mb => 3 } } } })->{http2};
	like $http2, qr/^\| 1 kB, TLS: 100 × 1 \| 3\.00 \| 9\.00 \| - \| 2\.50 \| \*\*1\.20\*\* \| \*\*0\.33\*\* \|\n\| 10 kB, in clear: 10 × 100 \| 6\.00 /m, 'what HTTP\/2 costs';
	like $http2, qr/^\| nginx \| 0\.144 \| 2,920 \| 16\.7 \| 3\.00 \|\n\z/m, 'who waits for cold streams';
	my $floods = Test::Results::Tables->blocks({ floods => { floods => { 'h2-ping' => { accel => { alone => 300, p99 => 310, errors => 0, before_mib => 4.6, peak_mib => 12, after_mib => 4.7, said => 'GOAWAY x 9' } } } } })->{floods};
	like $floods, qr/^\| `h2-ping` \| 0\.300 \| \*\*0\.310\*\* \| 0 \| 4\.60, 12\.0, 4\.70 \| GOAWAY x 9 \|\n\z/m, 'what an attack does';
};

is_deeply [grep { !Test::Results->seconds($_) } Test::Results->steps], [], 'each step says how long it takes';
cmp_ok Test::Results->seconds, '<=', 39 * 60, 'all of them take less than 40 minutes';
like `$^X $root/scripts/results --only nothing 2>&1`, qr/^results: no step "nothing"; there are: hot idle /m, 'an unknown step';

done_testing;
