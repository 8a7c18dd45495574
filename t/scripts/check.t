# accel-check: files that it refuses, usage, its report as text, kinds of disks, the examples.
use v5.36;
use Test::More;
use Cwd qw(abs_path);
use JSON::PP ();
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::Check;

# Seconds of all children that have ended: a busy machine makes these no more.
sub cpu () { return (times)[2] + (times)[3] }

my %LOOP = (nginx => "include loop.conf;\n", lighttpd => "include \"loop.conf\"\n", apache => "Include loop.conf\n");

for my $server (sort keys %LOOP) {
	my $refused = sub ($what, $text, $why, $line) {
		my $file = ref $text ? $$text : write_file("loop.conf", $text);
		my $before = cpu();
		my ($status, $said) = run($check, $server, $file);
		is $status, 2, "$server: $what is refused" or diag $said;
		like $said, qr/\Aaccel-check: \Q$file\E(?::$line)?: .*$why.*\n\z/, 'in one line that says where';
		cmp_ok cpu() - $before, '<', 60, 'and without much work';
	};
	my $open = $server eq 'apache' ? "DocumentRoot /a\nAlias \"/b\n" : $server eq 'nginx' ? "worker_processes 1;\nuser \"a;\n" : "server.port = 1\nserver.tag = \"a\n";
	$refused->('a quote that does not end', $open, 'quote', 2);
	$refused->('a loop', "\n$LOOP{$server}", 'includes itself', 2);
	$refused->('a binary', "\n\n\x7fELF\0\1", 'zero byte', 3);
	$refused->('10 MB', "# a\n" x 2_600_000, 'larger than', 1);
	my @list = $server eq 'nginx' ? ('a ', 'b ', ';') : $server eq 'apache' ? ('A ', 'b ', '"') : ('a = (', '1,', '1)');
	$refused->('a line of 8 million letters', "# x\n$list[0]" . $list[1] x (8_000_000 / length $list[1]) . $list[2], $server eq 'apache' ? 'grows' : 'words', 2);
	my $long = 'x' x 900_000;
	my (undef, $read) = run($check, $server, write_file('loop.conf', $server eq 'nginx' ? "a \"$long\" '$long' $long;\nb \"" : $server eq 'apache' ? "A \"$long\"\nB \"" : "a = \"$long\"\nb = \""));
	like $read, qr/\Aaccel-check: \S+:2: a quote.*\n\z/, "$server: a word of a million letters is not a problem";
	my $grow = $server eq 'apache' ? "Define A0 aaaaaaaaaa\n" . join('', map { "Define A$_ \"" . "\${A@{[$_ - 1]}}" x 10 . "\"\n" } 1 .. 20)
		: "var.a = \"aaaaaaaaaa\"\n" . "var.a = a + a + a + a + a + a + a + a + a + a\n" x 20;
	$refused->('a value that doubles', $grow, 'grows', qr/[67]/) if $server ne 'nginx';    # nginx has no such thing
	$refused->('nothing', \"$dir/not-there", 'No such file', '');
	$refused->('a directory', \"$dir/www", 'directory', '');
	$refused->('an include that is not there', $LOOP{$server} =~ s/loop/gone/r, 'gone.conf', 1);
	my $deep = $server eq 'nginx' ? "a {\n" x 9999 : $server eq 'apache' ? "<A>\n" x 9999 : "\$HTTP[\"url\"] == \"\" {\n" x 9999;
	$refused->('a block in a block in a block', $deep, '.', qr/\d+/);
	my ($status, $said) = run($check, $server, write_file('loop.conf', $server eq 'apache' ? "# a\n" x 1_500_000 : "# a\n" x 1_500_000));
	is $status, 2, "$server: 6 MB are read" or diag $said;
}

