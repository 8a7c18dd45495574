# Each script has a manual page, and its SYNOPSIS works.  scripts/install-deps knows what tests need.
use v5.36;
use Test::More;
use Test::Util qw(find_program put slurp);
use Cwd qw(abs_path);
use File::Basename qw(basename);
use File::Temp  ();
use FindBin     ();
use Pod::Checker ();

my $scripts = abs_path("$FindBin::Bin/../../scripts");

# name => prepares the directory in which the examples of its SYNOPSIS run.  A script without an entry
# has its examples left alone: they need a server, or a disk to fill.
my %EXAMPLE_DIR = (
	'accel-graph' => sub () {
		require IO::Compress::Gzip;
		my $line = 'network_gthread_aio.c.78: (trace) write-start: 1173101341.%06d read-queue-wait: %d ms read-time: 0 ms write-time: 21 ms';
		my $text = join '', map { sprintf "$line\n", $_, 600 + $_ } 1 .. 20;
		put('error.log', $text);
		IO::Compress::Gzip::gzip(\$text, 'error.log.1.gz') or die 'gzip failed';
		return find_program('gnuplot') ? '' : 'gnuplot is not installed';
	},
);

# Runs a shell command without a terminal.  Returns its exit status and all it printed.
sub run ($command) {
	my $text = qx{exec </dev/null 2>&1; $command};
	return ($?, $text);
}

sub quoted ($word) { return "'" . $word =~ s/'/'\\''/gr . "'" }

