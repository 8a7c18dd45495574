package Test::Coding;
# The bytes of a reply without its content coding.
#
#     is plain($srv->fetch('/a', 'Accept-Encoding' => 'br')), $text, 'Brotli';
use v5.36;
use Exporter qw(import);
use File::Temp ();
use IO::Uncompress::Gunzip ();
use IO::Uncompress::Inflate ();

our @EXPORT_OK = qw(plain);

# Dies if the bytes are malformed, or if others follow.
sub plain ($r) {
	my $coding = $r->{header}{'content-encoding'} // return $r->{body};
	my ($in, $out) = ($r->{body}, '');
	if ($coding eq 'gzip') { IO::Uncompress::Gunzip::gunzip(\$in, \$out) or die "gzip\n" }
	elsif ($coding eq 'deflate') { IO::Uncompress::Inflate::inflate(\$in, \$out) or die "deflate\n" }
	else {
		my %program = (br => 'brotli -dc', zstd => 'zstd -dcq');
		my $file = File::Temp->new;
		print {$file} $in;
		close $file or die "close: $!";
		$out = qx{$program{$coding} <$file};
		die "$coding\n" if $?;
	}
	return $out;
}

1;
