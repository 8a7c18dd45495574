# What packages are made of: one version, the same tarball from each clone, the packages that building needs.  t/deb/ builds and installs them.
use v5.36;
use Cwd            qw(abs_path);
use Digest::SHA    ();
use File::Basename qw(basename);
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(put slurp temp_tree);

my $top = abs_path("$FindBin::Bin/../..");
my $dir = temp_tree();
my ($version) = slurp("$top/Makefile") =~ /^VERSION := (\S+)$/m;
ok $version, 'the Makefile has a version' or die 'no VERSION';

subtest 'the version stands in one place' => sub {
	my @files = split /\0/, qx{git -C "$top" ls-files -z -- Makefile '*.c' '*.h' '*.def' '*.pm' scripts debian examples};
	plan skip_all => 'no clone of the repository' if !@files;
	cmp_ok scalar @files, '>', 300, 'files of git';
	# An address may contain the digits: 10.1.0.1.
	is_deeply [grep { -f "$top/$_" && slurp("$top/$_") =~ /(?<![\d.])\Q$version\E(?![\d.:])/ && !m{^scripts/(?:deb|dist|debian-changelog)\z} } @files], ['Makefile'],
		'in no file but the Makefile and the examples in three scripts';
	like slurp("$top/CHANGELOG.md"), qr/\A# Changes\n\n## \Q$version\E\b/, 'CHANGELOG.md begins with it';
};

subtest 'make dist' => sub {
	plan skip_all => 'no clone of the repository' if system("git -C '$top' rev-parse -q --verify HEAD >$dir/commit 2>&1") != 0;
	my %sum;
	for my $clone ("$dir/one", "$dir/two/deeper") {
		is system('git', 'clone', '-q', "file://$top", $clone), 0, 'a clone' or return;
		local $ENV{TZ} = $clone =~ /two/ ? 'Pacific/Auckland' : 'UTC';
		local $ENV{LC_ALL} = $clone =~ /two/ ? 'de_DE.UTF-8' : 'C';
		my $said = qx{umask @{[$clone =~ /two/ ? '077' : '022']}; make -s -C "$clone" dist 2>&1};
		is $?, 0, 'make dist' or diag $said;
		$sum{ Digest::SHA->new(256)->addfile("$clone/build/stat-accel-$version.tar.gz")->hexdigest } = 1;
	}
	is scalar keys %sum, 1, 'the same bytes in both';
	my $changelog = qx{tar -xzOf "$dir/one/build/stat-accel-$version.tar.gz" stat-accel-$version/debian/changelog};
	like $changelog, qr/\Astat-accel \(\Q$version\E\) unstable; urgency=medium\n\n  \* \S/, 'debian/changelog';
	like $changelog, qr/^ -- [^<]+ <[^>]+>  (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000$/m, '... with the time of the commit';
	is_deeply [grep { length > 79 && !/^ -- / } split /\n/, $changelog], [], '... with short lines';
};

subtest 'Build-Depends are what scripts/install-deps installs for building' => sub {
	my ($list) = slurp("$top/scripts/install-deps") =~ /^NEEDS='\n(.*?)^'/ms;
	my %needs = map { $_ => 1 } $list =~ /^([^:\n]+):/mg, 'libfuse3-dev', 'debhelper-compat', 'dh-apparmor', 'nginx-dev';
	# Build-essential.
	delete @needs{qw(gcc libc6-dev)};
	my ($field) = slurp("$top/debian/control") =~ /^Build-Depends: (.*?)^\S/ms;
	is_deeply [sort map { s/\s.*//sr } split /,\s*/, $field], [sort keys %needs], 'the same names';
};

subtest 'scripts/install-deps' => sub {
	my $text = slurp("$top/scripts/install-deps");
	like $text, qr/apt-get install .* --no-install-recommends /, 'installs what it names and that depends on, no more';
	my %list = map { s/='.*//sr => [/^([^:\n]+):/mg] } $text =~ /^(\w+='\n.*?)^'/msg;
	my %lists = $text =~ /^([\w-]+)\)\s+list="([^"]*)" ;;/mg;
	my %case;
	for my $for (keys %lists) { $case{$for}{$_} = 1 for map { @{ $list{$_} } } $lists{$for} =~ /\$(\w+)/g }
	cmp_ok scalar keys %case, '>', 5, 'knows for what';
	is_deeply [grep { !$case{deb}{$_} } qw(build-essential git lintian debhelper)], [], 'deb: what the smallest Debian lacks for `make deb`';
	is_deeply [grep { $case{deb}{$_} || $case{run}{$_} } qw(nginx-light lighttpd gnuplot-nox mmdebstrap zsh fish)], [], 'run, deb: nothing that only tests need';
	is_deeply [grep { !$case{run}{$_} } qw(gcc libc6-dev spawn-fcgi perl curl)], [], 'run: what the demonstration starts, and what it tells to try';
	like slurp("$top/Makefile"), qr{^\Q$_\E:[^\n]*\n\t\@scripts/install-deps \Q$_\E$}m, "`make $_` installs its own list" for qw(run demo deb check-deb);
};

subtest 'units where debhelper looks for them' => sub {
	my ($asked) = slurp("$top/debian/rules") =~ /^UNITS_IN_USR := \$\(shell (.*)\)$/m or return fail 'debian/rules asks debhelper';
	for my $r (['of Debian 12', '"$tmpdir/lib/systemd/system"', ''], ['of Debian 13', '"$tmpdir/lib/systemd/system", "$tmpdir/usr/lib/systemd/system"', "yes\n"]) {
		mkdir "$dir/debhelper";
		put("$dir/debhelper/dh_installsystemd", "#!/usr/bin/perl\nmy \@dirs = ($r->[1]);\n");
		chmod 0755, "$dir/debhelper/dh_installsystemd";
		local $ENV{PATH} = "$dir/debhelper:$ENV{PATH}";
		is scalar qx{@{[$asked =~ s/\$\$/\$/gr]}}, $r->[2], "debhelper $r->[0]";
	}
	is_deeply [grep { slurp($_) =~ m{^lib/} } glob "$top/debian/*.install"], [], 'and no package names /lib, which Debian 13 refuses';
};

subtest 'debian/*.install name what make install installs' => sub {
	my %named = map { $_ => 1 } map { basename($_) } map { split /\n/, slurp($_) } glob "$top/debian/*.install";
	is_deeply [grep { !$named{$_} } map { basename($_) } glob "$top/scripts/accel-*"], [], 'each script';
};

done_testing;
