package Test::Deb;
# The packages of `make deb`, and a new Debian to install them in.
#
#     my $why = Test::Deb::unusable();
#     plan skip_all => $why if $why;
#     my @debs = Test::Deb::build();                      # of this tree
#     my @next = Test::Deb::build_next('0.2.0');           # the same sources with another version
#     my $tree = Test::Deb::debian(@debs);                # a directory with Debian and all that the packages depend on
#     my %is   = Test::Deb::files($tree);                 # path => what it is
#
# The Debian comes from the archive that apt of this machine uses. It is kept as build/deb-base/NAME.tar, so that a second run needs no
# network. The name holds what the packages depend on. REUSE_DEBS=1 takes the packages that an earlier run has built.
use v5.36;
use Cwd            qw(abs_path);
use Digest::MD5    qw(md5_hex);
use File::Basename qw(basename dirname);
use File::Find     qw(find);
use File::Path     qw(make_path remove_tree);
use Test::Util     qw(find_program put slurp);

my $top = abs_path(dirname(__FILE__) . '/../../..');
my $out = "$top/build/deb";

sub version () { return slurp("$top/Makefile") =~ /^VERSION := (\S+)/m ? $1 : die "Makefile: no VERSION\n" }

# The reason why it cannot work here, or ''.
sub unusable () {
	return 'only root can make a Debian' if $> != 0;
	return 'no apt-get: this is not a Debian' if !find_program('apt-get');
	return '';
}

# Dies with the end of what the command printed.
sub run (@command) {
	my $pid = open(my $from, '-|') // die "fork: $!";
	if (!$pid) {
		open STDERR, '>&', \*STDOUT;
		delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
		exec @command or POSIX::_exit(127);
	}
	my $text = do { local $/ = undef; <$from> } // '';
	close $from or die "@command failed:\n" . substr($text, -4000) . "\n";
	return $text;
}

# Unit tests are a part of make check.
sub build () {
	return glob "$out/*.deb" if $ENV{REUSE_DEBS};
	local $ENV{DEB_BUILD_OPTIONS} = 'nocheck';
	run('make', '-C', $top, 'deb');
	return glob "$out/*.deb";
}

# Compiles the files again that contain the version.
sub build_next ($version) {
	my $dir = "$out/next";
	my $source = "$dir/stat-accel";
	return glob "$dir/*.deb" if $ENV{REUSE_DEBS};
	remove_tree($dir);
	make_path($dir);
	run('cp', '-a', "$out/stat-accel-" . version(), $source);
	put("$source/Makefile", slurp("$source/Makefile") =~ s/^VERSION := .*/VERSION := $version/mr);
	put("$source/debian/changelog", slurp("$source/debian/changelog") =~ s/\A(stat-accel) \([^)]*\)/$1 ($version)/r);
	unlink "$source/debian/debhelper-build-stamp", "$source/debian/files";
	local $ENV{DEB_BUILD_OPTIONS} = 'nocheck parallel=2';
	run('sh', '-c', 'cd "$1" && dpkg-buildpackage -b -nc -us -uc', 'sh', $source);
	remove_tree($source);
	return glob "$dir/*.deb";
}

# ---------------------------------------------------------------- a Debian

# The files of apt that name an archive of Debian, and its release.
sub archives () {
	my @files = grep { slurp($_) =~ m{debian-archive-keyring|^deb .*/debian}m } grep { -f } '/etc/apt/sources.list',
		glob '/etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources';
	my ($release) = slurp('/etc/os-release') =~ /^VERSION_CODENAME=(\w+)/m or die "/etc/os-release: no VERSION_CODENAME\n";
	@files or die "no file of /etc/apt names an archive of Debian\n";
	return ($release, @files);
}

