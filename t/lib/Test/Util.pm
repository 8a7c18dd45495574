package Test::Util;
# Files, waiting, and where the programs are, for all tests.
#
#     use Test::Util qw(eventually put slurp);
#     put("$dir/pid", $$);
#     ok eventually(sub { slurp("$dir/pid") eq '' }), 'the file becomes empty';
use v5.36;
use Cwd ();
use Exporter 'import';
use File::Basename ();
use File::Temp ();
use Test::More ();
use Time::HiRes qw(time);
use lib File::Basename::dirname(__FILE__) . '/../../../scripts/lib';
use Accel::Util qw(find_program free_port program put slurp);

our @EXPORT_OK = qw(PATIENCE SOON build_dir program find_program free_port need_program sanitized put slurp temp_tree eventually rss);

use constant PATIENCE => ($ENV{B} // '') =~ /[at]san/ ? 150 : 60;       # seconds until a test gives up; sanitizers are slow
use constant SOON => 10;        # an upper bound, on a slow machine, for what waits for no timeout

sub build_dir { return ($ENV{B} // 'build') }
sub nginx_module { return Cwd::abs_path(build_dir()) . '/nginx/ngx_http_stat_accel_module.so' }
sub sanitized { return build_dir() =~ /[at]san/ }

# Runs a program with this standard input: exit status, or "signal N", standard output, standard error.
sub run_fed ($program, $in, @args) {
	my ($stdin, $out, $err) = map { File::Temp->new } 1 .. 3;
	print $stdin $in;
	$stdin->flush;
	my $rc = system 'sh', '-c', 'p=$1 i=$2 o=$3 e=$4; shift 4; exec "$p" "$@" <"$i" >"$o" 2>"$e"', 'sh', $program, "$stdin", "$out",
	    "$err", @args;
	return ($rc & 127 ? "signal $rc" : $rc >> 8, map { slurp("$_") } $out, $err);
}

# The path of a program that scripts/install-deps installs.  Without it the test fails and names the package.  It is
# skipped only where install-deps cannot install it: on a system without apt-get.
sub need_program ($name, $package) {
	my $path = find_program($name);
	return $path if $path;
	my $why = "$name is missing; the package is $package";
	Test::More::plan(skip_all => $why) if !find_program('apt-get');
	die "$why; run scripts/install-deps\n";
}

# A directory that other users may enter.
sub temp_tree {
	my $dir = File::Temp->newdir('accel-tree-XXXXXX', TMPDIR => 1);
	chmod 0755, "$dir";
	return $dir;
}

# Calls the code until it returns true.  Returns that, or the last false value at the deadline.
sub eventually ($code, $seconds = undef) {
	my $end = time + ($seconds // PATIENCE);
	while (1) {
		my $got = $code->();
		return $got if $got || time > $end;
		select undef, undef, undef, 0.005;
	}
}

# MiB of memory that a process uses.
sub rss ($pid) {
	return slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 / 1024 : die "no such process: $pid\n";
}

1;