for my $case (['{', 'unexpected'], ["a;\n}", 'unexpected "}"', 2], ["http {\n", 'not closed'], ['a', 'not ended'], ["a_by_lua_block {\n'", 'does not end']) {
	my ($text, $why, $line) = @$case;
	my (undef, $said) = run($check, 'nginx', write_file('nginx.conf', $text));
	like $said, qr/^accel-check: \Q$dir\E\/nginx.conf:@{[$line \/\/ 1]}: .*\Q$why\E/, 'nginx: ' . $text =~ s/\n/\\n/gr;
}
for my $case (['a = ', 'missing'], ["\$HTTP[\"url\"] == \"a\" {\n", 'not closed'], ["a = (\n1\n", 'list'], ['$HTTP["x"] {', 'comparison'], ['} else', 'not expected'], ['a = 1 )', 'not expected'], ['a ! 1', 'cannot be read']) {
	my ($text, $why) = @$case;
	my (undef, $said) = run($check, 'lighttpd', write_file('lighttpd.conf', $text));
	like $said, qr/^accel-check: \Q$dir\E\/lighttpd.conf:\d+: .*\Q$why\E/, 'lighttpd: ' . $text =~ s/\n/\\n/gr;
}
for my $case (["<A>\n", 'not closed'], ["</A>\n", 'without'], ["<A\n", "'>'"], ["<A>\n</B>\n", 'without <B>']) {
	my ($text, $why) = @$case;
	my (undef, $said) = run($check, 'apache', write_file('apache.conf', $text));
	like $said, qr/^accel-check: \Q$dir\E\/apache.conf:\d+: .*\Q$why\E/, 'apache: ' . $text =~ s/\n/\\n/gr;
}

# ---------------------------------------------------------------- usage and text

for my $args ([], ['nginx'], ['caddy', 'x'], ['--socket=a b', 'nginx', 'x'], ['--root=www', 'nginx', 'x'], ['--nonsense', 'nginx', 'x']) {
	my ($status, $said) = run($check, @$args);
	is $status, 64, "usage: @$args";
	like $said, qr/\Aaccel-check: .*--help.*\n\z/, 'in one line';
}

subtest 'the text report names file, line, kind and place' => sub {
	my $file = write_file('nginx.conf', nginx("\t\tlocation \"/\e[2J\" {\n\t\t}\n\t\tlocation / {\n\t\t}\n") =~ s/\@DIR\@\/www/$dir\/nfs/r =~ s/\@DIR\@/$dir/gr);
	my ($status, $said) = run($check, @COMMON, '--socket', '127.0.0.1:9000', 'nginx', $file);
	is $status, 1, 'findings';
	like $said, qr/^\Q$file\E:19: blocks: no-auth-request: server a\.example, location \/\n/m, 'file, line, kind, place';
	like $said, qr/^ +auth_request \/stat-accel;\n/m, 'what to add';
	is scalar(() = $said =~ /fastcgi_pass 127\.0\.0\.1:9000;/g), 1, 'once, with the address that was given';
	like $said, qr/ as above\./, 'and a word where it is wanted again';
	like $said, qr/^ +\Q$dir\E\/nfs \(nfs4, network\): /m, 'where the files lie';
	like $said, qr/^2 findings: 2 blocks\n\z/m, 'how many';
	my (undef, $json) = run($check, @COMMON, '--json', 'nginx', write_file('nginx.conf', "http { server { root /\xff; location /\xc3\xa4 { } } }\n"));
	my $location = eval { JSON::PP->new->utf8->decode($json) };
	is scalar @{ $location->{findings} // [] }, 2, 'JSON is UTF-8 for a configuration that is not' or diag $json;
	unlike $said, qr/\e/, 'no control characters of the configuration';
	is scalar(grep { length > 110 && !/:\d+: / } split /\n/, $said), 0, 'no long lines';
};

subtest 'each kind of disk is recognised' => sub {
	my %KIND = (www => 'solid', nfs => 'network', fuse => 'fuse', 'disk one' => 'rotating', mem => 'memory');
	for my $name (sort keys %KIND) {
		my $text = nginx("\t\tlocation / {\n$ASK\t\t}\n$ASKED") =~ s{root \S+;}{root "\@DIR\@/$name/";}r;
		my (undef, $report) = report(nginx => write_file('nginx.conf', $text =~ s/\@DIR\@/$dir/gr));
		is_deeply [map { "$_->{root} $_->{kind}" } @{ $report->{mounts} }], ["$dir/$name $KIND{$name}"], $name;
	}
};

# ---------------------------------------------------------------- the examples

my $examples = abs_path("$FindBin::Bin/../../examples");
for my $server (qw(nginx lighttpd apache)) {
	for my $file (glob "$examples/$server/*.conf") {
		my ($status, $report) = report($server, $file);
		is_deeply found($report), [], "nothing is found in examples/$server/" . $file =~ s{.*/}{}r or diag explain $report->{findings};
		is $status, $report->{accelerated} =~ /^(?:nothing|unknown)\z/ ? 2 : 0, 'and the exit status says so';
	}
}

done_testing;
