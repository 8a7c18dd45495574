package Test::Bench::HotCost;
# What it costs to ask fcgi-stat-accel about a hot file, by each recipe of examples/.
#
# `run($bench)` starts nginx and lighttpd with the files of examples/ (Test::Site), each without the lines that ask the
# accelerator (`alone`), as the README says, and with each recipe. 100 clients, then 1000, ask for a file of 1 kB in memory. Only what would be
# measured instead of the question is changed: one worker, no access log, connections that are kept.
#
# The first tables have CPU time of server and accelerator apart, per request, the difference to `alone`, and how many questions came for
# each thousand requests. A first answer is compared with the file. The last table shows that a recipe still asks in time: latencies of
# 50 clients of that file, alone and beside 20 clients of cold files of 100 kB on a slow disk. The hot file asks, too.
use v5.36;
use HTTP::Tiny;
use Accel::Figures qw(medians spread);
use Test::Bench::Beside qw(alone beside figures over);
use Accel::Bench::Rig;
use Accel::Peer;
use Test::Site;
use Test::Util qw(slurp);

my $path = '/1k.bin';
my @clients = (100, 1000);      # --quick: the first
my %disk = (spindles => 16, lookup_ms => 8, read_ms => 8, jitter => 20);
my $more_us = 12;               # the aim: at most so much more than alone

# The module in place of the lines that ask.
sub module ($lines) {
	my $module = Test::Util::nginx_module();
	return sub {
		my ($socket) = $_[0] =~ /^\s*fastcgi_pass\s+(\S+);/m;
		return "load_module $module;\n" . $_[0] =~ s{^\s*auth_request /.*\n}{\t\tstat_accel $socket; stat_accel_open off; $lines\n}mr;
	};
}

