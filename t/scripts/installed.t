# The tuning kit as a stranger has it: installed, without the source tree, with the commands that doc/tuning.md names.
use v5.36;
use Cwd      qw(abs_path);
use FindBin  ();
use Pod::Text ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server ();
use Test::Util qw(build_dir put slurp temp_tree);

my $top = abs_path("$FindBin::Bin/../..");
my $variant = build_dir() =~ m{build/(\w+)\z} ? $1 : 'release';
my ($root, $www, $home) = map { temp_tree() } 1 .. 3;

my $made = qx{make -s -C "$top" VARIANT=$variant DESTDIR="$root" install 2>&1};
is $?, 0, 'make install' or die $made;
my $bin = "$root/usr/local/bin";
my @programs = map { s{.*/}{}r } glob "$bin/*";
is_deeply [sort grep { /^(?:accel|fcgi|slowfs)/ } @programs], [sort qw(accel-bench accel-check accel-graph accel-load accel-load-merge accel-pool accel-server accel-top accel-tune
	accel-warm fcgi-stat-accel slowfs)], 'the programs';

# Nothing of the source tree can be found, except what the server of this test writes.
delete @ENV{qw(B PERL5LIB PERLLIB)};
local $ENV{PATH} = "$bin:/usr/sbin:/usr/bin:/sbin:/bin";
chdir $home or die "chdir: $!";

subtest 'each program' => sub {
	for my $program (@programs) {
		like qx{$program --version 2>&1}, qr{^\Q$program\E[ /]\d+\.\d+\.\d+\b}m, "$program --version";
		like qx{$program --help 2>&1}, qr/\Q$program\E/, '... --help';
		my ($page) = glob "$root/usr/local/share/man/man*/$program.*";
		ok $page && -s $page, '... a manual page';
	}
};

sub pod ($file) {
	my $text = '';
	my $parser = Pod::Text->new;
	$parser->output_string(\$text);
	$parser->parse_file($file);
	return $text;
}

# Commands of the kit in a text, with their long options: [program, command of accel-pool, options].
sub commands ($text) {
	my @found;
	for my $command (map { split /\s*(?:\||&&|;|>)\s*/ } $text =~ /^\s+(\S.*)$/mg) {
		my ($program, $rest) = $command =~ /^(accel-\w+|fcgi-stat-accel|slowfs) (.*)/ or next;
		my ($word) = $program eq 'accel-pool' ? $rest =~ /^(\w+)/ : '';
		push @found, [$program, $word // '', grep { $_ ne '--' } $rest =~ /(?<!\S)(--[a-z][a-z0-9-]*)/g];
	}
	return @found;
}

subtest 'examples of the manuals have the options of today' => sub {
	my (%help, $checked);
	for my $page (@programs) {
		my $text = slurp("$bin/$page") =~ /^=head1 /m ? pod("$bin/$page") : qx{$page --manual};
		for my $c (commands($text)) {
			my ($program, $word, @options) = @$c;
			my $help = $help{"$program $word"} //= qx{$program $word --help 2>&1};
			$checked += @options;
			is_deeply [grep { $help !~ /(?<![\w-])\Q$_\E(?![\w-])/ && $help !~ /\Q$_\E!/ } @options], [], "$page: $program $word @options";
		}
	}
	cmp_ok $checked, '>', 20, 'there are examples with options';
};

subtest 'links and pictures of the documents' => sub {
	my $doc = "$root/usr/local/share/doc/stat-accel";
	my @links = map { my $dir = s{[^/]+\z}{}r; map { "$dir$_" } slurp($_) =~ /\]\((?![a-z]+:)([^)#\s]+)/g } glob "$doc/*.md $doc/doc/*.md $doc/examples/*.md $doc/examples/*/*.md";
	cmp_ok scalar(grep { m{/img/} } @links), '>', 5, 'there are pictures';
	is_deeply [grep { !-e } @links], [], '... and all that they name is installed';
};

subtest 'the lines of doc/tuning.md' => sub {
	my ($block) = slurp("$top/doc/tuning.md") =~ /((?:^    .*\n)*^    accel-pool make .*\n(?:^    .*\n)+)/m or return fail 'doc/tuning.md has lines to paste';
	my $srv = Test::Server->start(dir => "$www", conf => qq{server.max-worker = 1\ndebug.log-timing = "enable"\nstatus.status-url = "/server-status"\n});
	my %is = ('/srv/www' => "$www", 'http://127.0.0.1:8080' => 'http://127.0.0.1:' . $srv->port, '/var/log/accel-server/error.log' => $srv->run . '/error.log',
		'/etc/accel-server.conf' => $srv->run . '/server.conf', '--spec 20x50x100k' => '--spec 2x10x100k', '-seconds 10' => '-seconds 1', '--time 2m' => '--time 3s --seconds 0.2',
		'accel-top' => 'accel-top --once --interval 0.1');
	my $names = join '|', map { quotemeta } sort { length $b <=> length $a } keys %is;
	for my $command (map { s/^\s+//r } split /\n/, $block) {
		my $pasted = $command =~ s/ +# .*//r =~ s/($names)/$is{$1}/gr;
		put("$home/pasted", "$pasted\n");
		my $said = qx{sh -eu pasted </dev/null 2>&1};
		is $?, 0, $command or diag $pasted, "\n", $said;
	}
	like slurp("$home/urls.txt"), qr{^/pool/\S+$}m, 'a list of URLs';
	my $report = slurp("$home/report.html");
	like $report, qr/<svg/, 'a report with charts';
	like $report, qr/p99/, '... and figures';
	unlike $report, qr{(?:src|href)="?https?:}, '... that loads nothing';
};

chdir '/';

subtest 'make uninstall' => sub {
	my $service = qx{make -s -C "$top" VARIANT=$variant DESTDIR="$root" install-service 2>&1};
	is $?, 0, 'make install-service' or diag $service;
	put("$root/usr/local/bin/mine", '');
	put("$root/etc/stat-accel/conf.d/mine.conf", '');
	my $said = qx{make -s -C "$top" VARIANT=$variant DESTDIR="$root" uninstall 2>&1};
	is $?, 0, 'make uninstall' or diag $said;
	chomp(my @left = qx{cd "$root" && find . ! -type d | sort});
	is_deeply \@left, [qw(./etc/default/fcgi-stat-accel ./etc/stat-accel/accel-server.conf ./etc/stat-accel/conf.d/mine.conf ./usr/local/bin/mine)],
		'leaves the configuration and the files of others';
	is qx{cd "$root" && find . -type d -name '*stat-accel*'}, "./etc/stat-accel\n", '... and no directory of its own';
};

done_testing;