# Names of packages, without versions; the first of each choice.
sub depends (@debs) {
	my %names;
	for my $deb (grep { !/-dbgsym_/ } @debs) {
		$names{ s/\s*[(|:].*//sr } = 1 for split /\s*,\s*/, run('dpkg-deb', '-f', $deb, 'Depends') =~ s/\s+\z//r;
	}
	delete @names{qw(stat-accel-server stat-accel-tools fcgi-stat-accel stat-accel-doc)};
	# An nginx of the version that the module is for.
	$names{'nginx-light'} = 1 if delete @names{ grep { /^nginx-abi-/ } keys %names };
	return sort keys %names;
}

sub base (@debs) {
	my ($release, @files) = archives();
	my @packages = ('systemd', 'systemd-sysv', 'dbus', 'logrotate', depends(@debs));
	my $tar = "$top/build/deb-base/$release-" . substr(md5_hex("@packages"), 0, 12) . '.tar';
	return $tar if -e $tar;
	make_path(dirname($tar));
	run('mmdebstrap', '--quiet', '--variant=minbase', '--aptopt=Acquire::Check-Valid-Until "false"', '--include=' . join(',', @packages), $release,
		"$tar.new.tar", @files);
	rename "$tar.new.tar", $tar or die "$tar: $!\n";
	return $tar;
}

sub debian ($dir, @debs) {
	run('tar', '-C', "$dir", '-xf', base(@debs));
	make_path("$dir/root/debs");
	copy_debs($dir, @debs);
}

sub copy_debs ($dir, @debs) {
	unlink glob "$dir/root/debs/*.deb";
	run('cp', grep({ !/-dbgsym_/ } @debs), "$dir/root/debs/");
}

# A package that is installed in the directory, packed again as another version. Returns its path there.
sub repack ($dir, $package, $version) {
	my ($control) = grep { /^Package: \Q$package\E$/m } split /\n\n/, slurp("$dir/var/lib/dpkg/status");
	my $to = "$dir/root/repack";
	remove_tree($to);
	make_path("$to/DEBIAN");
	put("$to/DEBIAN/control", $control =~ s/^(?:Status|Conffiles):.*\n(?: .*\n)*//mgr =~ s/^Version: .*/Version: $version/mr . "\n");
	for my $script (qw(preinst postinst prerm postrm triggers)) {
		run('cp', '-p', "$dir/var/lib/dpkg/info/$package.$script", "$to/DEBIAN/$script") if -e "$dir/var/lib/dpkg/info/$package.$script";
	}
	for my $path (grep { -f "$dir$_" || -l "$dir$_" } split /\n/, slurp("$dir/var/lib/dpkg/info/$package.list")) {
		make_path(dirname("$to$path"));
		run('cp', '-a', "$dir$path", "$to$path");
	}
	run('dpkg-deb', '--root-owner-group', '-b', $to, "$dir/root/debs/$package-$version.deb");
	remove_tree($to);
	return "/root/debs/$package-$version.deb";
}

# ---------------------------------------------------------------- what is there

# Paths that the system itself writes while it runs.
my $moving = qr{^/(?:dev|proc|run|sys|tmp|root/debs)(?:/|\z)|^/var/(?:log/(?:journal|nginx|dpkg\.log|alternatives\.log|apt|wtmp|btmp|lastlog)|lib/(?:apt|dpkg|nginx|systemd/(?:catalog|linger|random-seed|timers|timesync))|cache/(?:apt|debconf|ldconfig|man)|tmp)(?:/|\z)|^/etc/(?:machine-id|\.updated|ld\.so\.cache|\.pwd\.lock|resolv\.conf|mtab|apparmor\.d(?:/local)?\z)|^/var/\.updated|__pycache__};

sub files ($dir) {
	my %is;
	find({ no_chdir => 1, wanted => sub {
		my $path = substr $File::Find::name, length $dir;
		if ($path =~ $moving) { $File::Find::prune = 1; return }
		my @s = lstat or return;
		$is{$path} = -l _ ? 'link to ' . readlink : -d _ ? sprintf('directory %o %d:%d', $s[2] & 07777, @s[4, 5])
			: sprintf('file %o %d:%d %d %d', $s[2] & 07777, @s[4, 5], $s[7], $s[9]);
	} }, "$dir");
	delete $is{''};
	return %is;
}

1;
