# examples/prometheus/dashboard.json: what Grafana documents as its model, and each panel with data from a real Prometheus that reads a real
# server and a real accelerator under load.  gnuplot draws it.
#
#   ACCEL_DASHBOARD=doc/img/dashboard.png SECONDS=60 prove t/site/dashboard.t       # make doc/img/dashboard.png
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Accel::Slowfs;
use Accel::Util qw(find_program);
use File::Copy qw(copy);
use Storable qw(dclone);
use Test::AccelLoad;
use Test::App;
use Test::Fcgi ();
use Test::Prometheus;
use Test::Prometheus::Dashboard;
use Test::Server;
use Test::Util qw(eventually need_program put slurp temp_tree);
use Time::HiRes qw(sleep time);

my $dir = "$FindBin::Bin/../../examples/prometheus";
my $board = Test::Prometheus::Dashboard->read("$dir/dashboard.json");

# ---------------------------------------------------------------- its structure

is_deeply [$board->problems], [], 'it is what Grafana documents';
my $doc = $board->{doc};
my ($stat)  = grep { $_->{type} eq 'stat' } $board->panels;
my ($lines) = grep { $_->{type} eq 'timeseries' } $board->panels;
my ($heat)  = grep { $_->{type} eq 'heatmap' } $board->panels;
my %mistake = (
	'two panels with one id'          => sub { $stat->{id} = $lines->{id} },
	'an id that is a word'            => sub { $stat->{id} = 'first' },
	'a panel on another one'          => sub { $stat->{gridPos}{x}++ },
	'a panel beside the page'         => sub { $lines->{gridPos}{x} = 20 },
	'a unit that Grafana has not'     => sub { $lines->{fieldConfig}{defaults}{unit} = 'requests' },
	'a data source of one machine'    => sub { $lines->{targets}[0]{datasource}{uid} = 'P1809F7CD0C75ACF3' },
	'a query of another name'         => sub { $lines->{targets}[0]{expr} =~ s/\$job/\$jobs/ },
	'an old schema'                   => sub { $doc->{schemaVersion} = 27 },
	'the id of one data base'         => sub { $doc->{id} = 12 },
	'no variable for the data source' => sub { shift @{ $doc->{templating}{list} } },
	'thresholds without a first one'  => sub { shift @{ $stat->{fieldConfig}{defaults}{thresholds}{steps} } },
	'buckets as lines'                => sub { $heat->{targets}[0]{format} = 'time_series' },
	'two daemons with one name'       => sub { my ($t) = map { @{ $_->{targets} } } grep { $_->{title} eq 'Oldest job' } $board->panels; $t->{legendFormat} = '{{instance}}' },
	'a fixed range'                   => sub { $lines->{targets}[0]{expr} =~ s/\[\$__rate_interval\]/[5m]/ },
);
for my $what (sort keys %mistake) {
	my $whole = dclone($doc);
	$mistake{$what}->();
	isnt scalar(my @found = $board->problems), 0, "found: $what";
	$board->{doc} = $doc = $whole;
	($stat, $lines, $heat) = map { my $type = $_; (grep { $_->{type} eq $type } $board->panels)[0] } qw(stat timeseries heatmap);
}

# ---------------------------------------------------------------- a server, an application, an accelerator, a disk that hangs for a while

my ($fuse, $no_fuse) = Accel::Slowfs->usable;
if (!$fuse) { done_testing; note $no_fuse; exit }
need_program('prometheus', 'prometheus');
my $seconds = $ENV{SECONDS} // 4;
my $tree = temp_tree();
mkdir "$tree/$_" for qw(www www/disk pool);
for my $d (qw(www pool)) { put("$tree/$d/f$_", "$d $_\n" x (20 * $_)) for 1 .. 200 }
my %urls = (hot => [map { ("/f$_", '/f' . (1 + $_ % 20)) } 1 .. 200], cold => [map { "/disk/f$_" } 1 .. 200], app => [('/app/head?Status:%20200%20OK') x 19, '/app/head?Status:%20500%20no'], send => [map { "/send/f$_" } 1 .. 100]);
put("$tree/$_", join '', map { "$_\n" } @{ $urls{$_} }) for keys %urls;
my $disk = Accel::Slowfs->start(source => "$tree/pool", at => "$tree/www/disk", spindles => 4, lookup_ms => 8, read_ms => 8);
my $app  = Test::App->start(protocol => 'http');
my $fcgi = Test::Fcgi->start('--status-path=/accel-status', '--mode=sendfile', '--for=accel-server', "--root=$tree");
symlink '.', "$tree/www/send" or die "symlink: $!";
my $readme = slurp("$dir/README.md");
my ($metrics, $status) = $readme =~ /^```conf\n(.*?)^```/msg;
my $srv = Test::Server->start(dir => "$tree/www", conf => "server.max-open-idle = 2\nserver.max-cached-files = 100\n$metrics" . $status =~ s{/run/stat-accel\.sock}{$fcgi->{socket}}r
	. Test::Server::proxy_block('^/app/', 'unix:' . $app->socket, protocol => 'http', 'max-pool-size' => 4)
	. Test::Server::proxy_block('^/send/', "unix:$fcgi->{socket}"));

# The instances get names that fit into a legend.
my $scrape = slurp("$dir/scrape.yml") =~ s/targets: \[ "127\.0\.0\.1:\d+" \]/'targets: [ "127.0.0.1:' . $srv->port . qq(" ]\n        labels: { instance: "www1" })/ger;
my $prom = Test::Prometheus->start(config => $scrape, every => '200ms', rules => Test::Prometheus::shorter(slurp("$dir/stat-accel.rules.yml"), 60));
ok eventually(sub { $prom->targets_up == 2 }), 'Prometheus reads both';

my $load = sub ($name, @how) { return Test::AccelLoad->start($srv, '/', '--urls', "$tree/$name", '-d', 600, '-q', @how) };
my $from = time;
my @load = (map { $load->(@$_) } ['hot', -c => 10, -r => 150], ['cold', -c => 10, -r => 20], ['app', -c => 4, -r => 40], ['send', -c => 4, -r => 30]);
sleep 0.45 * $seconds;
$disk->hang;
sleep 0.2 * $seconds;
$disk->go;
sleep 0.35 * $seconds;
my @empty;
ok eventually(sub { $board->ask($prom, $from, time, (time - $from) / 150); @empty = $board->empty; !@empty }), 'each query of each panel has an answer' or diag join "\n", @empty;
my $panels = $board->panels;
$_->stop for @load;

# ---------------------------------------------------------------- the picture

SKIP: {
	skip 'gnuplot is not installed', 2 if !find_program('gnuplot');
	my $png = "$tree/dashboard.png";
	ok Test::Prometheus::Picture::draw($board, $png, first => 1), 'a picture of the first line of panels of each row';
	cmp_ok -s $png, '<', 200_000, 'which is small';
	copy($png, $ENV{ACCEL_DASHBOARD}) or die "$ENV{ACCEL_DASHBOARD}: $!" if $ENV{ACCEL_DASHBOARD};
	ok Test::Prometheus::Picture::draw($board, $png), "and one of all $panels panels";
	copy($png, $ENV{ACCEL_DASHBOARD_ALL}) or die "$ENV{ACCEL_DASHBOARD_ALL}: $!" if $ENV{ACCEL_DASHBOARD_ALL};
}
ok $prom->stop, 'Prometheus ends';

done_testing;
