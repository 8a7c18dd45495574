package Accel::Check::NginxWays;
# The ways on which nginx itself goes from one name to another: rewrite, try_files, error_page, named locations.
#
#     GET /old/a.txt --rewrite--> /new/a.txt --location /new/--> opens ROOT/new/a.txt
#                                                                asks for ROOT + $request_uri = ROOT/old/a.txt
#
# $request_uri stays what the client sent, so where a way ends a "set" has to tell the name, and often none does.
use v5.36;

use Accel::Check::NginxName ();
use Accel::Check::NginxTree qw(kids effective locations serves find_location is_ours);

# Stands for the name that the client sent, when nginx has replaced it: there is no such file.
use constant SENT => '/sent-by-the-client/' . Accel::Check::NginxName::SAMPLE;

# All ways of a server that end where files are served: { from (the directive), block, uri, asked, begun }.
sub ways ($server) {
	my @found;
	for my $from ($server, locations($server)) {
		next if is_ours($from);
		push @found, map { to_uri($server, $_, $_->{args}[1] =~ s/\?.*//sr =~ s/\$\{?\w+\}?/Accel::Check::NginxName::SAMPLE/gre) } rewrites($from);
		# The last word of try_files is a URI, a named location or "=CODE"; that of error_page a URI or a named location.
		push @found, map { to_name($server, $from, $_, $_->{args}[-1] // '') } kids($from, 'try_files'), kids($from, 'error_page');
	}
	return grep { serves($_->{block}) && ($_->{block} != $server || effective($server, 'root')) } @found;
}

# rewrite directives, also those below "if"; not those that lead to another server, and not "break", which stays in the location.
sub rewrites ($block) {
	return grep { @{ $_->{args} } >= 2 && $_->{args}[1] !~ m{^(?:https?://|\$scheme)} && ($_->{args}[2] // '') !~ /^(?:redirect|permanent|break)\z/ }
		map { $_->{name} eq 'rewrite' ? $_ : $_->{name} eq 'if' && $_->{kids} ? kids($_, 'rewrite') : () } @{ $block->{kids} };
}

sub to_name ($server, $block, $from, $to) {
	return to_uri($server, $from, $to =~ s/\?.*//sr) if $to =~ m{^/[^\$]*\z};
	return unless $to =~ /^@/;
	my ($named) = grep { ($_->{args}[0] // '') eq $to } locations($server);
	return unless $named;
	my $uri = Accel::Check::NginxName::sample($block);
	return { from => $from, block => $named, uri => $uri, asked => $uri, begun => 1 };
}

sub to_uri ($server, $from, $uri) {
	return if $uri !~ m{^/} || $uri =~ m{/\z};    # a directory: "index" goes on
	return { from => $from, block => find_location($server, $uri) // $server, uri => $uri, asked => SENT, begun => $from->{name} eq 'rewrite' };
}

# A name in the middle of try_files is opened without another question, and is the same for every request.
sub constant_tries ($block) {
	my @found;
	for my $try (kids($block, 'try_files')) {
		my @words = @{ $try->{args} };
		pop @words;
		push @found, map { m{^/[^\$]*[^/\$]\z} ? { from => $try, page => $_ } : () } @words;
	}
	return @found;
}

1;
