# The attacks of HTTP/2 reach a server that is not ours, and the rig reads what that server says.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../scripts/lib";
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Accel::Peer;
use Test::Util qw(program put);

plan skip_all => 'no ' . program('hostile') . ' (make rigs)' unless -x program('hostile');
my $why = Accel::Peer->missing('nginx');
plan skip_all => $why if $why;

my @listed = qx(${\program('hostile')} --help) =~ /^  (h2-\S+) /mg;
cmp_ok scalar @listed, '>=', 20, 'attacks of HTTP/2 are listed';

my $www = File::Temp->newdir('hostile-h2-XXXXXX', TMPDIR => 1);
chmod 0755, "$www";
put("$www/$_->[0]", 'x' x $_->[1]) for ['hot', 1000], ['big', 4 << 20], map { ["c$_", 1000] } 0 .. 3;
my $nginx = Accel::Peer->start('nginx', root => "$www", http2 => 1);

# All at once, so each has a few connections only.
my ($report) = reverse split /\n/, qx(@{[ join ' ', 'nice -n 19', program('hostile'), '-d 1 --file /hot --big /big --app /hot --cold /c:4', $nginx->url, map { "$_,conns=2" } @listed ]});
my %did = map { $_->{attack} => $_ } @{ JSON::PP::decode_json($report)->{attacks} };
for my $name (@listed) {
	my $d = $did{$name};
	ok $d->{connections} && !$d->{failed} && $d->{frames} >= $d->{connections} && $d->{frames_received}, "$name: frames are sent, and frames come back"
	    or diag explain $d;
}

# What nginx 1.22 and its successors say to each.
cmp_ok $did{'h2-reset'}{answers}{'2xx'}, '>', 0, 'h2-reset: some streams are answered before they are reset';
for my $case (['h2-continuation', 'goaway'], ['h2-empty-head', 'goaway'], ['h2-bomb', 'goaway'], ['h2-many', 'reset_streams', 'REFUSED_STREAM'], ['h2-made-reset', 'reset_streams']) {
	my ($name, $what, $code) = @$case;
	my $said = $did{$name}{$what};
	ok $code ? $said->{$code} : keys %$said, "$name: $what" . ($code ? " $code" : '') or diag explain $did{$name};
}
ok $nginx->alive, 'the server runs on';

done_testing;
