#!/usr/bin/perl
# Thousands of kept connections share four threads.  Each is answered again and again, and so is a new one.

use v5.36;
use Test::More;
use IPC::Open2 ();
use JSON::PP qw(decode_json);
use Test::Fcgi qw(put temp_tree program);

# Sanitizers cost a factor; what they look for shows in fewer requests.
my $slow = program() =~ m{/[at]san/};
my $descriptors = `sh -c 'ulimit -Hn'`;
my $most = $descriptors eq "unlimited\n" || $descriptors > 10_500 ? 10_000 : 2_000;
my $connections = $slow ? 2_000 : $most;
plan skip_all => "only $descriptors descriptors" if $descriptors ne "unlimited\n" && $descriptors < 2_500;

my $tree = temp_tree();
my @files = map { put("$tree/$_", 'x' x ($_ * 100)) } 1 .. 50;
my $paths = put("$tree/paths", join '', map({ "$_\n" } @files), map { "$tree/none$_ 404\n" } 1 .. 10);
my $app = Test::Fcgi->start('-t', 4, '-H', 'X-Sendfile');

sub command { return ("$Test::Fcgi::B/bin/accel-load", '--fastcgi', '--json', '--expect=X-Sendfile', '-t', 60, @_, -u => $paths, "unix:$app->{socket}") }

sub load (@args) {
	open my $fh, '-|', command(@args) or die "accel-load: $!";
	my $r = decode_json(join '', <$fh>);
	close $fh;
	$r->{exit} = $? >> 8;
	return $r;
}

sub all_answered {
	my ($what, $requests, @args) = @_;
	my $r = load(-n => $requests, @args);
	is "$r->{answered} $r->{errors}{all} $r->{exit}", "$requests 0 0", $what or diag explain $r->{errors};
	is $r->{client}{never}, 0, '... on every connection';
	return $r;
}

subtest "$connections kept connections are all answered" => sub {
	my $pid = IPC::Open2::open2(my $said, my $order, command('--hold', -c => $connections));
	is scalar <$said>, "held $connections answered $connections errors 0\n", 'all are answered';
	is $app->get($files[0])->{status}, 200, 'so is one more beside them';
	syswrite $order, "again\n";
	is scalar <$said>, sprintf("held %d answered %d errors 0\n", $connections, 2 * $connections), 'all once more, none was closed';
	close $order;
	my $r = decode_json(scalar <$said>);
	is "$r->{errors}{all} $r->{connects} $r->{client}{never} $r->{client}{least}", "0 $connections 0 2", 'each of them twice';
	waitpid $pid, 0;
	is $?, 0, 'without errors';
};

subtest '200 connections are answered in turn' => sub {
	my $requests = $slow ? 2_000 : 20_000;
	all_answered('kept', $requests, -c => 200);
	my $r = all_answered('a connection per request', $requests / 4, -c => 200, '--close');
	cmp_ok $r->{connects}, '>=', $requests / 4, '... one for each';
};

is $app->stop, 0, 'a clean end';
is $app->log_text, '', 'a silent one';
done_testing;
