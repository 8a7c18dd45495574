# doc/tuning.md: its commands are pasted and run against real programs, its settings are read by the server, its links lead somewhere.
use v5.36;
use Test::More;
use Cwd qw(abs_path);
use File::Path qw(make_path);
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::Fcgi ();
use Test::Server;
use Test::Util qw(build_dir put slurp temp_tree);

my $top  = abs_path("$FindBin::Bin/../..");
my $text = slurp("$top/doc/tuning.md");
utf8::decode($text);
my $dir = temp_tree();
my $www = temp_tree();
local $ENV{PATH} = abs_path(build_dir()) . "/bin:$top/scripts:$ENV{PATH}";
local $ENV{NO_COLOR} = 1;
local $ENV{B} = abs_path(build_dir());

# Blocks in their order: { kind => sh|terminal|conf, text, line, chapter }. "terminal" is for commands that need a terminal, root, minutes or
# another server; their options are compared with --help.
sub blocks () {
	my (@blocks, $open, $chapter);
	my $nr = 0;
	for my $line (split /\n/, $text) {
		$nr++;
		$chapter = $1 if $line =~ /^#+ (.*)/ && !$open;
		if ($line =~ /^( *)```(\w*)$/) {
			if ($open) { push @blocks, $open; undef $open }
			else { $open = { kind => $2, indent => $1, text => '', line => $nr, chapter => $chapter } }
		} elsif ($open) {
			$open->{text} .= ($line =~ s/^$open->{indent}//r) . "\n";
		}
	}
	return @blocks;
}

my @blocks = blocks();
is_deeply [grep { !/^(?:sh|terminal|conf)$/ } map { $_->{kind} } @blocks], [], 'each block says what it is';

# The first block of the document is what a measured server needs.
my ($first) = grep { $_->{kind} eq 'conf' } @blocks;
my $srv = Test::Server->start(dir => "$www", conf => "server.max-worker = 1\n$first->{text}");
for my $n (1 .. 20) {
	make_path("$www/a");
	put("$www/a/$n.html", "$n\n" x (1000 * $n));
}
my $accel = Test::Fcgi->start('--mode=auth', '--root', "$www", '--status-path=/accel-status');

# As pasted, with the names of this test, shorter times and so few requests that their charts are drawn soon.
sub pasted ($command) {
	my %is = ('/srv/www' => "$www", '/etc/accel-server.conf' => $srv->run . '/server.conf', '/var/log/accel-server/error.log' => $srv->run . '/error.log',
		'http://127.0.0.1:8080' => 'http://127.0.0.1:' . $srv->port, '/run/stat-accel.sock' => $accel->{socket});
	my $names = join '|', map { quotemeta } sort { length $b <=> length $a } keys %is;
	return $command =~ s/($names)/$is{$1}/gr =~ s/--seconds \d+/--seconds 0.3 --rate 300/gr =~ s/--count \d+/--count 3/gr =~ s/--parallel 100/--parallel 8/gr =~ s/^(\s*accel-top)/$1 --interval 0.1/gmr;
}

subtest 'commands that are run' => sub {
	for my $b (grep { $_->{kind} eq 'sh' } @blocks) {
		my $command = pasted($b->{text});
		put("$dir/block", "cd '$dir'\n$command");
		my $said = qx{bash -eu "$dir/block" </dev/null 2>&1};
		is $?, 0, "tuning.md:$b->{line}: $b->{chapter}" or diag "$command$said";
	}
	like slurp("$dir/before.json"), qr/"answered":[1-9]/, 'the load was answered';
	like slurp("$dir/before.lanes"), qr/"disks":/, 'the lanes are there';
	like slurp("$dir/after.log"), qr/read-queue/, 'the log of the second run is cut off right';
	isnt substr(slurp("$dir/after.log"), 0, 300), substr(slurp("$dir/before.log"), 0, 300), "... where the first one ended";
};

subtest 'settings' => sub {
	for my $b (grep { $_->{kind} eq 'conf' } @blocks) {
		put("$dir/test.conf", "server.document-root = \"$www\"\nserver.port = 18080\n$b->{text}");
		my $said = qx{accel-server -t -f "$dir/test.conf" 2>&1};
		is $?, 0, "tuning.md:$b->{line}: $b->{chapter}" or diag $b->{text}, $said;
		unlike $said, qr/unknown|ignored|no effect/, '... all of it counts';
	}
};

# --help of a program, once.
sub help ($program) {
	state %help;
	return $help{$program} //= qx{$program --help 2>&1};
}

subtest 'commands that are not run here' => sub {
	for my $b (grep { $_->{kind} eq 'terminal' } @blocks) {
		for my $line (split /\n/, $b->{text}) {
			my ($program, $rest) = $line =~ /^([\w.-]+)(.*)$/;
			next if $program eq 'sysctl';
			my $help = help($program);
			like $help, qr/\Q$program\E/i, "tuning.md:$b->{line}: $program is there";
			for my $option ($rest =~ /\s(--[\w-]+|-[A-Za-z])\b/g) {
				like $help, qr/(?<![\w-])\Q$option\E(?![\w-])/, "... and knows $option" or diag $line;
			}
		}
	}
	my $list = qx{accel-bench --list 2>&1};
	like $list, qr/^\s*\Q$_\E\b/m, "the scenario $_" for $text =~ /accel-bench ([a-z\d][\w-]+)$/mg;
	for my $line ($text =~ /^ +(accel-bench .*--server.*)$/mg) {
		my $said = qx{@{[ pasted($line) ]} --print-config 2>&1};
		is $?, 0, "accel-bench understands: $line" or diag $said;
	}
	for my $line ($text =~ /^ +(accel-tune .*)$/mg) {
		my $said = qx{cd '$dir' && @{[ pasted($line) ]} --plan 2>&1};
		is $?, 0, "accel-tune understands: $line" or diag $said;
	}
};

subtest 'names and links' => sub {
	my $manual = qx{accel-server --manual=text 2>&1};
	like $manual, qr/\Q$_\E/, "setting $_" for sort { $a cmp $b } keys %{ { map { ($_ => 1) } $text =~ /`((?:server|proxy-core|status|debug)\.[a-z.-]+)`/g } };
	my %anchor = map { (lc(s/[^\w\s-]//gr =~ s/ /-/gr) => 1) } $text =~ /^#+ (.*)$/mg;
	ok $anchor{$_}, "#$_" for $text =~ /\]\(#([^)]+)\)/g;
	for my $file ($text =~ /(?<!!)\[[^\]]*\]\(([^)#]+)/g) { ok -e "$top/doc/$file", "the file $file" }
	like $_, qr{^img/(?:starvation-[\w-]+|stages|percentile|heat|lanes)\.svg\z}, "the picture $_" for $text =~ /!\[[^\]]+\]\(([^)]+)\)/g;
};

undef $accel;    # before the end of the test, so that its end counts
done_testing;
