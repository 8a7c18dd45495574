#!/usr/bin/perl
# Root that becomes a user for good: the server, its CGI programs, programs for logs and applications, and the accelerator. Each process
# is asked what the kernel says of it.

use v5.36;
use Test::More;

use Test::Fcgi;
use Test::Server;
use Test::Util qw(eventually put slurp);

my @www = getpwnam 'www-data';
plan skip_all => 'needs root and the user www-data' unless $> == 0 && @www;
my ($uid, $gid) = @www[2, 3];
my $other = getgrnam 'nogroup';

# What a careless change leaves: the groups that root has here.
$) = '0 0 4 20';

my ($dir, $tree) = map { Test::Util::temp_tree() } 1, 2;
chmod 0777, $dir;
# Writes what the kernel says of it, and stays.
put("$dir/is.pl", <<'END');
my $parent = getppid;
open my $in, '<', '/proc/self/status' or die;
open my $out, '>', "$ARGV[0].new" or die;
print {$out} $_ while <$in>;
close $out;
rename "$ARGV[0].new", $ARGV[0];
# Standard input of a program for logs ends with the server; that of an application is its socket.
exit if defined sysread STDIN, my $line, 4096;
select undef, undef, undef, 0.1 while getppid == $parent;
END

sub groups_of { my ($user, $first) = @_; my %in = ($first => 1); while (my @gr = getgrent) { $in{ $gr[2] } = 1 if grep { $_ eq $user } split ' ', $gr[3] } return join ' ', sort { $a <=> $b } keys %in }

sub has_become {
	my ($status, $what, $u, $g, $groups) = @_;
	my %is = $status =~ /^(Uid|Gid|Groups):\s*(.*?)\s*$/mg;
	is $is{Uid}, join("\t", ($u) x 4), "$what: real, effective, saved user and that for files";
	is $is{Gid}, join("\t", ($g) x 4), "$what: the groups likewise";
	is join(' ', sort { $a <=> $b } split ' ', $is{Groups}), $groups, "$what: no supplementary group of root";
	return;
}

my $server = <<"END";
server.document-root = "\@DIR\@"
cgi.assign = ( ".pl" => "$^X" )
accesslog.filename = "|exec $^X $dir/is.pl $dir/log"
fastcgi.server = ( "/app" => (( "socket" => "$dir/sock", "bin-path" => "$^X $dir/is.pl $dir/app" )) )
END

for my $case (
	['a user',             qq{server.username = "www-data"\n},                                      $uid, $gid,   groups_of('www-data', $gid)],
	['a user and a group', qq{server.username = "www-data"\nserver.groupname = "nogroup"\n},        $uid, $other, groups_of('www-data', $other)],
	['a group alone',      qq{server.groupname = "nogroup"\n},                                      0,    $other, $other],
) {
	my ($name, $conf, @want) = @$case;
	subtest $name => sub {
		unlink "$dir/log", "$dir/app";
		my $srv = Test::Server->start(dir => $tree, conf => $conf . $server);
		chmod 0755, $srv->run;
		$srv->write('is.pl', qq{print "Content-Type: text/plain\\n\\n"; open my \$s, '<', '/proc/self/status' or die; print for <\$s>;\n});
		my $is = $srv->fetch('/is.pl');
		has_become($is->{body}, 'a CGI program', @want);
		has_become(slurp("/proc/${\$srv->pid}/status"), 'the server', @want);
		for (['log', 'a program for logs'], ['app', 'an application']) {
			my ($file, $what) = @$_;
			ok eventually(sub { -e "$dir/$file" }), "$what runs" or next;
			has_become(slurp("$dir/$file"), $what, @want);
		}
	};
}

subtest 'the accelerator' => sub {
	for (['www-data', $uid, $gid, groups_of('www-data', $gid)], ['www-data:nogroup', $uid, $other, groups_of('www-data', $other)],
		["54321:$other", 54321, $other, $other]) {
		my ($user, @want) = @$_;
		my $app = Test::Fcgi->start("--user=$user");
		has_become(slurp("/proc/${\$app->pid}/status"), $user, @want);
		$app->stop;
	}
};

done_testing;
