# accel-check on lighttpd: each broken configuration gives its findings at their lines, and lighttpd accepts the snippets.
use v5.36;
use Test::More;
use FindBin ();
use lib "$FindBin::Bin/../lib";
use Test::Check;

sub lighttpd ($rest, $modules = '"mod_access", "mod_alias", "mod_fastcgi"') {
	return "server.port = 8080\nserver.modules = ( $modules )\nserver.document-root = \"\@DIR\@/www\"\n$rest";
}

my $HOST = '"socket" => "/run/stat-accel.sock", "mode" => "authorizer", "check-local" => "disable"';
my $SEND = '"socket" => "/run/stat-accel.sock", "x-sendfile" => "enable", "x-sendfile-docroot" => ( "@DIR@/www" ), "check-local" => "disable"';

broken lighttpd => 'an authorizer as it should be', lighttpd("fastcgi.server = ( \"/\" => (( $HOST )) )\n");
broken lighttpd => 'X-Sendfile as it should be', lighttpd("fastcgi.server = ( \"/\" => (( $SEND )) )\n");
broken lighttpd => 'files without accelerator', <<'EOT';
server.port = 8080
# "quotes" and ( lists in a comment
var.base = "@DIR@" + "/"
#! no-accel
server.document-root = var.base + "www"
server.modules = ( "mod_access",
	"mod_alias" )
EOT
broken lighttpd => 'beside another application', lighttpd(<<'EOT');
#! no-accel
fastcgi.server = ( ".php" => (( "socket" => "/run/php.sock", "bin-path" => "/usr/bin/php-cgi", "max-procs" => 1 )) )
EOT
broken lighttpd => 'check-local', lighttpd("#! check-local\nfastcgi.server = ( \"/\" => (( " . $HOST =~ s/, "check-local".*//r . " )) )\n");
broken lighttpd => 'check-local, with X-Sendfile, in a block', lighttpd(<<'EOT') =~ s/^server.document-root/#! no-accel\nserver.document-root/mr;
$HTTP["host"] =~ "^(www\.)?a\.example$" {
	fastcgi.server += (
		#! check-local x-sendfile-docroot
		"/" => ( "accel" => (
			"host" => "127.0.0.1", "port" => 1029,
			"allow-x-send-file" => "enable" ) ) )
} else $HTTP["host"] == "b.example" {
	proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => 1 )) )
}
EOT

broken lighttpd => 'a header that no server reads', lighttpd("#! mode x-sendfile-docroot\nfastcgi.server = ( \"/\" => (( \"socket\" => \"/run/stat-accel.sock\", \"check-local\" => \"disable\" )) )\n");
broken lighttpd => 'four of them', lighttpd("#! max-procs\nfastcgi.server = ( \"/\" => (( $HOST, \"bin-path\" => \"/bin/true\" )) )\n");
broken lighttpd => 'mod_fastcgi is missing', lighttpd("#! mod-fastcgi\nfastcgi.server = ( \"/\" => (( $HOST )) )\n", '"mod_access"');
broken lighttpd => 'modules in steps', lighttpd("server.modules += ( \"mod_fastcgi\" )\nfastcgi.server = ( \"/\" => (( $HOST )) )\n", '"mod_access"');

broken lighttpd => 'docroot as it should be', lighttpd("fastcgi.server = ( \"/\" => (( $HOST, \"docroot\" => \"\@DIR\@/www/\" )) )\n");
broken lighttpd => 'docroot hides alias.url', lighttpd(<<"EOT");
#! docroot
fastcgi.server = ( "/" => (( $HOST, "docroot" => "\@DIR\@/www" )) )
\$HTTP["url"] =~ "^/pub" { alias.url = ( "/pub" => "\@DIR\@/nfs" ) }
EOT
broken lighttpd => 'docroot hides another root', lighttpd(<<"EOT");
#! docroot
fastcgi.server = ( "/" => (( $HOST, "docroot" => "\@DIR\@/www" )) )
\$HTTP["host"] == "b.example" { server.document-root = "\@DIR\@/nfs" }
EOT
broken lighttpd => 'a block that takes the accelerator away, and one that means it', lighttpd(<<"EOT");
fastcgi.server = ( "/" => (( $HOST )) )
\$HTTP["host"] == "b.example" {
	#! no-accel
	fastcgi.server = ( ".php" => (( "socket" => "/run/php.sock" )) )
} elsif \$HTTP["url"] =^ "/hot/" {
	fastcgi.server = ( )
} else {
	server.tag = "b"
}
EOT
broken lighttpd => 'a listing', lighttpd("fastcgi.server = ( \"/\" => (( $HOST )) )\n#! dir-listing\ndir-listing.activate = \"enable\"\n", '"mod_fastcgi", "mod_dirlisting"');
broken lighttpd => 'files on NFS', lighttpd(<<"EOT") =~ s{/www"}{/nfs"}r;
fastcgi.server = ( "/" => (( $HOST )) )
#! stat-cache
server.stat-cache-engine = "inotify"
#! follow-symlink
server.follow-symlink = "disable"
#! error-page
server.errorfile-prefix = "\@DIR\@/nfs/status-"
EOT
broken lighttpd => 'the same on a local disk', lighttpd(<<"EOT");
fastcgi.server = ( "/" => (( $HOST )) )
server.stat-cache-engine = "inotify"
server.follow-symlink = "disable"
server.errorfile-prefix = "\@DIR\@/www/status-"
EOT

subtest 'lighttpd: includes are read' => sub {
	write_file('conf.d/10-fastcgi.conf', "server.modules += ( \"mod_fastcgi\" )\n");
	write_file('conf.d/20-accel.conf', "fastcgi.server = ( \"/\" => (( " . $HOST =~ s/, "check-local".*//r . " )) )\n");
	my $file = write_file('lighttpd.conf', "server.document-root = \"$dir/www\"\ninclude \"conf.d/*.conf\"\ninclude_shell \"touch $dir/was-run\"\n");
	my (undef, $report) = report(lighttpd => $file);
	is_deeply [map { "$_->{id} $_->{file} $_->{line}" } @{ $report->{findings} }], ["check-local $dir/conf.d/20-accel.conf 1"], 'are read';
	is_deeply [grep { $_->{id} eq 'not-run' } @{ $report->{notes} }],
		[{ id => 'not-run', file => $file, line => 3, where => ['the whole server'], why => "include_shell is not run; what 'touch $dir/was-run' prints is not seen" }], 'programs are named';
	ok !-e "$dir/was-run", 'and not run';
};

done_testing;
