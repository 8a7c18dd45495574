# -t looks at certificates: chain, dates, names, strength. What a client would refuse is a warning, and the server starts.
use v5.36;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;
use Test::Tls;
use Test::Util qw(program put slurp);

my $keys = File::Temp->newdir('accel-keys-XXXXXX', TMPDIR => 1);
my $day = 86400;
my $root = Test::Tls::certificate($keys, 'root', ca => 1);
my $between = Test::Tls::certificate($keys, 'between', ca => 1, by => $root);
my $lower = Test::Tls::certificate($keys, 'lower', ca => 1, by => $between);
my $leaf = Test::Tls::certificate($keys, 'leaf', by => $lower, hosts => ['leaf.example', '*.wild.example']);

sub ssl ($c) { return qq{ssl.engine = "enable"\nssl.pemfile = "$c->{pem}"\nssl.privkey = "$c->{key}"\n} }
# A certificate, and others after it, in one file.
sub chain ($name, $c, @more) { return { key => $c->{key}, pem => put("$keys/$name", join '', map { slurp($_->{pem}) } $c, @more) } }
my $whole = chain('whole.pem', $leaf, $lower, $between);

sub host ($when) { return qq(\$HTTP["host"] $when {\n) . ssl($whole) =~ s/^.*\n//r . "}\n" }

sub check ($lines) {
	my $file = put("$keys/x.conf", qq{server.document-root = "$keys"\nserver.port = 0\n$lines});
	my $said = qx{@{[ program('accel-server') ]} -t -f $file 2>&1 </dev/null};
	return ($? >> 8) . ' ' . $said =~ s/\Q$keys\E/DIR/gr;
}
# file: of the warning, in line 4
sub warns ($name, $file, $what) { return qr/^0 DIR\/x\.conf:4:15: ssl\.pemfile: "DIR\/\Q$file\E": $what\nSyntax OK\n\z/ }

subtest 'the chain' => sub {
	is check(ssl($whole)), "0 Syntax OK\n", 'one that is whole, up to the root';
	is check(ssl(chain('rooted.pem', $leaf, $lower, $between, $root))), "0 Syntax OK\n", '... and with it';
	is check(ssl($root)), "0 Syntax OK\n", 'one that signed itself';
	for my $case (
		['leaf.pem', $leaf, qr/"\/CN=leaf" is not followed by the certificate of its issuer "\/CN=lower"; clients that do not have that one refuse it/, 'alone'],
		['swapped.pem', chain('swapped.pem', $leaf, $between, $lower), qr/the order is wrong: "\/CN=lower", which issued "\/CN=leaf", is certificate 3 of the file, expected 2/, 'a wrong order'],
		['gap.pem', chain('gap.pem', $leaf, $lower, $root), qr/"\/CN=lower" is not followed by the certificate of its issuer "\/CN=between"; .*/, '... before the root'],
		['hole.pem', chain('hole.pem', $leaf, $between), qr/"\/CN=leaf" is not followed by the certificate of its issuer "\/CN=lower"; .*/, 'a missing one'],
	) {
		like check(ssl($case->[1])), warns($case->[0], $case->[0], $case->[2]), $case->[3];
	}
	my $same = Test::Tls::certificate(File::Temp->newdir('accel-other-XXXXXX', TMPDIR => 1), 'lower', ca => 1);
	my $other = { key => $leaf->{key}, pem => put("$keys/other.pem", slurp($leaf->{pem}) . slurp($same->{pem})) };
	like check(ssl($other)), warns('other', 'other.pem', qr/"\/CN=leaf" is not followed by the certificate of its issuer .*/), 'another one of the same name';
	is check(ssl($leaf) . qq{ssl.ca-file = "$whole->{pem}"\n}), "0 Syntax OK\n", 'ssl.ca-file completes it';
};

subtest 'dates' => sub {
	my $date = qr/20\d\d-\d\d-\d\d \d\d:\d\d UTC/;
	for my $case (
		['soon', [to => time + 13 * $day], qr/the certificate of "\/CN=soon" ends at $date; renew it/],
		['over', [from => time - 9 * $day, to => time - $day], qr/the certificate of "\/CN=over" ended at $date; renew it/],
		['later', [from => time + $day], qr/the certificate of "\/CN=later" is not valid before $date/],
	) {
		my $c = Test::Tls::certificate($keys, $case->[0], @{ $case->[1] });
		like check(ssl($c)), warns($case->[0], "$case->[0].pem", $case->[2]), $case->[0];
	}
	is check(ssl(Test::Tls::certificate($keys, 'fine', to => time + 15 * $day))), "0 Syntax OK\n", 'in 15 days';
	my $old = Test::Tls::certificate($keys, 'old', ca => 1, by => $root, from => time - 9 * $day, to => time - $day);
	like check(ssl(chain('late.pem', Test::Tls::certificate($keys, 'new', by => $old), $old))), warns('late', 'late.pem', qr/the certificate of "\/CN=old" ended at .*/), 'one between it and the root';
	my $over = { pem => "$keys/over.pem", key => "$keys/over.key" };
	my $srv = Test::Server->start(conf => ssl($over));
	ok Test::Tls::shaken($srv->port), 'the server starts with one that is over';
	my $line = qr/level=warn ev=config\.warning what="[^"]*:\d+:15: ssl\.pemfile: .*over\.pem.*ended at/;
	like $srv->wait_log($line), $line, '... and its log has the warning';
};

subtest 'names' => sub {
	my $block = sub ($when) { return ssl($root) . host($when) };
	my $wrong = qr/^0 DIR\/x\.conf:7:15: ssl\.pemfile: "DIR\/whole\.pem": the certificate is for leaf\.example, \*\.wild\.example, not for b\.example of \$HTTP\["host"\]\nSyntax OK\n\z/;
	is check($block->(qq{== "$_"})), "0 Syntax OK\n", $_ for qw(leaf.example LEAF.example a.wild.example);
	like check($block->('== "b.example"')), $wrong, 'another host';
	is check($block->('=~ "b"')), "0 Syntax OK\n", 'a pattern names no host';
	is check($block->('== "leaf.example"') . qq{\$HTTP["host"] == "b.example" { static-file.etags = "disable" }\n}), "0 Syntax OK\n", 'a host without a certificate of its own';
	is check(ssl($whole) . qq{server.name = "leaf.example"\n}), "0 Syntax OK\n", 'server.name';
	like check(ssl($whole) . qq{server.name = "c.example"\n}), warns('name', 'whole.pem', qr/the certificate is for leaf\.example, \*\.wild\.example, not for c\.example of server\.name/), 'another server.name';
	like check(ssl($root) . qq{server.name = "c.example"\n}), warns('name', 'root.pem', qr/the certificate is for \/CN=root, not for c\.example of server\.name/), 'a certificate without names';
};

subtest 'strength' => sub {
	like check(ssl(Test::Tls::certificate($keys, 'weak', rsa => 1024))), qr/^78 DIR\/x\.conf:4:15: ssl\.pemfile: "DIR\/weak\.pem": a key is too weak; expected RSA of 2048 bits or more/, 'RSA of 1024 bits';
	my $weak = Test::Tls::certificate($keys, 'weakca', ca => 1, by => $root, rsa => 1024);
	like check(ssl(chain('under.pem', Test::Tls::certificate($keys, 'under', by => $weak), $weak))), qr/^78 .*"DIR\/under\.pem": a key is too weak/, '... between it and the root';
	like check(ssl(Test::Tls::certificate($keys, 'sha1', by => $root, md => 'sha1'))), qr/^78 DIR\/x\.conf:4:15: ssl\.pemfile: "DIR\/sha1\.pem": it is signed with SHA-1 or weaker, which clients refuse; /, 'SHA-1';
};

subtest 'many warnings' => sub {
	my $said = check(ssl($whole) . join '', map { host(qq{== "h$_"}) } 1 .. 30);
	is scalar(() = $said =~ /not for h\d+ of/g), 20, 'twenty of thirty';
};

done_testing;
