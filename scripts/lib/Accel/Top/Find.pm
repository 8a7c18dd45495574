package Accel::Top::Find;
# Finds the server whose status is wanted: from an argument, a configuration of accel-server, or where servers usually are.
use v5.36;

use Accel::Status ();

use constant PRINT_MAX => 4 << 20;    # bytes of a printed configuration

my @USUAL = ('http://127.0.0.1/server-status', 'http://127.0.0.1:8080/server-status', 'fcgi:/run/stat-accel.sock');

my $ADVICE = <<'EOT';
accel-server shows its status with these lines in its configuration:
    $HTTP["remoteip"] == "127.0.0.0/8" {
        status.status-url = "/server-status"
    }
then: accel-top http://127.0.0.1/server-status
fcgi-stat-accel shows it when it is started with --status-path=/accel-status
then: accel-top fcgi:/run/stat-accel.sock
EOT

# An Accel::Status that was asked once, and the answer. Dies with what to do.
sub find (%opt) {
	# A path is the socket of either server.
	my @places = map { m{^/} ? ("fcgi:$_", "unix:$_") : $_ } $opt{argument} // @USUAL;
	my @try = defined $opt{file} ? from_conf($opt{file}, $opt{program}) : map { [$_] } @places;
	my @why;
	for my $t (@try) {
		my ($text, $host) = @$t;
		my $server = Accel::Status->new($text, login => $opt{login}, host => $host, patience => $opt{patience});
		my $first = eval { $server->ask };
		return ($server, $first) if $first;
		push @why, $@;
	}
	die join('', map { "accel-top: $_" } @why), @why > 1 || grep(/status 404|no status/, @why) ? "\n$ADVICE" : '';
}

# ---------------------------------------------------------------- a configuration

# [place, Host]... of the first address that has the page, from the output of accel-server -p.
sub from_conf ($file, $program) {
	my ($listens, $pages) = pages(printed($file, $program));
	die "accel-top: $file: the server listens nowhere\n" unless @$listens;
	die "accel-top: $file: there is no status page\n\n$ADVICE" unless @$pages;
	my ($page) = sort { defined $a->{host} <=> defined $b->{host} } @$pages;
	return map { [place_of($_) . $page->{path}, $page->{host}] } @$listens;
}

sub place_of ($listen) { return $listen =~ m{^/} ? "unix:$listen:" : 'http://' . ($listen =~ s{^(?:0\.0\.0\.0)?:}{127.0.0.1:}r =~ s{^\[::\]}{[::1]}r) }

sub printed ($file, $program) {
	my $pid = open(my $out, '-|', $program, '-p', '-f', $file) // die "accel-top: $program: $!\n";
	read $out, my $text, PRINT_MAX;
	close $out or die "accel-top: $file: $program cannot read it; $program -t -f FILE says why\n";
	return $text;
}

# ([address...], [{ path, host }...]): host is that of the condition around the page.
sub pages ($text) {
	my (@listens, @pages, @around);
	for my $line (split /\n/, $text) {
		if ($line =~ /^# listens on (\S.*)\z/) { push @listens, $1 }
		elsif ($line =~ /^\s*\}\s*(?:else\s+)?/ && $line !~ /\{/) { pop @around }
		elsif ($line =~ /\{\s*(?:#.*)?\z/) {
			pop @around if $line =~ /^\s*\}/;
			push @around, $line =~ /\$HTTP\["host"\] == "([\w.:-]+)"/ ? $1 : undef;
		} elsif ($line =~ m{^\s*status\.status-url\s*=\s*"(/[^"?#]*)"}) {
			my ($path, @hosts) = ($1, grep { defined } @around);
			push @pages, { path => $path, host => $hosts[-1] };
		}
	}
	return (\@listens, \@pages);
}

1;
