package Test::Bench::AccelLifecycle;
# fcgi-stat-accel is replaced behind nginx while clients ask.
#
#     my $r = Test::Bench::AccelLifecycle::drive(mode => 'auth', kept => 1, way => 'replace', clients => 20, long => 5, seconds => 2);
#     is $r->{errors}, 0;
#
# `run($bench)` prints a table of all of them. `drive` starts nginx without any way out (no error_page, so that a lost request is an error of the client) and
# fcgi-stat-accel, loads nginx with short requests of kept client connections and with long downloads, and meanwhile replaces the accelerator
# until the load ends.
#
# `mode`: `auth` (auth_request) or `accel` (X-Accel-Redirect). `kept`: nginx keeps its connections to the accelerator.
# `way`: `replace`, the option --replace; `socket`, a new process on the same listening socket, then USR1 to the old one, as a
# supervisor does it that holds the socket; `restart`, the old one gets TERM and ends, then the new one starts, as `systemctl restart` does it.
#
# The result: `requests`, `errors`, `restarts`, `kinds` of errors, `p99_ms`, and `before` and `after`: descriptors and MiB of nginx and of the accelerator when
# all is quiet; `left`: processes and files that should be gone.
use v5.36;
use File::Temp ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use POSIX qw(WNOHANG);
use Test::AccelLoad ();
use Test::Bench::Hot ();
use Test::Manager ();
use Test::Util qw(eventually free_port program put slurp);

my @modes = qw(auth accel);
my %ways = (replace => \&by_replace, socket => \&by_socket, restart => \&by_restart);

# ---------------------------------------------------------------- nginx

my %location = (
	auth => <<'END',
		location / { auth_request /ask; }
		location = /ask {
			internal;
			fastcgi_pass accel;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param DOCUMENT_ROOT $document_root;
			fastcgi_param REQUEST_URI $request_uri;
			fastcgi_pass_request_body off;
			KEPT
		}
END
	accel => <<'END',
		location / {
			fastcgi_pass accel;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param SCRIPT_FILENAME $document_root$uri;
			KEPT
		}
		location /protected/ { internal; alias DIR/www/; limit_rate 512k; }
END
);

sub conf ($dir, $port, %arg) {
	my $user = $> == 0 ? "user root;\n" : '';
	my $keep = $arg{kept} ? 'keepalive 64;' : '';
	my $place = $location{ $arg{mode} } =~ s/KEPT/$arg{kept} ? 'fastcgi_keep_conn on;' : ''/er =~ s/DIR/$dir/r;
	return <<"END";
${user}daemon off; master_process off; pid $dir/nginx.pid; error_log $dir/nginx.log warn;
events { worker_connections 2048; }
http {
	access_log off; default_type text/plain; keepalive_requests 1000000; sendfile on;
	client_body_temp_path $dir/tmp; fastcgi_temp_path $dir/tmp; proxy_temp_path $dir/tmp; scgi_temp_path $dir/tmp; uwsgi_temp_path $dir/tmp;
	upstream accel { server unix:$dir/accel.sock; $keep }
	server {
		listen 127.0.0.1:$port backlog=4096; root $dir/www; limit_rate_after 64k; limit_rate 512k;
$place
	}
}
END
}

sub child ($setup, @command) {
	my $pid = fork // die "fork: $!";
	return $pid if $pid;
	$setup->();
	exec qw(setpriv --pdeathsig KILL --), @command or POSIX::_exit(127);
}

sub start_nginx ($self, %arg) {
	$self->{port} = free_port();
	put("$self->{dir}/nginx.conf", conf("$self->{dir}", $self->{port}, %arg));
	$self->{nginx} = child(sub { open STDERR, '>', "$self->{dir}/nginx.err" }, 'nginx', '-e', "$self->{dir}/nginx.log", '-c', "$self->{dir}/nginx.conf");
	eventually(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) }) or die "nginx: " . slurp("$self->{dir}/nginx.err");
}

# ---------------------------------------------------------------- the accelerator

sub options ($self) {
	my @mode = $self->{mode} eq 'auth' ? '--mode=auth' : ('--for=nginx', "--map=$self->{dir}/www=/protected");
	return (@mode, "--root=$self->{dir}/www", "--log=$self->{dir}/accel.log");
}

# Starts a process and waits until it is ready.
sub start_accel ($self, @how) {
	my $manager = Test::Manager->new;
	my $pid = child(sub {
		%ENV = (%ENV, $manager->env);
		if (my $sock = $self->{sock}) {
			POSIX::dup2(POSIX::dup(fileno $sock), 3);
			@ENV{qw(LISTEN_FDS LISTEN_PID)} = (1, $$);
		}
		open STDERR, '>>', "$self->{dir}/accel.err";
	}, program('fcgi-stat-accel'), $self->options, @how);
	$manager->wait(qr/READY=1/) or die 'fcgi-stat-accel: ' . slurp("$self->{dir}/accel.err");
	return $pid;
}

sub ended ($self, $pid) {
	my $status;
	eventually(sub { waitpid($pid, WNOHANG) == $pid and ($status = $?, 1) }) or push @{ $self->{left} }, "process $pid still runs";
	push @{ $self->{left} }, sprintf 'process %d ended with 0x%x', $pid, $status if $status;
	return;
}

sub by_replace ($self) {
	my $old = $self->{accel};
	$self->{accel} = $self->start_accel('--listen', "unix:$self->{dir}/accel.sock", '--replace');
	$self->ended($old) if $old;
	return;
}

sub by_socket ($self) {
	my $old = $self->{accel};
	$self->{accel} = $self->start_accel;
	return if !$old;
	kill 'USR1', $old;
	return $self->ended($old);
}

