#!/usr/bin/perl
# fcgi-stat-accel notices by itself when its web server's questions accelerate nothing: one line in the log, and on the status page.

use strict;
use warnings;
use Test::More;
use JSON::PP ();
use Test::Fcgi qw(put request temp_tree eventually);
use Test::Util qw(slurp);

my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(www www/sub);
put("$dir/www/$_", 'x' x 1000) for 'a' .. 'z';

my $app;

# A window is 50 ms, so always-warm takes three seconds.
sub up {
	my (@options) = @_;
	$app = Test::Fcgi->start('--status-path=/st', '--advice=50', '--mode=auth', "--root=$dir/www", @options);
}

sub page { my ($query) = @_; return $app->ask(REQUEST_METHOD => 'GET', SCRIPT_NAME => '/st', QUERY_STRING => $query // '')->{body} }

# The ids that hold now.
sub advices { return map { $_->{id} } @{ JSON::PP::decode_json(page('json'))->{advice} } }

# Questions on one kept connection, each with the next path of $next, until $enough says so.
sub ask_until {
	my ($next, $enough) = @_;
	my $c = $app->connect;
	my $n = 0;
	return eventually(sub {
		for (1 .. 50) {
			$c->send(request(1, 1, REQUEST_METHOD => 'GET', $next->($n++)));
			defined $c->reply or die 'no answer: ' . $app->log_text;
		}
		$enough->();
	});
}

# The questions lead to this advice, and files that exist end it.
sub notices {
	my ($id, $next, $example) = @_;
	ok ask_until($next, sub { "@{[advices()]}" eq $id }), "$id: on the page" or diag page();
	my ($advice) = @{ JSON::PP::decode_json(page('json'))->{advice} };
	cmp_ok $advice->{percent}, '>=', 90, 'with its share';
	is $advice->{example}, $example, 'with an example' if defined $example;
	like page(), qr/^accel\.advice\.$id: Nearly \w.*\)? [A-Z].*\.$/m, 'as text';
	like page('metrics'), qr/^fcgi_stat_accel_advice\{id="$id"\} 1$/m, 'as a metric';
	ok ask_until(\&healthy, sub { !advices() }), 'other questions end it';
	like page(), qr/^accel\.advice: none$/m, 'as text';
	unlike page('metrics'), qr/_advice\{.*1$/m, 'as a metric';
	my $log;
	ok eventually(sub { ($log = $app->log_text) =~ /ev=advice\.ends id=$id / }), 'and the log says so';
	is scalar(() = $log =~ /ev=advice\.begins id=$id percent=\d+ of=\d+ example=\S+ .*do="[A-Z]/g), 1, 'once in the log' or diag $log;
	is scalar(() = $log =~ /ev=advice/g), 2, 'nothing else' or diag $log;
	is $app->stop, 0, 'it ends with 0';
}

# Files that exist; some names do not.
sub healthy {
	my ($n) = @_;
	return SCRIPT_FILENAME => "$dir/www/" . ($n % 20 ? ('a' .. 'z')[$n % 26] : "none$n");
}

subtest 'absent' => sub { up(); notices('absent', sub { SCRIPT_FILENAME => "$dir/www/none/$_[0]" }) };

subtest 'outside of the roots' => sub {
	up();
	notices('outside-roots', sub { SCRIPT_FILENAME => "/srv/other/$_[0]" });
};

subtest 'no path' => sub {
	up();
	notices('no-path', sub { WARM_PATH => "file/$_[0]" }, 'file/0');
	up();
	notices('no-path', sub { SERVER_NAME => 'x' }, '');
};

subtest 'directories' => sub {
	mkdir "$dir/www/d$_" for 0 .. 9;
	up();
	notices('directories', sub { SCRIPT_FILENAME => "$dir/www/d" . $_[0] % 10 }, "$dir/www/d0");
};

subtest 'one path' => sub {
	up();
	notices('equal-names', sub { WARM_PATH => "$dir/www/stat-accel" }, "$dir/www/stat-accel");
};

subtest 'no permission' => sub {
	plan skip_all => 'root may read everything' if $> == 0;
	mkdir "$dir/www/mine";
	chmod 0, "$dir/www/mine";
	up();
	notices('denied', sub { SCRIPT_FILENAME => "$dir/www/mine/$_[0]" });
	chmod 0700, "$dir/www/mine";
};

subtest 'a healthy set-up, and few questions' => sub {
	up('--advice=1');
	ask_until(\&healthy, sub { 1 }) for 1 .. 20;
	is_deeply [advices()], [], 'nothing to say';
	is $app->stop, 0, 'it ends with 0';
	up('--advice=1');
	$app->ask(SCRIPT_FILENAME => "$dir/www/none") for 1 .. 20;
	is_deeply [advices()], [], 'nothing to say';
	is $app->stop, 0, 'it ends with 0';
	unlike $app->log_text, qr/ev=advice/, 'nothing in the log';
};

done_testing;
