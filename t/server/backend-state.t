# What tells that an application fails: its state, since when and why; what clients got instead; on all status pages.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use JSON::PP ();
use Test::App;
use Test::Server;
use Test::Util qw(eventually program);

my ($app, $checked) = map { Test::App->start(protocol => 'http') } 1, 2;
my $gone = Test::App->start(protocol => 'http');
$gone->down;
my $urls = qq{server.pid-file = "\@RUN\@/pid"\nstatus.status-url = "/status"\nstatus.metrics-url = "/metrics"\nserver.max-worker = 1\n};
my $srv = Test::Server->start(conf => $urls
	. Test::Server::proxy_block('^/app/', 'unix:' . $app->socket, protocol => 'http', 'reply-timeout' => 1)
	. Test::Server::proxy_block('^/gone/', 'unix:' . $gone->socket, protocol => 'http', 'disable-time' => 60)
	. Test::Server::proxy_block('^/2/app/', 'unix:' . $checked->socket, protocol => 'http', 'check-url' => '/app/head?Status:%20200%20ok||x', 'check-interval' => 1));

sub json () { return JSON::PP::decode_json($srv->fetch('/status?json')->{body}) }
sub backend ($a) { return (grep { $_->{name} eq 'unix:' . $a->socket } @{ json()->{backends} })[0] }
sub metric ($name, $a, $more = '') {
	my ($v) = $srv->fetch('/metrics')->{body} =~ /^accel_backend_\Q$name\E\{block="\d+",backend="unix:\Q@{[ $a->socket ]}\E"\Q$more\E\} (\d+)$/m;
	return $v;
}

is backend($app)->{state}, 'up', 'at first: up';
is metric('state', $app, ',state="up"'), 1, '... and in the metrics';
my $none = grep { $_ } map { metric('own_5xx_total', $app, qq{,status="502",cause="$_"}) } qw(bad-reply hang-up);
is $none, 0, 'no own 5xx';

is $srv->fetch('/gone/x')->{status}, 503, 'nobody listens';
is $srv->fetch('/gone/x')->{status}, 503, '... and it is left alone';
is metric('own_5xx_total', $gone, ',status="503",cause="connect"'), 1, 'the first is a connect';
is metric('own_5xx_total', $gone, ',status="503",cause="no-backend"'), 1, 'the second has no backend';
my $b = backend($gone);
is "$b->{state} $b->{own_5xx_sum}", 'unreachable 2', 'JSON';
like $b->{reason}, qr/^connect: /, '... says why';
cmp_ok abs($b->{since} - time), '<', 60, '... and since when';
is metric('state', $gone, ',state="unreachable"'), 1, 'metrics: the state';
is metric('state', $gone, ',state="up"'), 0, '... is not another';
cmp_ok metric('state_since_timestamp_seconds', $gone), '>=', $b->{since} - 1, '... since';
like $srv->fetch('/status')->{body}, qr/<b class="bad">unreachable<\/b> <small>connect: /, 'HTML';
like $srv->fetch('/metrics')->{body}, qr/^accel_own_5xx_total\{cause="application"\} 2$/m, 'own 5xx of the server, by cause';

is $srv->fetch('/app/head?Status:%20500%20no||x')->{status}, 500, 'a 500 of the application';
is metric('replies_5xx_total', $app), 1, '... is its own';
is metric('replies_total', $app), 1, '... and a reply';
is backend($app)->{own_5xx_sum}, 0, '... not one of the server';
like $srv->fetch('/metrics')->{body}, qr/^accel_own_5xx_total\{cause="application"\} 2$/m, '... there neither';

is $srv->fetch('/2/app/head?Status:%20200%20ok||x')->{status}, 200, 'the first request begins the checks';
ok eventually(sub { backend($checked)->{check_passed} > 0 }), 'a check passes';
$checked->down;
ok eventually(sub { backend($checked)->{state} eq 'check-failed' }), 'a check fails: the state says so, without a request';
is metric('state', $checked, ',state="check-failed"'), 1, '... in the metrics';
cmp_ok metric('check_timestamp_seconds', $checked), '>=', metric('check_success_timestamp_seconds', $checked), '... with the times of checks';
is metric('replies_total', $checked), 1, 'a check is not a reply to a client';
is backend($checked)->{own_5xx_sum}, 0, '... and its failure no error of a client';

my $ctl = JSON::PP::decode_json((Test::Util::run_fed(program('accel-server'), '', 'ctl', 'status', '--json', '--socket=' . $srv->run . '/pid.ctl'))[1]);
is "$ctl->{backends} $ctl->{backends_out}", '3 2', 'ctl status: how many are out';
like $ctl->{backends_out_said}, qr/^unix:\Q@{[ $checked->socket ]}\E check-failed since [-\d]+ [\d:]+Z: /m, '... which, since when, and why';

done_testing;
