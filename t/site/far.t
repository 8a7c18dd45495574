# Files on a file system that asks at each open, as the READMEs of nginx and lighttpd say: an accel-server opens them.  While its opens
# hang, the web server serves its own files.
use v5.36;
use FindBin;
use Test::More;
use Test::Fcgi qw(eventually put slurp);
use Accel::Peer;
use Test::Server;
use Test::Site;
use Test::Site::Checks;
use Accel::Slowfs;

my ($usable, $why) = Accel::Slowfs->usable;
plan skip_all => $why unless $usable;
my $examples = "$FindBin::Bin/../../examples";
my $tree = tree();
mkdir "$tree/disk";
mkdir "$tree/www/far";
put("$tree/disk/$_", "far $_\n") for qw(one two);

# The fenced block of that language in the section.
sub lines_of ($kind, $language) {
	my ($section) = slurp("$examples/$kind/README.md") =~ /^## File systems that ask at open\n(.*?)^## /ms or die "$kind: no section\n";
	my ($block) = $section =~ /^```$language\n(.*?)^```/ms or die "$kind: no $language\n";
	return $block;
}

my %text = (
	nginx => sub { <<"CONF" },
user www-data;
error_log /var/log/nginx/error.log;
pid /run/nginx.pid;
events { }
http {
	access_log off;
	server {
		listen 127.0.0.1:8080;
		root /srv/www;
$_[0]
	}
}
CONF
	lighttpd => sub { <<"CONF" },
server.document-root = "/srv/www"
server.bind = "127.0.0.1"
server.port = 8080
server.username = "www-data"
server.groupname = "www-data"
server.errorlog = "/var/log/lighttpd/error.log"
server.modules = ( "mod_fastcgi" )
$_[0]
CONF
);

for my $kind (sort keys %text) {
	subtest $kind => sub {
		Test::Site->need($kind);
		my $slow = Accel::Slowfs->start(source => "$tree/disk", at => "$tree/www/far", lookup_ms => 0, read_ms => 0, open_ms => 1);
		my ($own) = lines_of($kind, 'conf');
		like $own, qr{^server\.document-root = "/srv/www"$}m, 'accel-server has the same root';
		my $behind = Accel::Peer->start('accel', root => "$tree/www");
		my $site = Test::Site->start($kind, 'its lines', root => "$tree/www", behind => [$behind], text => $text{$kind}->(lines_of($kind, $kind)));
		my $r = $site->get('/far/one');
		is "$r->{status} $r->{body}", "200 far one\n", 'a far file';
		is $site->get('/far/one', Range => 'bytes=4-6')->{body}, 'one', 'a range of it';
		# A new file on a disk of another machine is watched for a while before its tag counts.
		ok eventually(sub { ($r = $site->get('/far/one'))->{header}{etag} =~ /\A"/ }), 'soon with a tag that counts';
		is $site->get('/far/one', 'If-None-Match' => $r->{header}{etag})->{status}, 304, 'or nothing if it is known';
		is $site->get('/far/none')->{status}, 404, 'an absent one';
		is $site->get('/one.txt')->{status}, 200, 'a file of its own';
		$slow->hang;
		my $waits = $site->_send('GET', '/far/two');
		ok $slow->wait_hanging(1), 'a far file hangs';
		is $site->get('/one.txt')->{status}, 200, 'its own files do not';
		$slow->go;
		is $site->_reply($waits)->{body}, "far two\n", 'it goes on';
		$site->stop;
		$behind->stop;
		$slow->stop;
	};
}

subtest 'the lines of accel-server' => sub {
	is lines_of('nginx', 'conf'), lines_of('lighttpd', 'conf'), 'are the same for both';
	my $dir = Test::Fcgi::temp_tree();
	put("$dir/conf", lines_of('nginx', 'conf') =~ s{/srv/www}{$tree/www}r);
	my $said = qx{@{[ Test::Util::program('accel-server') ]} -t -f $dir/conf 2>&1};
	is $?, 0, 'accel-server accepts them' or diag $said;
};

done_testing;
