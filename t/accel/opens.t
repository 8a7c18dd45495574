#!/usr/bin/perl
# fcgi-stat-accel names the roots whose open() asks another machine or process, and says nothing about others.

use v5.36;
use Test::More;
use JSON::PP ();
use Test::Fcgi qw(put temp_tree);
use Accel::Slowfs;

my $tree = temp_tree();
my $dir = "$tree";
mkdir "$dir/$_" for qw(local disk www www/far);
put("$dir/disk/file", 'x' x 1000);
put("$dir/local/file", 'x');

# What it logs about these roots, and the number on its status page.
sub said {
	my (@roots) = @_;
	my $app = Test::Fcgi->start('--status-path=/st', map { "--root=$_" } @roots);
	my ($path) = grep { -e } map { ("$_/file", "$_/far/file") } @roots;
	is $app->get($path)->{status}, 200, 'it serves' if $path;
	my $page = sub { $app->ask(SCRIPT_NAME => '/st', QUERY_STRING => $_[0])->{body} };
	my $n = JSON::PP::decode_json($page->('json'))->{roots_open_asks};
	like $page->(''), qr/^accel\.roots\.open-asks: $n$/m, 'the page as text';
	like $page->('metrics'), qr/^fcgi_stat_accel_roots_open_asks $n$/m, 'and as metrics';
	is $app->stop, 0, 'it ends with 0';
	return ($n, grep { /root\.open-asks/ } split /\n/, $app->log_text);
}

my ($n, @lines) = said("$dir/local");
is "$n@lines", '0', 'a local disk: nothing to say';

SKIP: {
	my ($usable, $why) = Accel::Slowfs->usable;
	skip $why, 1 unless $usable;
	my $slow = Accel::Slowfs->start(source => "$dir/disk", at => "$dir/www/far", lookup_ms => 0, read_ms => 0, open_ms => 1);
	($n, @lines) = said("$dir/www/far");
	is $n, 1, 'a root on FUSE';
	is scalar @lines, 1, 'has a line';
	like $lines[0], qr{level=warn ev=root\.open-asks root=\Q$dir\E/www/far mount=\Q$dir\E/www/far type=fuse\.slowfs means="the web server waits in open\(\)},
	    'with root, mount and type';
	like $lines[0], qr/remedy=".*ENOSYS.*no_open.*" otherwise="[^"]*accel-server/, 'and the remedies';
	($n, @lines) = said("$dir/www");
	like "@lines", qr{\A\S+ \S+ \S+ root=\Q$dir\E/www mount=\Q$dir\E/www/far type=fuse\.slowfs }, 'a mount below a root, too';
	symlink 'far', "$dir/www/link";
	($n, @lines) = said("$dir/www/link", "$dir/local");
	like "@lines", qr{\A\S+ \S+ \S+ root=\Q$dir\E/www/link mount=\Q$dir\E/www/far }, 'a root that is a link';
	($n, @lines) = said();
	is "$n@lines", '0', 'without --root it cannot know';
	mkdir "$dir/www/fa";
	($n, @lines) = said("$dir/www/fa");
	is "$n@lines", '0', 'not a root whose name begins alike';
	$slow->stop;
}

done_testing;
