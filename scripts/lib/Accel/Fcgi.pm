package Accel::Fcgi;
# One question over FastCGI, as a web server asks it.
use v5.36;

use constant { T_BEGIN => 1, T_END => 3, T_PARAMS => 4, T_STDIN => 5, T_STDOUT => 6 };    # types of records

sub question (%param) {
	return record(T_BEGIN, pack 'nCx5', 1, 0) . record(T_PARAMS, params(%param)) . record(T_PARAMS, '') . record(T_STDIN, '');
}

sub record ($type, $content) { return pack('CCnnxx', 1, $type, 1, length $content) . $content }
sub params (%pair) { return join '', map { size(length) . size(length $pair{$_}) . $_ . $pair{$_} } sort keys %pair }
sub size ($n) { return $n < 128 ? pack 'C', $n : pack 'N', $n | 1 << 31 }

sub records ($bytes) {
	my ($at, @all) = (0);
	while (length($bytes) - $at >= 8) {
		my ($version, $type, undef, $length, $padding) = unpack 'CCnnC', substr $bytes, $at, 8;
		last if $version != 1 || length($bytes) - $at < 8 + $length + $padding;
		push @all, [$type, substr $bytes, $at + 8, $length];
		$at += 8 + $length + $padding;
	}
	return @all;
}

sub is_whole ($bytes) { return scalar grep { $_->[0] == T_END } records($bytes) }

# What the application wrote: a CGI head and a body.
sub output ($bytes) { return join '', map { $_->[0] == T_STDOUT ? $_->[1] : () } records($bytes) }

1;