sub by_restart ($self) {
	if (my $old = $self->{accel}) {
		kill 'TERM', $old;
		$self->ended($old);
	}
	$self->{accel} = $self->start_accel;
	return;
}

# ---------------------------------------------------------------- what is used

sub fds ($pid) { return scalar(() = glob "/proc/$pid/fd/*") }

sub usage ($self) {
	return {
		nginx => { fds => fds($self->{nginx}), mib => Test::Util::rss($self->{nginx}) },
		accel => { fds => fds($self->{accel}), mib => Test::Util::rss($self->{accel}) },
	};
}

# Kept connections must not count: asks for one file, then waits until nginx has as few descriptors as it ever gets.
sub settle ($self, $like) {
	eventually(sub { fds($self->{nginx}) <= $like->{nginx}{fds} }, 5) if $like;
	return $self->usage;
}

# ---------------------------------------------------------------- the load

sub port ($self) { return $self->{port} }

sub loads ($self, %arg) {
	my @verify = ('--quiet', '-t', 60, '--verify', "dir:$self->{dir}/www", '-d', $arg{seconds});
	my $short = Test::AccelLoad->start($self, '/', '-c', $arg{clients} - $arg{long}, @verify, '-u', "$self->{dir}/urls");
	my $long = Test::AccelLoad->start($self, '/long', '-c', $arg{long}, @verify);
	return ($short, $long);
}

sub prepare ($self) {
	mkdir "$self->{dir}/www";
	put("$self->{dir}/www/f$_", "file $_\n" x 100) for 1 .. 50;
	put("$self->{dir}/www/long", 'x' x $self->{long_bytes});
	put("$self->{dir}/urls", join '', map {"/f$_\n"} 1 .. 50);
	$self->{sock} = IO::Socket::UNIX->new(Local => "$self->{dir}/accel.sock", Listen => 1024) or die "listen: $!" if $self->{way} ne 'replace';
}

sub drive (%arg) {
	my $self = bless { dir => Test::Util::temp_tree(), left => [], long_bytes => 640 << 10, %arg, owner => $$ }, __PACKAGE__;
	$self->prepare;
	$ways{ $arg{way} }->($self);
	$self->start_nginx(%arg);
	$_->report for $self->loads(clients => 3, long => 1, seconds => 0.3);
	my $before = $self->settle(undef);
	my @loads = $self->loads(%arg);
	my $restarts = 0;
	while (!grep { $_->ended } @loads) {
		$ways{ $arg{way} }->($self);
		$restarts++;
		select undef, undef, undef, $arg{pause} if $arg{pause};
	}
	my @r = map { $_->report } @loads;
	my $after = $self->settle($before);
	push @{ $self->{left} }, grep { !/accel\.sock$/ } glob "$self->{dir}/accel.sock*";
	my %kinds;
	for my $r (@r) { $kinds{$_} += $r->{errors}{$_} for grep { $_ ne 'all' } keys %{ $r->{errors} } }
	return { restarts => $restarts, before => $before, after => $after, left => $self->{left}, kinds => \%kinds, reports => \@r,
		errors => $r[0]{errors}{all} + $r[1]{errors}{all}, nginx_log => slurp("$self->{dir}/nginx.log"), accel_log => slurp("$self->{dir}/accel.log") };
}

# ---------------------------------------------------------------- the table

sub row ($bench, $way, $mode, $kept) {
	my $r = drive(mode => $mode, kept => $kept, way => $way, clients => 200, long => 50, seconds => $bench->opt('seconds'), pause => 0.1);
	my ($short, $long) = @{ delete $r->{reports} };
	delete @$r{qw(nginx_log accel_log)};
	my ($before, $after) = map { $r->{$_} } qw(before after);
	printf "  %-8s %-6s %-5s %9d %9d %6d %6d %9.1f  %s %s  %s %s\n", $way, $mode, ($kept ? 'yes' : 'no'), $r->{restarts}, $short->{answered}, $long->{answered},
		$r->{errors} + @{ $r->{left} }, $short->{latency_us}{p99} / 1000,
		map({ sprintf '%d>%d', $before->{$_}{fds}, $after->{$_}{fds} } qw(nginx accel)),
		map({ sprintf '%.1f>%.1f', $before->{$_}{mib}, $after->{$_}{mib} } qw(nginx accel));
	$bench->result->{'lifecycle-accel'}{"$way-$mode-" . ($kept ? 'kept' : 'fresh')} = $r;
	return $r;
}

sub run ($bench) {
	my @wanted = map { $_->{name} } Test::Bench::Hot::chosen($bench->opt('case'), map { { name => $_ } } sort keys %ways);
	printf "\nfcgi-stat-accel replaced behind nginx, 200 clients, 50 of them with long downloads\n";
	printf "  %-8s %-6s %-5s %9s %9s %6s %6s %9s  %s  %s\n", qw(way mode kept restarts short long lost p99-ms descriptors MiB);
	my @rows;
	for my $way (@wanted) {
		for my $mode (@modes) {
			push @rows, row($bench, $way, $mode, $_) for 1, 0;
		}
	}
	print "\nAims\n";
	my $lost = 0;
	$lost += $_->{errors} + @{ $_->{left} } for @rows;
	$bench->aim('requests lost or cut, processes and files left', $lost, '<=', 0);
	return;
}

sub DESTROY ($self) {
	return if $$ != $self->{owner};
	local ($?, $!);
	for my $pid (grep {defined} @$self{qw(nginx accel)}) {
		kill 'KILL', $pid;
		waitpid $pid, 0;
	}
}

1;
