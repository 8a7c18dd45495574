package Test::Check;

# Runs accel-check on configurations with marks.  "#! ID..." is above the line that a finding names.
use v5.36;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Test::Util qw(find_program put);

our @EXPORT = qw($check $dir @COMMON $ASK $ASKED write_file lines_of run report found broken nginx asking);

our $check = abs_path(dirname(__FILE__) . '/../../../scripts/accel-check');
our $dir = File::Temp->newdir;

sub write_file ($name, $text) {
	my $path = $name =~ m{^/} ? $name : "$dir/$name";
	make_path(dirname($path));
	return put($path, $text);
}

sub lines_of ($file) {
	open my $fh, '<:raw', $file or die "$file: $!";
	return <$fh>;
}

# Exit status and all that was printed.
sub run (@command) {
	my $pid = open my $fh, '-|' // die "fork: $!";
	if (!$pid) {
		open STDERR, '>&', \*STDOUT;
		open STDIN, '<', '/dev/null';
		exec { $command[0] } @command or exit 127;
	}
	local $/ = undef;
	my $text = <$fh> // '';
	close $fh;
	return ($? >> 8, $text);
}

# A disk of each kind.
my $mounts = write_file('mountinfo', <<"EOT");
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:30 / $dir/nfs rw - nfs4 host:/x rw
22 20 0:31 / $dir/fuse rw - fuse.slowfs slowfs rw
23 20 8:17 / $dir/disk\\040one rw - xfs /dev/sdb1 rw
24 20 0:32 / $dir/mem rw - tmpfs tmpfs rw
EOT
write_file('sys/dev/block/8:1/queue/rotational', "0\n");
write_file('sys/dev/block/8:17/queue/rotational', "1\n");
make_path(map { "$dir/$_" } qw(www www/img nfs fuse mem), 'disk one');
our @COMMON = ('--no-ask', '--mountinfo', $mounts, '--sysfs', "$dir/sys");

sub report ($server, $file, @more) {
	my ($status, $text) = run($check, @COMMON, '--json', @more, $server, $file);
	my $found = eval { JSON::PP->new->decode($text) };
	return ($status, $found // { broken => $text, findings => [], notes => [], mounts => [] });
}

sub found ($report) { return [sort map { "$_->{id} $_->{line}" } @{ $report->{findings} }] }

# The findings that the marks of a configuration stand for.
sub promised ($text) {
	my ($line, @waiting, @all) = 0;
	for (split /\n/, $text) {
		$line++;
		if (/^\s*#! (.+)/) { push @waiting, split ' ', $1; next }
		push @all, map { "$_ $line" } splice @waiting;
	}
	return [sort @all];
}

# Pastes every snippet of a report at its place.
sub paste ($report) {
	my %edits;
	for my $s (map { @{ $_->{snippets} } } @{ $report->{findings} }) {
		next if $s->{as_above} || $s->{advice};
		my ($how) = grep { $s->{$_} } qw(after before_end replace);
		push @{ $edits{ $s->{$how}{file} } }, [$how, $s->{$how}, $s->{text}];
	}
	for my $file (keys %edits) {
		my @lines = lines_of($file);
		my (%before, %after);
		for (@{ $edits{$file} }) {
			my ($how, $at, $text) = @$_;
			if ($how eq 'after') { $after{ $at->{line} } .= $text; next }
			$before{ $at->{line} } .= $text;
			@lines[$at->{line} - 1 .. $at->{to} - 1] = ('') x ($at->{to} - $at->{line} + 1) if $how eq 'replace';
		}
		write_file($file, join '', $after{0} // '', map { ($before{ $_ + 1 } // '', $lines[$_], $after{ $_ + 1 } // '') } 0 .. $#lines);
	}
	return scalar keys %edits;
}

my %TEST = (    # server => the command with which it reads its own configuration
	nginx    => sub ($file) { my $p = find_program('nginx')    or return; return ($p, '-t', '-q', '-p', "$dir", '-c', $file) },
	lighttpd => sub ($file) { my $p = find_program('lighttpd') or return; return ($p, '-tt', '-f', $file) },
	apache   => sub ($file) { my $p = find_program('apache2')  or return; return ($p, '-t', '-f', $file) },
);

# The findings are at the marks.  With their snippets pasted the server accepts the file, and only advice is left.
sub broken ($server, $name, $text, @more) {
	subtest "$server: $name" => sub {
		$text =~ s/\@DIR\@/$dir/g;
		my $file = write_file("$server.conf", $text);
		my ($status, $report) = report($server, $file, @more);
		is_deeply found($report), promised($text), 'the findings are the marked ones' or diag explain $report;
		is $status, @{ $report->{findings} } ? 1 : $report->{accelerated} =~ /^(?:yes|partly)\z/ ? 0 : 2, 'the exit status is 1 with findings, 0 without';
		my @command = $TEST{$server}->($file);
		SKIP: {
			skip "$server is not installed", 1 unless @command;
			my ($exit, $said) = run(@command);
			is $exit, 0, 'the server accepts the configuration' or diag $said;
		}
		my @advice = map { my $f = $_; grep({ $_->{advice} } @{ $f->{snippets} }) ? "$f->{id}" : () } @{ $report->{findings} };
		paste($report) or return;
		(undef, my $again) = report($server, $file, @more);
		is_deeply [sort map { $_->{id} } @{ $again->{findings} }], [sort @advice], 'with its snippets, only advice is left'
			or diag explain($again), lines_of($file);
		SKIP: {
			skip "$server is not installed", 1 unless @command;
			my ($exit, $said) = run(@command);
			is $exit, 0, 'the server accepts the snippets' or diag $said, lines_of($file);
		}
	};
	return;
}

# ---------------------------------------------------------------- an nginx that asks

my $TEMP = join '', map { "\t${_}_temp_path \@DIR\@/temp/$_;\n" } qw(client_body proxy fastcgi uwsgi scgi);
make_path("$dir/temp");

sub nginx ($server, $http = "\taio threads;\n\tsendfile on;\n") {
	return "pid \@DIR\@/pid;\nerror_log stderr;\nevents { }\nhttp {\n\taccess_log off;\n$TEMP$http"
		. "\tserver {\n\t\tlisten 127.0.0.1:8080;\n\t\tserver_name a.example;\n\t\troot \@DIR\@/www;\n$server\t}\n}\n";
}

our $ASKED = <<'EOT';
		location = /stat-accel {
			internal;
			fastcgi_pass unix:/run/stat-accel.sock;
			fastcgi_pass_request_body off;
			fastcgi_param WARM_PATH $warm_path;
		}
EOT
our $ASK = "\t\t\tset \$warm_path \$document_root\$uri;\n\t\t\tauth_request /stat-accel;\n";

# A location that asks correctly.
sub asking ($more = '', $before = '') { return nginx("\t\tlocation / {\n$before$ASK$more\t\t}\n$ASKED") }

1;
