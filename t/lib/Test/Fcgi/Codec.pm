package Test::Fcgi::Codec;
# FastCGI records as bytes, valid or not.
#
#     $sock->send(begin(1, keep => 1) . params(1, A => 'b') . record(T_STDIN, 1, ''));
#     for (parse_records(\$buf)) { my ($type, $id, $content) = @$_; ... }
use v5.36;
use Exporter 'import';

our @EXPORT_OK = qw(record begin end_request stream params pairs unpair request parse_records
	T_BEGIN T_ABORT T_END T_PARAMS T_STDIN T_STDOUT T_STDERR T_GET_VALUES T_GET_VALUES_RESULT T_UNKNOWN_TYPE);
our %EXPORT_TAGS = (all => \@EXPORT_OK);

use constant { T_BEGIN => 1, T_ABORT => 2, T_END => 3, T_PARAMS => 4, T_STDIN => 5, T_STDOUT => 6, T_STDERR => 7,
	T_GET_VALUES => 9, T_GET_VALUES_RESULT => 10, T_UNKNOWN_TYPE => 11 };

# Options padding, version and length make it invalid.
sub record ($type, $id, $content, %arg) {
	my $pad = $arg{padding} // 0;
	return pack('CCnnCC', $arg{version} // 1, $type, $id, $arg{length} // length $content, $pad, 0)
	    . $content . ("\0" x $pad);
}

sub begin ($id, %arg) {
	return record(T_BEGIN, $id, pack('nCx5', $arg{role} // 1, $arg{keep} ? 1 : 0));
}

sub end_request ($id, $protocol_status = 0, $app_status = 0) {
	return record(T_END, $id, pack 'NCx3', $app_status, $protocol_status);
}

# As many records as the bytes need, without the empty one that ends the stream.
sub stream ($type, $id, $bytes) { return join '', map { record($type, $id, $_) } unpack '(a65535)*', $bytes }

sub _length { $_[0] < 128 ? pack 'C', $_[0] : pack 'N', $_[0] | 0x80000000 }

sub pairs {
	my $s = '';
	while (my ($name, $value) = splice @_, 0, 2) {
		$s .= _length(length $name) . _length(length $value) . $name . $value;
	}
	return $s;
}

# The reverse of pairs(), as a list.
sub unpair ($s) {
	my @all;
	while (length $s) {
		my @n = map { ord $s < 128 ? ord substr $s, 0, 1, '' : unpack('N', substr $s, 0, 4, '') & 0x7fffffff } 1, 2;
		push @all, map { substr $s, 0, $_, '' } @n;
	}
	return @all;
}

# The whole stream: the records and the empty one.
sub params ($id, @pairs) {
	return stream(T_PARAMS, $id, pairs(@pairs)) . record(T_PARAMS, $id, '');
}

sub request ($id, $keep, @pairs) {
	return begin($id, keep => $keep) . params($id, @pairs) . record(T_STDIN, $id, '');
}

# Takes the complete records off the start of $$buf: [type, id, content]...
sub parse_records ($buf) {
	my @got;
	while (length $$buf >= 8) {
		my (undef, $type, $id, $len, $pad) = unpack 'CCnnC', $$buf;
		last if length $$buf < 8 + $len + $pad;
		push @got, [$type, $id, substr $$buf, 8, $len];
		substr($$buf, 0, 8 + $len + $pad) = '';
	}
	return @got;
}

1;
