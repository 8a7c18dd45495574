package Accel::Graph::Error;
# What ends a run, with its exit status, and what is only worth a line on standard error.
use v5.36;

use Accel::Graph::Read qw(printable);
use Exporter qw(import);

use constant {
	EX_FAILED => 1, EX_USAGE => 64, EX_DATAERR => 65, EX_NOINPUT => 66, EX_UNAVAILABLE => 69, EX_CANTCREAT => 73,
};

our @EXPORT_OK = qw(complain fail EX_FAILED EX_USAGE EX_DATAERR EX_NOINPUT EX_UNAVAILABLE EX_CANTCREAT);

sub complain ($text) {
	print STDERR "\r\e[K" if -t STDERR;
	print STDERR 'accel-graph: ', printable($text), "\n";
	return;
}

# Caught by the script.
sub fail ($status, $text) { die bless { status => $status, text => $text }, __PACKAGE__ }

1;