# edit: makes a variant of the example; exempt: the server never asks, so cold files are not measured.
my @ways = (
	{ kind => 'nginx', name => 'nginx alone', file => 'auth.conf', edit => sub { $_[0] =~ s/^\s*auth_request \/.*\n//mr } },
	{ kind => 'nginx', name => 'nginx auth.conf', file => 'auth.conf' },
	{ kind => 'nginx', name => 'nginx map', file => 'auth.conf', exempt => 1, edit => sub {
		$_[0] =~ s/^(?=\tserver \{)/\tmap \$request_uri \$popular { default 1; }\n/mr
		    =~ s/(?<=location = \/stat-accel \{\n)/if (\$popular) { return 204; }\n/r } },
	{ kind => 'nginx', name => 'nginx cached.conf', file => 'cached.conf' },
	{ kind => 'nginx', name => 'nginx lua.conf', file => 'lua.conf', needs => '/usr/lib/nginx/modules/ngx_http_lua_module.so' },
	{ kind => 'nginx', name => 'nginx module', file => 'auth.conf', edit => module('') },
	{ kind => 'nginx', name => 'nginx module, looks', file => 'auth.conf', edit => module('stat_accel_remember 0;') },
	{ kind => 'lighttpd', name => 'lighttpd alone', file => 'auth.conf', edit => sub { $_[0] =~ s/^\$HTTP\["url"\].*^\}\n//msr } },
	{ kind => 'lighttpd', name => 'lighttpd auth.conf', file => 'auth.conf' },
	{ kind => 'lighttpd', name => 'lighttpd magnet.conf', file => 'magnet.conf', needs => '/usr/lib/lighttpd/mod_magnet.so' },
);

# Changes to an example that leave the question as it is.
my %tuned = (
	nginx => sub ($text) {
		$text =~ s/^worker_processes .*/worker_processes 1;/m;
		$text =~ s/^\s*aio threads;.*\n//m;
		$text =~ s/worker_connections .*/worker_connections 15000;/;
		$text =~ s/^\s*access_log .*/\taccess_log off;\n\tkeepalive_requests 1000000000;\n\topen_file_cache max=10000 inactive=60s;/m;
		return $text;
	},
	lighttpd => sub { return Test::Site::by_command($_[0]) . "\nserver.max-keep-alive-requests = 65535\nserver.max-keep-alive-idle = 3600\n" },
);

sub run ($bench) {
	my ($able, $why) = Accel::Bench::Rig::usable($bench->opt('storage') // 'slowfs');
	my $rig = $able && Accel::Bench::Rig->new($bench, lists => ['small']);
	$bench->note("no second table: $why") unless $rig;
	my $root = $rig ? $rig->root : $bench->files;
	my @ways = wanted($bench);
	my (%cost, %beside);
	for my $round (1 .. $bench->opt('rounds')) {
		for my $n (@clients) {
			push @{ $cost{$n}{ $_->{name} } }, measure($bench, $_, $root, $n) for @ways;
			last if $bench->opt('quick');
		}
		next unless $rig && ($round == 1 || !$bench->opt('quick'));
		push @{ $beside{ $_->{name} } }, neighbours($bench, $rig, $_) for grep { !$_->{exempt} } @ways;
	}
	my @measured = grep { $cost{$_} } @clients;
	my ($slow, @of) = map { my $runs = $_; +{ map { $_ => medians($bench->undisturbed(@{ $runs->{$_} })) } keys %$runs } } \%beside, @cost{@measured};
	$bench->result->{hotcost} = { cost => $of[0], cost_1000 => $of[1], beside => $slow };
	print_cost($measured[$_], $of[$_], $cost{ $measured[$_] }, @ways) for keys @measured;
	print_beside($slow, grep { !$_->{exempt} } @ways) if $rig;
	print "\nAims\n";
	print_aims($bench, $of[0], $slow, @ways);
	print_module_aims($bench, $measured[$_], $of[$_]) for keys @measured;
}

sub wanted ($bench) {
	my @want;
	for my $way (grep { $bench->asked($_->{kind}) || $bench->asked($_->{name}) } @ways) {
		my $why = Accel::Peer->missing($way->{kind});
		$why //= "no $way->{needs}" if $way->{needs} && !-e $way->{needs};
		$bench->note("$way->{name} left out: $why"), next if $why;
		push @want, $way;
	}
	die 'bench: no server to measure; there are: ' . join(', ', map { $_->{name} } @ways) . "\n" unless @want;
	return @want;
}

sub start ($bench, $way, $root) {
	return Test::Site->start($way->{kind}, $way->{file}, root => $root, quiet => 1, $bench->cpu_of_servers, edit => sub {
		my $text = $way->{edit} ? $way->{edit}->($_[0]) : $_[0];
		die "$way->{name}: $way->{file} is not as expected\n" if $way->{edit} && $text eq $_[0];
		return $tuned{ $way->{kind} }->($text);
	});
}

sub measure ($bench, $way, $root, $clients) {
	my $site = start($bench, $way, $root);
	my $r = HTTP::Tiny->new(timeout => 20)->get($site->url . $path);
	$bench->note("$way->{name}: wrong answer, status $r->{status}") unless $r->{content} eq slurp("$root$path");
	$bench->load(-c => $clients, -d => 0.2, $site->url . $path);
	my $run = $bench->quietest(sub { once($bench, $site, $clients) });
	$site->stop;
	return $run;
}

sub once ($bench, $site, $clients) {
	my ($accel) = $site->apps;
	my ($cpu, $asking, $asked, $others) = ($site->cpu, $accel->cpu, $site->asked, $bench->others_begin);
	my $r = $bench->load(-c => $clients, -d => $bench->opt('seconds'), $site->url . $path);
	$cpu = $site->cpu - $cpu;
	$asking = $accel->cpu - $asking;
	my $each = sub { return 1e6 * $_[0] / ($r->{answered} || 1) };
	return { others => $bench->others_end($others, $cpu + $asking), rps => $r->{requests_per_s}, errors => $r->{errors}{all},
		server => $each->($cpu), accel => $each->($asking), cpu => $each->($cpu + $asking),
		asked => 1000 * ($site->asked - $asked) / ($r->{answered} || 1), p99 => $r->{latency_us}{p99} };
}

# The slow disk stops first: a server that waits for it cannot end.
sub neighbours ($bench, $rig, $way) {
	my $others = $bench->others_begin;
	my $slow = $rig->mount_disk(\%disk);
	my $site = start($bench, $way, $rig->root);
	my $alone = alone($bench, $site, path => $path);
	Test::Bench::Beside::warm_up($bench, $site, $path);
	my $run = figures($alone, beside($bench, $site, { clients => 20, list => $rig->list('small') }, path => $path));
	my $used = Accel::Peer::process_cpu($slow->pid);
	$used += $_->cpu for $site, $site->apps;
	$run->{others} = $bench->others_end($others, $used);
	$slow->stop;
	$site->stop;
	return $run;
}

sub print_cost ($clients, $of, $runs, @ways) {
	print "\nA hot file of 1 kB, $clients clients: CPU us of each request\n";
	printf "  %-22s %9s %5s %8s %8s %8s %10s %12s %8s %7s %6s\n", '', 'req/s', '+-%', 'server', 'accel', 'both', 'over alone',
	    'asked/1000', 'p99 ms', 'others%', 'errors';
	for my $way (@ways) {
		my $m = $of->{ $way->{name} };
		my $alone = $of->{"$way->{kind} alone"};
		$m->{more} = $m->{cpu} - $alone->{cpu} if $alone;
		printf "  %-22s %9.0f %5.1f %8.1f %8.1f %8.1f %10s %12.2f %8.2f %7.0f %6d\n", $way->{name}, $m->{rps},
		    spread(map { $_->{rps} } @{ $runs->{ $way->{name} } }), @$m{qw(server accel cpu)},
		    $alone && $alone != $m ? sprintf '%.1f', $m->{more} : '', $m->{asked}, $m->{p99} / 1000, @$m{qw(others errors)};
	}
}

sub print_beside ($of, @ways) {
	print "\n50 clients of that file, 1000 req/s by the clock, beside 20 clients of cold files of 100 kB, $disk{spindles} spindles\n";
	printf "  %-22s %12s %12s %12s %9s %9s %7s %6s\n", '', 'alone p99 ms', 'beside p99', 'max ms', 'served/s', 'cold MB/s', 'others%', 'errors';
	for my $way (@ways) {
		my $m = $of->{ $way->{name} };
		printf "  %-22s %12.2f %12.2f %12.1f %9.0f %9.1f %7.0f %6d\n", $way->{name}, (map { $m->{$_} / 1000 } qw(alone_p99 p99 max)),
		    @$m{qw(served cold_mb others errors)};
	}
}

# The cheapest recipe of each server.  A p99 of less than a millisecond is as good as alone.
sub print_aims ($bench, $of, $slow, @ways) {
	for my $kind (qw(nginx lighttpd)) {
		my $alone = $of->{"$kind alone"} // next;
		my ($best) = sort { $of->{$a}{cpu} <=> $of->{$b}{cpu} } map { $_->{name} }
		    grep { $_->{kind} eq $kind && $_->{name} ne "$kind alone" && !$_->{exempt} } @ways;
		$bench->aim("$best: CPU us more than alone", $of->{$best}{more}, '<=', $more_us, $of->{$best}, $alone) if $best;
		my $beside = $best && $slow->{$best} // next;
		my $mark = 2 * $beside->{alone_p99} > 1000 ? 2 * $beside->{alone_p99} : 1000;
		$bench->aim("$best: p99 in ms beside cold clients", $beside->{p99} / 1000, '<=', $mark / 1000, $beside);
	}
}

sub print_module_aims ($bench, $clients, $of) {
	my $alone = $of->{'nginx alone'} // return;
	my %most = ('nginx module' => 1.05, 'nginx module, looks' => 1.3);
	for my $name (grep { $of->{$_} } sort keys %most) {
		$bench->aim("$name: CPU / alone, $clients clients", over($of->{$name}{cpu}, $alone->{cpu}), '<=', $most{$name}, $of->{$name}, $alone);
	}
}

1;
