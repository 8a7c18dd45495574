#!/usr/bin/perl
# What setenv gives an application is never the client's: no Connection field removes it, it does not count as a claim of a client, and no
# field of the client stands in its place.  Over each protocol, and for CGI.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::App;
use Test::Http qw(parse req);
use Test::More;
use Test::Server;
use Test::Wire;

my @kinds = (@Test::Wire::PROTOCOLS, 'cgi');
my %app = map { $_ => Test::App->start(protocol => $_) } @Test::Wire::PROTOCOLS;
my $blocks = join '', map { Test::Server::proxy_block("^/$_/", 'unix:' . $app{$_}->socket, protocol => $_) } sort keys %app;
my $srv = Test::Server->start(conf => <<"CONF");
cgi.assign = ( ".cgi" => "" )
setenv.set-request-header = (
	"X-Key" => "gateway", "X-Forwarded-Proto" => "https", "X-Real-IP" => "192.0.2.9", "Remote-User" => "joe",
	"X-Sendfile-Type" => "X-Accel-Redirect", "X_Tenant" => "t1", "X-Gone" => "", "X-Forwarded-For" => "192.0.2.10" )
setenv.add-request-header = ( "X-Two" => "ours", "X-Client-IP" => "192.0.2.8", "X-Alone" => "1", "Cookie" => "c=3" )
$blocks
CONF
$srv->write('cgi/app/env.cgi', "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nexec env\n");
chmod 0755, $srv->path('cgi/app/env.cgi') or die "env.cgi: $!";

# All values of each variable that the application sees.
sub env_of ($kind, @lines) {
	my $r = parse($srv->request(req($kind eq 'cgi' ? '/cgi/app/env.cgi' : "/$kind/app/env", 'Connection: close', @lines)));
	is $r->{status}, 200, "$kind answers";
	my %env;
	push @{ $env{$1} }, $2 while $r->{body} =~ /^(\w+)=(.*)$/mg;
	return { map { $_ => join '|', @{ $env{$_} } } keys %env };
}

my %ours = (
	HTTP_X_KEY => 'gateway', HTTP_X_FORWARDED_PROTO => 'https', HTTP_X_REAL_IP => '192.0.2.9', HTTP_REMOTE_USER => 'joe',
	HTTP_X_SENDFILE_TYPE => 'X-Accel-Redirect', HTTP_X_TENANT => 't1', HTTP_X_FORWARDED_FOR => '192.0.2.10', HTTP_X_TWO => 'ours',
	HTTP_X_CLIENT_IP => '192.0.2.8', HTTP_X_ALONE => '1', HTTP_COOKIE => 'c=3',
);
my @names = qw(X-Key X-Forwarded-Proto X-Real-IP Remote-User X-Sendfile-Type X_Tenant X-Two X-Client-IP X-Alone X-Forwarded-For Cookie);

sub all_ours {
	my ($env, $what, %but) = @_;
	my %want = (%ours, %but);
	is_deeply { map { $_ => $env->{$_} } keys %want }, \%want, $what;
	return;
}

for my $kind (@kinds) {
	all_ours(env_of($kind), "$kind: the application gets all that is set");
	all_ours(env_of($kind, 'Connection: ' . join ', ', @names), '... although Connection lists it');
	all_ours(env_of($kind, map { "Connection: \L$_" } @names), '... in many lines');
	all_ours(env_of($kind, map { "$_: theirs" } grep { !/^(X-Two|X-Alone|Cookie)$/ } @names), '... and nothing of what the client claims');
	my $env = env_of($kind, map { ($_ =~ tr/_-/-_/r) . ': theirs' } grep(/[_-]/, @names), 'X-Gone');
	all_ours($env, '... nor of another spelling');
	is $env->{HTTP_X_GONE}, undef, '... and no field that is removed';
	all_ours(env_of($kind, 'X-Two: theirs', 'Cookie: a=1; b=2'), '... what is added follows the value of the client',
		HTTP_X_TWO => 'theirs, ours', HTTP_COOKIE => 'a=1; b=2; c=3');
	all_ours(env_of($kind, 'X-Two: theirs', 'X-Two: more', 'Connection: X-Two'), '... or stands alone, when the client removes its own');
}
done_testing;
