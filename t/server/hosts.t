# Replies by status and by host: a client, who sends any status line to an application and any Host, makes no row of its own.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use JSON::PP ();
use Test::App;
use Test::Server;
use Test::Util qw(put slurp);

use constant HOSTS_MAX => 100;  # server/status/hosts.h

my $app = Test::App->start(protocol => 'http');
sub blocks (@names) { return join '', map { qq{\$HTTP["host"] == "$_" {\n\tserver.tag = "x"\n}\n} } @names }
my $pages = qq{status.status-url = "/status"\nstatus.metrics-url = "/metrics"\nserver.max-worker = 1\n} . Test::Server::proxy_block('^/app/', 'unix:' . $app->socket, protocol => 'http');
my $srv = Test::Server->start(conf => $pages . blocks('www.example.org', 'Shop.example.org.:8443') . qq{\$HTTP["host"] =~ "^many\\." {\n\tserver.tag = "y"\n}\n});
$srv->write('a', 'A' x 10);

sub page () { return $srv->fetch('/metrics')->{body} }
# "host class" => replies, those that are not 0
sub hosts () { return { map { s/",class="/ /r } grep { $_ } page() =~ /^accel_host_replies_total\{host="([^}]*)"\} ([1-9]\d*)$/mg } }
sub get ($host, $path = '/a') { return $srv->fetch($path, Host => $host)->{status} }

get('www.example.org') for 1 .. 3;
is get('WWW.example.org:80'), 200, 'asked';
get('shop.example.org', '/none');
get("any$_.example.net") for 1 .. 30;
get('many.example.org');
my %got = %{ hosts() };
is $got{'www.example.org 2xx'}, 4, 'a host that the configuration names, in any spelling';
is $got{'shop.example.org 4xx'}, 1, '... another one, whatever its port';
is_deeply [sort grep { !/^\(other\)/ } keys %got], ['shop.example.org 4xx', 'www.example.org 2xx'], 'no other name is a label';
is $got{'(other) 2xx'}, 31, '... they are counted together' or diag explain \%got;
like page(), qr/^accel_host_sent_bytes_total\{host="www\.example\.org"\} 40$/m, 'bytes of bodies';
my ($row) = grep { $_->{name} eq 'www.example.org' } @{ JSON::PP::decode_json($srv->fetch('/status?json')->{body})->{hosts} };
is "$row->{'2xx'} $row->{sent_bytes}", '4 40', 'JSON';

get('x', "/app/head?Status:%20$_%20x||b") for 200, 418, 418, 599;
my %by = page() =~ /^accel_replies_by_status_total\{status="(\w+)"\} (\d+)$/mg;
is "$by{418} $by{599} $by{404}", '2 1 1', 'each status has its row';
is scalar(grep { !/\A(?:[1-5]\d\d|other)\z/ } keys %by), 0, '... of 100 to 599, and other';

# A name keeps its place through a reload; after HOSTS_MAX all are others.
my $file = $srv->run . '/server.conf';
put($file, slurp($file) . blocks(map { "h$_.example" } 1 .. HOSTS_MAX + 20));
$srv->signal('USR1');
$srv->wait_log(qr/ev=reloaded/);
get("h$_.example") for 1, HOSTS_MAX - 2, HOSTS_MAX - 1, HOSTS_MAX + 20;
%got = %{ hosts() };
is scalar(() = page() =~ /^accel_host_sent_bytes_total\{/mg), HOSTS_MAX + 1, 'HOSTS_MAX rows, and one';
is join(' ', map { $got{"h$_.example 2xx"} // 0 } 1, HOSTS_MAX - 2, HOSTS_MAX - 1), '1 1 0', '... for those that come first';
cmp_ok $got{'(other) 2xx'}, '>=', 33, '... the rest are others';
is $got{'www.example.org 2xx'}, 4, 'counts stay';

done_testing;