sub pod_errors ($file) {
	open my $out, '>', \my $text or die;
	my $checker = Pod::Checker->new(-warnings => 1);
	$checker->parse_from_file($file, $out);
	return ($checker->num_errors + $checker->num_warnings, $text // '');
}

# The commands of a SYNOPSIS: its indented lines, a backslash at the end joins the next.
sub synopsis ($pod) {
	my ($section) = $pod =~ /^=head1\s+SYNOPSIS\n(.*?)(?=^=head1|^=cut|\z)/ms or return;
	my $verbatim = join "\n", $section =~ /^[ \t]+(\S.*)$/mg;
	return grep { !/^#/ } split /\n/, $verbatim =~ s/ *\\\n\s*/ /gr;
}

my ($release) = slurp("$FindBin::Bin/../../Makefile") =~ /^VERSION\s*:?=\s*(\S+)/m;
for my $file ((sort grep { -f } glob "$scripts/*"), abs_path("$FindBin::Bin/../tools/mutate")) {
	my $name = basename($file);
	next if $name =~ /^\.|~$/;
	subtest $name => sub {
		my $text = slurp($file);
		my ($interpreter) = $text =~ m{\A#!\s*(?:/usr/bin/env\s+)?(\S+)};
		ok $interpreter, 'names its interpreter' or return;
		ok -x $file, 'is executable';
		my $self = quoted($file);

		if ($interpreter =~ /\b(?:ba|da)?sh$/) {
			my ($status, $said) = run("$interpreter -n $self");
			is $status, 0, 'is correct shell' or diag $said;
		} elsif ($interpreter =~ /\bperl$/) {
			my ($status, $said) = run(quoted($^X) . " -I" . quoted("$FindBin::Bin/../lib") . " -c $self");
			is $status, 0, 'is correct Perl' or diag $said;
			like $text, qr/^use (?:strict|v5\.(?:1[2-9]|[2-9]\d))\b/m, 'is strict';
			like $text, qr/^=head1 SYNOPSIS$/m, 'has a SYNOPSIS';
		}
		return unless $text =~ /^=head1 /m;

		my ($errors, $report) = pod_errors($file);
		is $errors, 0, 'POD without errors or warnings' or diag $report;
		like $text, qr/^=head1 NAME\n\n\Q$name\E - \S/m, 'names itself and says what for';

		my ($status, $said) = run("$self --help");
		is $status, 0, '--help succeeds' or diag $said;
		like $said, qr/usage|synopsis/i, '--help shows how it is used';
		like $said, qr/\b\Q$name\E\b/, '--help names it';
		($status, $said) = run("$self --no-such-option");
		isnt $status, 0, 'an unknown option is an error';
		like $said, qr/no-such-option/, 'and is named';
		if ($name =~ /^accel-/) {
			is $status >> 8, 64, 'with the status of all programs of the kit';
			like $said, qr/\A\Q$name\E: [^\n]*; \Q$name\E --help shows how it is used\n\z/, 'and their words';
			is((run("$self --version"))[1], "$name $release\n", '--version is that of the Makefile');
		}

		my @examples = synopsis($text);
		ok scalar(@examples), 'SYNOPSIS has examples';
		like $said = (run("$self --help"))[1], qr/\Q$examples[0]\E/, '--help shows them' if @examples;
		my $prepare = $EXAMPLE_DIR{$name} or return;

		subtest 'SYNOPSIS' => sub {
			my $dir = File::Temp->newdir;
			chdir $dir or die "chdir: $!";
			my $missing = $prepare->();
			plan skip_all => $missing if $missing;
			local $ENV{PATH} = "$scripts:$ENV{PATH}";
			for my $example (@examples) {
				my ($exit, $printed) = run($example);
				is $exit, 0, $example or diag $printed;
			}
			chdir '/';
		};
	};
}

subtest 'scripts/install-deps installs what tests need' => sub {
	my %installed = map { $_ => 1 } slurp("$scripts/install-deps") =~ /^([a-z0-9][a-z0-9.+-]*):/mg;
	my %essential = (bsdutils => 1, dpkg => 1);
	my %needed;
	for my $file (glob "$scripts/../t/*/*.t $scripts/../t/lib/Test/*.pm") {
		my $text = slurp($file);
		$needed{$_}{ basename($file) } = 1 for $text =~ /need_program\('[^']+', *'([^']+)'\)/g;
		$needed{$_}{ basename($file) } = 1 for map { split ' ' } $text =~ /need_program\(\$_, \$_\) for qw\(([^)]+)\)/g;
	}
	cmp_ok scalar keys %needed, '>', 8, 'packages that tests name';
	ok $installed{$_} || $essential{$_}, "$_ for " . join(' ', sort keys %{ $needed{$_} }) for sort keys %needed;
};

subtest 'the checks of this test fail on a bad script' => sub {
	my $dir = File::Temp->newdir;
	put("$dir/bad", "=head1 NAME\n\n=over\n\n=head1 X\n\n=cut\n");
	cmp_ok((pod_errors("$dir/bad"))[0], '>', 0, 'broken POD');
	is_deeply [synopsis("=head1 SYNOPSIS\n\n  a --b \\\n    c\n  # not this\n  d\n\n=head1 X\n\n  e\n")], ['a --b c', 'd'], 'the examples of a SYNOPSIS';
	my ($status) = run('exit 3');
	is $status >> 8, 3, 'a failing command';
};

subtest 'a program of tests that bails out fails, and the others run' => sub {
	my ($prove) = slurp("$scripts/../Makefile") =~ /^PROVE := (.*)$/m;
	my $dir = File::Temp->newdir;
	put("$dir/a.t", "#!/bin/sh\necho 1..2; echo ok 1; echo 'Bail out! x'; kill -ABRT \$\$\n");
	put("$dir/b.t", "#!/bin/sh\necho 1..1; echo ok 1\n");
	chmod 0755, glob "$dir/?.t";
	for my $jobs (1, 4) {
		my ($status, $text) = run("cd $scripts/.. && $prove --state=save --statefile=$dir/state -j$jobs -e '' $dir/a.t $dir/b.t");
		isnt $status, 0, "$jobs at a time: failed";
		like $text, qr{b\.t \.* ok$}m, '... the other one ran' or diag $text;
		is +(run("cd $scripts/.. && prove --dry --state=failed --statefile=$dir/state"))[1], "$dir/a.t\n", '... and the second run has the first one';
	}
};

done_testing;
