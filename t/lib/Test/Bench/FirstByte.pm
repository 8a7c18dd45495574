package Test::Bench::FirstByte;
# Cold files of 10 MB: when the first byte comes, and how much is delivered.
#
# `run($bench)` measures nginx, nginx with `aio threads`, and lighttpd, each alone and with fcgi-stat-accel in auth mode for each
# `--warm`, and nginx with its module, beside 1 and 100 clients of cold 10 MB files, on 2 and on 16 spindles. Each cell has a disk and a server of its own, so no
# file is warm, and no name is asked for twice. The cold clients are cut off after `seconds`. 50 clients of a hot file, which is exempt from
# the accelerator, are measured before and during that time.
use v5.36;
use Accel::Figures qw(spread);
use Test::Bench::Beside qw(beside hot over rounds);
use Test::Bench::Hot;
use Accel::Bench::Rig;
use Accel::Util qw(program);
use Test::Util ();

my $hot = '/1k.bin';
my $hot_alone = 1;              # seconds of the hot clients without cold ones
my $names = 256;                # more than a disk of 16 spindles reads in the time of one cell, and 100 more
my $threads = 32;
my %disk = (lookup_ms => 8, read_ms => 8, jitter => 20);
my @servers = (
	{ kind => 'nginx', name => 'nginx' },
	{ kind => 'nginx', name => 'nginx-aio', aio => 1 },
	{ kind => 'lighttpd', name => 'lighttpd' },
);
my @warm = qw(alone open read:256k read:16m auto);
my %quick = map { $_ => 1 } map { ("$_ alone", "$_ auto", "$_ module") } map { $_->{name} } @servers;
$quick{$_} = 1 for 'nginx read:16m', 'lighttpd read:16m', 'nginx-aio read:256k';
# The settings that the aims are about.
my $recommended = 'auto';
# The mode for servers that do not sleep in sendfile().
my %auto = ('nginx-aio' => 'auto:threads');
my @cases = map { my $n = $_; map { { name => "$_-$n", what => 'cell', clients => $_, spindles => $n } } (1, 100) } (2, 16);

sub kinds ($bench) {
	my @known;
	for my $s (@servers) {
		for my $warm (grep { $_ eq 'alone' || understands($bench, $_) } @warm) {
			my $name = "$s->{name} $warm";
			push @known, { %$s, name => $name, server => $s->{name}, warm => $warm, via_stat_accel => 0, threads => $threads, exempt => $hot,
				front => $warm ne 'alone', stat_accel_args => ['--warm=' . ($warm eq 'auto' && $auto{ $s->{name} } || $warm)] };
		}
	}
	push @known, map { { %$_, name => "$_->{name} module", server => $_->{name}, warm => 'module', via_stat_accel => 0, threads => $threads,
		module => 'accel', module_file => Test::Util::nginx_module() } } grep { $_->{kind} eq 'nginx' } @servers;
	@known = grep { $quick{ $_->{name} } } @known if $bench->opt('quick') && !$bench->opt('server');
	return $bench->wanted(@known);
}

sub understands ($bench, $warm) {
	return $warm eq 'alone' || system(program('fcgi-stat-accel') . " --warm=$warm --version >/dev/null 2>&1") == 0;
}

sub run ($bench) {
	my $rig = Accel::Bench::Rig->new($bench, lists => []);
	$rig->add_names(many => $names, '10m');
	my @kinds = kinds($bench);
	my @chosen = Test::Bench::Hot::chosen($bench->opt('case'), @cases);
	@chosen = grep { $_->{name} ne '1-2' } @chosen if $bench->opt('quick') && !$bench->opt('case');
	my @done = rounds($bench, $rig, 'firstbyte', \@kinds, \@chosen, cell => sub { return cell($bench, $rig, @_) });
	print_case($bench, $_, @kinds) for @done;
	print "\nAims of --warm=$recommended, and of the module\n";
	print_aims($bench, $_, @kinds) for @done;
}

# ------------------------------------------------------------- one cell

sub cell ($bench, $rig, $case, $kind) {
	return ($kind->{name} => $rig->with_server($kind, { %disk, spindles => $case->{spindles} }, sub ($srv) {
		Test::Bench::Beside::warm_up($bench, $srv, $hot);
		my $alone = hot($bench, $srv, path => $hot, seconds => $hot_alone);
		my ($beside, $done) = beside($bench, $srv, { clients => $case->{clients}, list => $rig->list('many'), head_start => 0 }, path => $hot);
		return { alone => $alone->{latency_us}{p99} / 1000, beside => $beside->{latency_us}{p99} / 1000,
			(map { ("first_$_" => $done->{first_byte_us}{$_} / 1000) } qw(p50 p99)),
			mb => $done->{body_bytes} / 1e6 / $bench->opt('seconds'), files => $done->{answered},
			errors => $alone->{errors}{all} + $beside->{errors}{all} + $done->{errors}{all} };
	}));
}

# ------------------------------------------------------------- figures

sub print_case ($bench, $case, @kinds) {
	my ($of, $runs) = @$case{qw(of runs)};
	my $clients = $case->{clients} == 1 ? '1 client' : "$case->{clients} clients";
	printf "\n%s of cold 10 MB files, %d spindles of %d ms for 128 KiB, cut after %g s  (%s)\n", $clients, $case->{spindles}, $disk{read_ms},
	    $bench->opt('seconds'), $case->{name};
	print "  MB/s: body bytes that clients received until the cut, unfinished files too. First byte: of the body, a request without one counts with its age.\n";
	printf "  %-10s %-10s %20s   %30s   %8s %6s %8s %6s %7s %6s\n", 'server', '--warm', 'first byte: p50  p99', 'hot p99 ms: alone  beside    x', 'MB/s', '+-%',
	    'of aio', 'files', 'others%', 'errors';
	my $aio = $of->{'nginx-aio alone'};
	for my $k (grep { $of->{ $_->{name} } } @kinds) {
		my $m = $of->{ $k->{name} };
		$m->{of_aio} = over($m->{mb}, $aio->{mb}) if $aio;
		printf "  %-10s %-10s %11.0f %8.0f   %16.2f %8.2f %5.1f   %7.1f %6.1f %8s %6.0f %7.0f %6d\n", $k->{server}, $k->{warm}, @$m{qw(first_p50 first_p99)},
		    @$m{qw(alone beside)}, over($m->{beside}, $m->{alone}), $m->{mb}, spread(map { $_->{mb} } @{ $runs->{ $k->{name} } }),
		    (defined $m->{of_aio} ? sprintf '%.2f', $m->{of_aio} : '-'), @$m{qw(files others errors)};
	}
}

sub print_aims ($bench, $case, @kinds) {
	my $of = $case->{of};
	my $aio = $of->{'nginx-aio alone'};
	for my $k (grep { $_->{warm} =~ /^(?:\Q$recommended\E|module)$/ && $of->{ $_->{name} } } @kinds) {
		my $m = $of->{ $k->{name} };
		my $where = "$k->{server} $k->{warm}, $case->{clients} of 10 MB, $case->{spindles} spindles";
		$bench->aim("$where: MB/s / nginx-aio alone", $m->{of_aio}, '>=', 0.95, $m, $aio) if $aio;
		my $most = 2 * $m->{alone} > 1 ? 2 * $m->{alone} : 1;
		$bench->aim("$where: hot p99 ms", $m->{beside}, '<=', $most, $m);
	}
}

1;
