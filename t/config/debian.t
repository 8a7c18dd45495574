# Debian's lighttpd.conf, with each file of conf-available enabled in turn as lighty-enable-mod does: it loads, or a message says
# what to write instead.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Cwd qw(abs_path);
use File::Basename qw(basename);
use File::Temp ();
use Test::More;
use Test::Tls;
use Test::Util qw(put slurp);

my $program = Test::Util::program('accel-server');
my $from = '/etc/lighttpd';
my $shared = '/usr/share/lighttpd';
plan skip_all => "no lighttpd of Debian in $from"
    unless -r "$from/lighttpd.conf" && -d "$from/conf-available" && slurp("$from/lighttpd.conf") =~ /use-ipv6\.pl/;

# A copy of the tree, with the paths of this machine replaced: not every machine has /var/www/html.
my $dir = abs_path(File::Temp->newdir('accel-debian-XXXXXX', TMPDIR => 1, CLEANUP => 0));
END { system 'rm', '-rf', $dir if defined $dir && $dir =~ /accel-debian/ }
mkdir "$dir/$_" or die "$dir/$_: $!" for qw(etc etc/conf-available etc/conf-enabled www log srv srv/www.example.com srv/www.example.com/htdocs
	js doc images cgi run);
my @user = map { scalar getpwnam($_) ? qq{"$_"} : () } qw(www-data);

sub copy ($name) {
	my $text = slurp("$from/$name");
	$text =~ s{\Q$from\E/}{$dir/etc/}g;
	$text =~ s{"/var/www/html"}{"$dir/www"}g;
	$text =~ s{"/var/cache/lighttpd/uploads"}{"$dir/run"}g;
	$text =~ s{/var/log/lighttpd/}{$dir/log/}g;
	$text =~ s{"/run/lighttpd\.pid"}{"$dir/run/lighttpd.pid"}g;
	$text =~ s{^(server\.port\s*=\s*)80$}{${1}8080}mg;
	$text =~ s{^server\.(?:user|group)name.*\n}{}mg unless @user && $> == 0;
	$text =~ s{"/srv"}{"$dir/srv"}g;
	$text =~ s{"/srv/%_/htdocs"}{"$dir/srv/%_/htdocs"}g;
	$text =~ s{"/usr/share/javascript"}{"$dir/js"}g;
	$text =~ s{"/usr/share/doc/"}{"$dir/doc/"}g;
	$text =~ s{"/usr/share/images/"}{"$dir/images/"}g;
	$text =~ s{"/usr/lib/cgi-bin/"}{"$dir/cgi/"}g;
	$text =~ s{/run/lighttpd/php\.socket}{$dir/run/php.socket}g;
	return put("$dir/etc/$name", $text);
}

copy('lighttpd.conf');
my $cert = Test::Tls::certificate($dir, 'cert');
put("$dir/etc/server.pem", slurp($cert->{key}) . slurp($cert->{pem}));        # as the comment in 10-ssl.conf makes it
my @available = map { basename($_) } sort glob "$from/conf-available/*.conf";
copy("conf-available/$_") for @available;

sub enable (@names) {
	unlink glob "$dir/etc/conf-enabled/*.conf";
	symlink "../conf-available/$_", "$dir/etc/conf-enabled/$_" or die "$_: $!" for @names;
	my $said = qx{timeout 60 $program -t -f $dir/etc/lighttpd.conf 2>&1 </dev/null};
	return ($? >> 8, $said =~ s/\Q$dir\E\/etc/ETC/gr =~ s/\Q$dir\E/DIR/gr);
}

# What is refused, and the setting or module that the message names.  All other files must load.
my %refused = (
	'10-magnet.conf'    => qr/server\.modules: mod_magnet is not built in\. .* Remove it/,
	'10-sockproxy.conf' => qr/server\.modules: mod_sockproxy is not built in\. .* Remove it/,
	'10-ssi.conf'       => qr/(?:server\.modules: mod_ssi is not built in|ssi\.extension cannot be used here)\. .* Remove it/,
);
my %built = map { /^\| `(mod_\w+)` \| 1\.\d \| built in \|$/ ? ($1 => 1) : () } split /\n/, qx{$program --manual=lighttpd};

my ($rc, $said) = enable();
is $rc, 0, 'lighttpd.conf as it is installed' or diag $said;
like $said, qr/^Syntax OK$/m, '... loads';
my @table = ['lighttpd.conf', $rc ? 'refused' : 'loads', ''];
my @loads;
for my $name (@available) {
	($rc, $said) = enable($name);
	my ($wrong) = $said =~ /^(ETC\/\S+:\d+:\d+: (?!.*has no effect).*)$/m;
	push @table, [$name, $rc ? 'refused' : 'loads', $rc ? $wrong // $said : join ' ', map { s/^ETC\/conf-\w+\/\S+?: //r } grep { /conf-enabled/ } split /\n/, $said];
	my @modules = slurp("$from/conf-available/$name") =~ /^[^#\n]*"(mod_\w+)"/mg;
	if ($refused{$name}) {
		is $rc, 78, "$name is refused";
		like $wrong // '', qr/^ETC\/conf-enabled\/\Q$name\E:\d+:\d+: $refused{$name}/, '... with file, line and what to write instead';
	} elsif ($rc && $said =~ /"bin-path"/) {
		like $wrong // '', qr/^ETC\/conf-enabled\/\Q$name\E:\d+:\d+: fastcgi\.server: .*; start it by /, "$name is refused with file, line and what to write instead";
	} elsif ($rc && grep { !$built{$_} } @modules) {
		like $wrong // '', qr/^ETC\/conf-enabled\/\Q$name\E:\d+:\d+: .*(?:is not built in|cannot be used here)\. [A-Z].*\. [A-Z]/, "$name is refused with file, line and what to write instead";
	} else {
		is $rc, 0, "$name loads" or diag $said;
		push @loads, $name;
	}
}
diag sprintf "%-28s %-8s %s", @$_ for @table;

# Files that contradict each other: two ways of PHP, two ways of hosts.
($rc, $said) = enable(grep { !/php-fpm|evhost|unconfigured/ } @loads);
is $rc, 0, 'all that load, together' or diag $said;

done_testing;
