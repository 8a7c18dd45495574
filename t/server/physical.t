#!/usr/bin/perl
# What $PHYSICAL conditions see: "path" always, "existing-path" only of what is there.
use v5.36;
use Test::More;
use Test::Server;

my $conf = <<'CONF';
server.document-root = "@DIR@/www"
server.errorlog = "@DIR@/error.log"
server.tag = "global"
$PHYSICAL["path"] =~ "\.txt$" { server.tag = "path" }
$PHYSICAL["existing-path"] =~ "/here" { server.tag = "existing" }
CONF
my $srv = Test::Server->start(conf => $conf);
$srv->write('www/here.bin', "here\n");
$srv->write('www/note.txt', "note\n");
mkdir "$srv->{dir}/www/here.d" or die "mkdir: $!";
$srv->write('www/here.d/index.html', "index\n");

like $srv->get('/here.bin'), qr/^HTTP\S+ 200 .*\r\nServer: existing\r\n.*here\n\z/s, 'existing-path holds for a file that is there';
like $srv->get('/here.d/'), qr/^HTTP\S+ 200 .*\r\nServer: existing\r\n/s, '... and for a directory';
like $srv->get('/here.not'), qr/^HTTP\S+ 404 .*\r\nServer: global\r\n/s, '... not for a name that is not there';
like $srv->get('/note.txt'), qr/^HTTP\S+ 200 .*\r\nServer: path\r\n/s, 'a path condition holds before the first look-up';
like $srv->get('/no.txt'), qr/^HTTP\S+ 404 .*\r\nServer: path\r\n/s, '... whether or not the file is there';

my $many = $srv->request(join('', map { "GET /$_ HTTP/1.1\r\nHost: x\r\n\r\n" } qw(here.bin no.txt note.txt here.not))
    . "GET /here.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
is join(' ', $many =~ /^Server: (\S+)/mg), 'existing path path global existing', 'pipelined requests each get their own';
done_testing;
