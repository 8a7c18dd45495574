package Test::Bench::HotCost;

=head1 NAME

Test::Bench::HotCost - what it costs to ask fcgi-stat-accel about a hot file, by each recipe of F<examples/>

=head1 DESCRIPTION

C<run($bench)> starts nginx and lighttpd with the files of F<examples/> (Test::Site), each without the lines that ask the
accelerator (C<alone>), as the README says, and with each recipe. 100 clients ask for a file of 1 kB in memory. Only what would be
measured instead of the question is changed: one worker, no access log, connections that are kept.

The table has CPU time of server and accelerator apart, per request, the difference to C<alone>, and how many questions came for
each thousand requests. A first answer is compared with the file.

=cut

use strict;
use warnings;
use HTTP::Tiny;
use Test::Bench qw(medians spread);
use Test::Site;
use Test::Util qw(slurp);

my $path = '/1k.bin';
my @load = (-c => 100);
my $more_us = 12;               # the aim: at most so much more than alone

# without: the lines that ask.
my @ways = (
	{ kind => 'nginx', name => 'alone', file => 'auth.conf', without => qr/^\s*auth_request \/.*\n/m },
	{ kind => 'nginx', name => 'auth.conf', file => 'auth.conf' },
	{ kind => 'nginx', name => 'cached.conf', file => 'cached.conf' },
	{ kind => 'nginx', name => 'lua.conf', file => 'lua.conf', needs => '/usr/lib/nginx/modules/ngx_http_lua_module.so' },
	{ kind => 'lighttpd', name => 'alone', file => 'auth.conf', without => qr/^\$HTTP\["url"\].*^\}\n/ms },
	{ kind => 'lighttpd', name => 'auth.conf', file => 'auth.conf' },
	{ kind => 'lighttpd', name => 'magnet.conf', file => 'magnet.conf', needs => '/usr/lib/lighttpd/mod_magnet.so' },
);

# Changes to an example that leave the question as it is.
my %tuned = (
	nginx => sub {
		my ($text) = @_;
		$text =~ s/^worker_processes .*/worker_processes 1;/m;
		$text =~ s/^\s*aio threads;.*\n//m;
		$text =~ s/worker_connections .*/worker_connections 15000;/;
		$text =~ s/^\s*access_log .*/\taccess_log off;\n\tkeepalive_requests 1000000000;\n\topen_file_cache max=10000 inactive=60s;/m;
		return $text;
	},
	lighttpd => sub { return Test::Site::by_command($_[0]) . "\nserver.max-keep-alive-requests = 65535\nserver.max-keep-alive-idle = 3600\n" },
);

sub run {
	my ($bench) = @_;
	my $root = $bench->files;
	my @ways = wanted($bench);
	my %runs;
	for my $round (1 .. $bench->opt('rounds')) {
		push @{ $runs{"$_->{kind} $_->{name}"} }, measure($bench, $_, $root) for @ways;
	}
	my %of = map { $_ => medians($bench->undisturbed(@{ $runs{$_} })) } keys %runs;
	$bench->result->{hotcost} = \%of;
	print_table($bench, \%of, \%runs, @ways);
	print "\nAims\n";
	print_aims($bench, \%of, @ways);
}

sub wanted {
	my ($bench) = @_;
	my @want;
	for my $way (grep { $bench->asked($_->{kind}) || $bench->asked("$_->{kind} $_->{name}") } @ways) {
		my $why = Test::Peer->missing($way->{kind});
		$why //= "no $way->{needs}" if $way->{needs} && !-e $way->{needs};
		$bench->note("$way->{kind} $way->{name} left out: $why"), next if $why;
		push @want, $way;
	}
	die 'bench: no server to measure; there are: ' . join(', ', map { "$_->{kind} $_->{name}" } @ways) . "\n" unless @want;
	return @want;
}

sub measure {
	my ($bench, $way, $root) = @_;
	my $site = Test::Site->start($way->{kind}, $way->{file}, root => $root, quiet => 1, $bench->cpu_of_servers, edit => sub {
		my $text = $tuned{ $way->{kind} }->($_[0]);
		!$way->{without} or $text =~ s/$way->{without}// or die "$way->{file}: nothing to leave out\n";
		return $text;
	});
	my $r = HTTP::Tiny->new(timeout => 20)->get($site->url . $path);
	$bench->note("$way->{kind} $way->{name}: wrong answer, status $r->{status}") unless $r->{content} eq slurp("$root$path");
	$bench->load(@load, -d => 0.2, $site->url . $path);
	my $run = $bench->quietest(sub { once($bench, $site) });
	$site->stop;
	return $run;
}

sub once {
	my ($bench, $site) = @_;
	my ($accel) = $site->apps;
	my ($cpu, $asking, $asked, $others) = ($site->cpu, $accel->cpu, $site->asked, $bench->others_begin);
	my $r = $bench->load(@load, -d => $bench->opt('seconds'), $site->url . $path);
	$cpu = $site->cpu - $cpu;
	$asking = $accel->cpu - $asking;
	my $each = sub { return 1e6 * $_[0] / ($r->{answered} || 1) };
	return { others => $bench->others_end($others, $cpu + $asking), rps => $r->{rps}, errors => $r->{errors}{all},
		server => $each->($cpu), accel => $each->($asking), cpu => $each->($cpu + $asking),
		asked => 1000 * ($site->asked - $asked) / ($r->{answered} || 1), p99 => $r->{latency_us}{p99} };
}

sub print_table {
	my ($bench, $of, $runs, @ways) = @_;
	print "\nA hot file of 1 kB, 100 clients: CPU us of each request\n";
	printf "  %-22s %9s %5s %8s %8s %8s %10s %12s %8s %7s %6s\n", '', 'req/s', '+-%', 'server', 'accel', 'both', 'over alone',
	    'asked/1000', 'p99 ms', 'others%', 'errors';
	for my $way (@ways) {
		my $m = $of->{"$way->{kind} $way->{name}"};
		my $alone = $of->{"$way->{kind} alone"};
		$m->{more} = $m->{cpu} - $alone->{cpu} if $alone;
		printf "  %-22s %9.0f %5.1f %8.1f %8.1f %8.1f %10s %12.2f %8.2f %7.0f %6d\n", "$way->{kind} $way->{name}", $m->{rps},
		    spread(map { $_->{rps} } @{ $runs->{"$way->{kind} $way->{name}"} }), @$m{qw(server accel cpu)},
		    $alone && $alone != $m ? sprintf '%.1f', $m->{more} : '', $m->{asked}, $m->{p99} / 1000, @$m{qw(others errors)};
	}
}

# The cheapest recipe of each server.
sub print_aims {
	my ($bench, $of, @ways) = @_;
	for my $kind (qw(nginx lighttpd)) {
		my $alone = $of->{"$kind alone"} // next;
		my ($best) = sort { $of->{$a}{cpu} <=> $of->{$b}{cpu} } map { "$_->{kind} $_->{name}" }
		    grep { $_->{kind} eq $kind && $_->{name} ne 'alone' } @ways;
		$bench->aim("$best: CPU us more than $kind alone", $of->{$best}{more}, '<=', $more_us, $of->{$best}, $alone) if $best;
	}
}

1;
