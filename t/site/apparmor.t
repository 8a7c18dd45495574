# The AppArmor profiles allow what the documents tell people to do: each path of README.md, doc/ and examples/, and each that the programs name.
# This test reads the rules itself, so no kernel has to know AppArmor; t/site/units.t lets apparmor_parser read them.
use v5.36;
use Cwd ();
use File::Find qw(find);
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Util qw(slurp);

my $top = Cwd::abs_path("$FindBin::Bin/../..");
use constant { SERVER => 'accel-server', ACCELERATOR => 'fcgi-stat-accel', CHECKER => 'check' };

# ---------------------------------------------------------------- rules

my %tunable = ('@{PROC}' => '/proc', '@{pid}' => 'PID');

# A glob of AppArmor as a regular expression.  A whole name is not empty.
sub pattern ($glob) {
	$glob =~ s/\Q$_\E/$tunable{$_}/g for keys %tunable;
	my %is = ('**' => '.+', '*' => '[^/]*', '?' => '[^/]', '{' => '(?:', '}' => ')', ',' => '|');
	my $text = join '', map { $is{$_} // ($_ eq '/*' ? '/[^/]+' : quotemeta) } $glob =~ m{(\*\*|/\*(?=/|\z)|.)}g;
	return qr/\A$text\z/;
}

# { profile => [[pattern, rights, denied]...] }
sub rules ($text) {
	my (%rules, @inside);
	for (split /\n/, $text =~ s/(?:^|\s+)#.*//gmr) {
		push @inside, $1 if /^\s*profile (\S+) .*\{$/;
		pop @inside if /^\s*\}$/;
		my ($deny, $glob, $rights) = m{^\s*(deny )?(?:owner )?([/\@]\S+)\s+(\w+)(?: -> \w+)?,$} or next;
		push @{ $rules{ $inside[-1] } }, [pattern($glob), $rights, !!$deny];
	}
	return %rules;
}

our %rules = map { rules(slurp("$top/examples/apparmor/usr.bin.$_")) } SERVER, ACCELERATOR;
cmp_ok scalar @{ $rules{$_} }, '>', 3, "rules of $_" for SERVER, ACCELERATOR, CHECKER;

sub allowed ($program, $path, $rights) {
	my %may;
	for my $r (grep { $path =~ $_->[0] } @{ $rules{$program} }) {
		return 0 if $r->[2];
		$may{ lc $_ } = 1 for split //, $r->[1];
	}
	return !grep { !$may{$_} } split //, $rights;
}

subtest 'this test reads rules' => sub {
	local %rules = rules(<<'END');
profile p /usr/bin/p flags=(x) {
  # /commented r,
  /a/ r,
  /a/** r,
  owner /l/{x,y}*.log rw,   # why
  deny /a/secret{.txt,/**} r,
  @{PROC}/@{pid}/{comm,fd/*} r,
  profile q {
    /q r,
  }
  /bin/x Pix,
}
END
	my @yes = (['/a/', 'r'], ['/a/b/c', 'r'], ['/l/x.log', 'rw'], ['/l/y1.log', 'w'], ['/proc/PID/fd/3', 'r'], ['/bin/x', 'x']);
	my @no = (['/a', 'r'], ['/a/b', 'w'], ['/l/z.log', 'w'], ['/l/x/y.log', 'w'], ['/a/secret.txt', 'r'], ['/a/secret/b', 'r'], ['/commented', 'r'], ['/q', 'r']);
	ok allowed('p', @$_), "@$_" for @yes;
	ok !allowed('p', @$_), "not @$_" for @no;
	ok allowed('q', '/q', 'r'), 'a profile in a profile';
};

# ---------------------------------------------------------------- documents

my %text;       # file => text
find({ no_chdir => 1, wanted => sub { $text{ s{^\Q$top\E/}{}r } = slurp($_) if -f && !-B && !m{/apparmor/|/RESULTS} } }, map { "$top/$_" } qw(README.md doc examples));

my $path = qr{/(?:data|dev|etc|home|media|mnt|opt|proc|run|srv|sys|tmp|usr|var)/[^\s"'`,;:)(<>|\\&\$]+};

# What names a path for a program: [expression, program, rights].  A directory is wanted with what is below it.
my @uses = (
	[qr{\bserver\.(?:document-root|upload-dirs)\s*=\s*\(?\s*"($path)"}, SERVER, 'dir'],
	[qr{\bx-sendfile-docroot\s*=\s*\(\s*"($path)"}, SERVER, 'dir'],
	[qr{\bserver\.ban-file\s*=\s*"($path)"}, SERVER, 'r'],
	[qr{\b(?:server\.(?:errorlog|breakagelog)|accesslog\.filename)\s*=\s*"($path)"}, SERVER, 'w'],
	[qr{\bserver\.pid-file\s*=\s*"($path)"}, SERVER, 'rw'],
	[qr{\bproxy-core\.(?:backends|authorizer)\s*\+?=\s*\(\s*"unix:($path)"}, SERVER, 'rw'],
	[qr{\baccel-server\b[^\n|#]*? -f ($path)}, SERVER, 'r'],
	[qr{\baccel-server\b[^\n|#]*? --socket=($path)}, SERVER, 'rw'],
	[qr{\bfcgi-stat-accel\b[^\n|#]*? --root[= ]($path)}, ACCELERATOR, 'dir'],
	[qr{\bfcgi-stat-accel\b[^\n|#]*? --listen[= ]unix:($path)}, ACCELERATOR, 'rw'],
	[qr{\bfcgi-stat-accel\b[^\n|#]*? --log[= ]($path)}, ACCELERATOR, 'w'],
	[qr{\bfcgi-stat-accel\b[^\n|#]*? --nginx-cache[= ]($path)}, ACCELERATOR, 'dir'],
	[qr{\bspawn-fcgi -s ($path)[^\n]*\\?\n?[^\n]*fcgi-stat-accel}, ACCELERATOR, 'rw'],
	[qr{"socket"\s*=>\s*"($path)"}, ACCELERATOR, 'rw'],
	[qr{\bfcgi-stat-accel --check \w+ ($path)}, CHECKER, 'r'],
);
my %as = (dir => sub ($p) { $p =~ s{/\z}{}r }, map { $_ => sub ($p) { $p } } qw(r w rw));

my %named;      # path => 1: a use judges it
for my $file (sort keys %text) {
	for my $use (@uses) {
		my ($expression, $program, $rights) = @$use;
		for my $found ($text{$file} =~ /$expression/g) {
			my $wanted = $found =~ s/[.]\z//r;
			next if $named{"$program $rights $wanted"}++;
			my @needs = $rights eq 'dir' ? (["$wanted/", 'r'], ["$wanted/a/b", 'r']) : [$wanted, $rights];
			$named{$wanted} = 1;
			is_deeply [grep { !allowed($program, @$_) } @needs], [], "$program may use $wanted ($rights), as $file says";
		}
	}
}
cmp_ok scalar(grep { /^\// } keys %named), '>', 20, 'the documents name paths';

# Files of other programs, and those that a person or the service manager uses.
my %others = (
	'web servers'       => qr{^/(?:etc|run|var/log|usr/lib)/(?:angie|apache2|caddy|h2o|haproxy|hitch|lighttpd|nginx)\b|^/run/stat-accel-answers$},
	'service managers'  => qr{^/etc/(?:systemd|cron\.d|default|logrotate\.d|apparmor\.d|fail2ban|prometheus)/|^/usr/(?:lib/tmpfiles\.d|local/lib/systemd)/},
	'programs'          => qr{^/usr/(?:local/)?bin/|^/usr/lib/cgi-bin/},
	'slowfs'            => qr{^/tmp/slow|^/etc/fuse\.conf$|^/usr/share/doc\b|^/dev/loop|^/sys/fs/fuse/},
	'what a person does' => qr{^/usr/local$|^/run/systemd/system$|^/var/(?:log|tmp)$|^/run/lock/|^/proc/slabinfo$|^/dev/(?:null|shm)\b|^/var/lib/apt/|^/etc/passwd$},
);
my %used;
for my $file (sort keys %text) {
	for my $found ($text{$file} =~ m{(?<![\w./\$\}\]*?~^-])($path)}g) {
		my $wanted = $found =~ s/[.*\]\}]+\z//r =~ s{^/proc/self/}{/proc/PID/}r;
		next if $named{$wanted}++;
		my ($other) = grep { $wanted =~ $others{$_} } sort keys %others;
		$used{$other}++ if defined $other;
		next if defined $other;
		ok +(grep { my $p = $_; grep { allowed($p, $_, 'r') || allowed($p, $_, 'w') } $wanted, "$wanted/" } SERVER, ACCELERATOR), "$wanted of $file: a profile has it, or it belongs to another program";
	}
}
is_deeply [grep { !$used{$_} } sort keys %others], [], 'no kind of other files is left over';

# ---------------------------------------------------------------- programs

subtest 'files of the kernel that the programs read' => sub {
	my %files;
	find({ no_chdir => 1, wanted => sub {
		return if !/\.c\z/;
		$files{$_} = 1 for slurp($_) =~ m{"(/proc/[\w%/]+)"}g;
	} }, map { "$top/$_" } qw(io server));
	cmp_ok scalar keys %files, '>', 5, 'they read some';
	for my $file (sort keys %files) {
		my $wanted = $file =~ s{/proc/(?:self|%\w)(?=/|\z)}{/proc/PID}r =~ s/%\w/3/gr;
		for my $program (SERVER, ACCELERATOR) {
			ok allowed($program, $wanted, 'r') || allowed($program, "$wanted/", 'r'), "$program: $file";
		}
	}
	for my $program (SERVER, ACCELERATOR) { ok allowed($program, '/sys/fs/cgroup/a.slice/memory.pressure', 'r'), "$program: its control group" }
};

subtest 'what no profile allows' => sub {
	for my $program (SERVER, ACCELERATOR) {
		ok !allowed($program, $_, 'w'), "$program: $_" for qw(/etc/passwd /etc/stat-accel/accel-server.conf /srv/www/file /var/lib/stat-accel/bans/list /run/docker.sock
			/run/podman/podman.sock /run/containerd/containerd.sock /run/snapd.sock);
		ok !allowed($program, $_, 'r'), "$program: $_" for qw(/etc/shadow /root/.ssh/id_rsa /home/a/file);
	}
};

done_testing;
