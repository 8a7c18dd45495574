# Applications that fail, with the rig of `make drill-applications`: each fault has its alert, and a good application has none.
use v5.36;
use FindBin;
use lib map { "$FindBin::Bin/../$_" } qw(lib ../scripts/lib);
use Test::More;
use Test::Drill::Applications;

my $drill = Test::Drill::Applications->new(servers => ['accel'], protocols => [qw(http fastcgi)], kinds => [qw(refuses hangs-up malformed answers-500 slow)], seconds => 3, rate => 3);
$drill->run;
my %tells = (refuses => 'BackendUnreachable', 'hangs-up' => 'BackendAllFail', malformed => 'BackendAllFail', 'answers-500' => 'BackendAllFail', slow => '');
for my $protocol (qw(http fastcgi)) {
	for my $kind (sort keys %tells) {
		my ($one, $checked, $two) = map { $drill->cell('accel', $protocol, $kind, @$_) } [backends => 1], [backends => 1, checks => 1], [backends => 2];
		cmp_ok $one->{asked}, '>', 3, "$protocol, $kind: asked";
		is $one->{good}, $kind eq 'slow' ? $one->{asked} : 0, '... good answers of the only backend';
		is $one->{tells}, $tells{$kind}, '... what tells';
		is $checked->{tells}, $kind eq 'slow' ? '' : 'CheckFailed', '... with checks';
		cmp_ok $two->{good}, '>', 0, '... the second backend answers';
	}
}
like $drill->table, qr/^\| refuses connections \| 0 %, /m, 'the table';

done_testing;
