package Accel::Command;
# What all programs of the kit share: the command line, messages, exit statuses.
#
#     use Accel::Command qw(fail options usage EX_NOINPUT);
#     my %opt = (seconds => 2);
#     options(\%opt, \@args, 'seconds=s', 'json');        # words that are not options stay in @args
#     usage('one file at a time') if @args > 1;
#     open my $fh, '<', $args[0] or fail(EX_NOINPUT, "$args[0]: $!");
#
# `options` knows --help and --version of each program. An option that is wrong ends the program: `usage` prints why, and how to get help. `complain`
# prints a message, `fail` also ends the program with this status of sysexits.h. A message is one line with the name of the program. It has no
# control characters, whatever names and words of others are in it. More texts are lines of their own.
use v5.36;
use Accel::Build    ();
use Accel::Util    qw(printable);
use Exporter       qw(import);
use File::Basename qw(basename);
use Getopt::Long   qw(GetOptionsFromArray :config bundling no_ignore_case);

use constant {
	EX_FAILED => 1, EX_USAGE => 64, EX_DATAERR => 65, EX_NOINPUT => 66, EX_UNAVAILABLE => 69, EX_CANTCREAT => 73, EX_IOERR => 74, EX_CONFIG => 78,
	EX_INTERRUPTED => 130,
};

our @EXPORT_OK = qw(complain erase_progress fail options usage EX_FAILED EX_USAGE EX_DATAERR EX_NOINPUT EX_UNAVAILABLE EX_CANTCREAT EX_IOERR EX_CONFIG
	EX_INTERRUPTED);

my $name = basename($0);

sub options ($opt, $args, @known) {
	print_table(@known) if @$args && $args->[0] eq '--option-table';
	local $SIG{__WARN__} = sub ($text) { usage(lcfirst $text =~ s/\s+\z//r) };
	GetOptionsFromArray($args, $opt, @known, 'help|h', 'version|V');
	if ($opt->{version}) { say "$name $Accel::Build::VERSION"; exit 0 }
	help() if $opt->{help};
}

# For scripts/completion, in the format of base/option.h.
sub print_table (@known) {
	for my $spec (@known, 'help|h', 'version|V') {
		my ($names, $kind) = $spec =~ /^([\w|-]+)(.*)/;
		my ($name, $letter) = split /\|/, $names;
		my ($arg, $prose) = said_of($name);
		say join "\t", "--$name", $letter // '', $kind =~ /^[=:]/ ? $arg : '', $kind =~ /^:/ ? '?' : '', $prose;
		say join "\t", "--no-$name", '', '', '', $prose if $kind eq '!';
	}
	exit 0;
}

# The word for the value of an option in the POD, and the first sentence about it.
sub said_of ($name) {
	open my $fh, '<', $0 or return ('VALUE', '');
	my $pod = join('', <$fh>) =~ s/[A-Z]<([^<>]*)>/$1/gr;
	my ($item, $prose) = $pod =~ /^=item (.*--(?:no-)?\Q$name\E\b.*)\n\n([^=\n].*)?/m or return ('VALUE', '');
	my ($arg) = $item =~ /--\Q$name\E[ =]([A-Z][^\s;]*|[a-z][^\s;|]*\|[^\s;]*)/;
	return (defined $arg ? $arg =~ s/,\z//r : 'VALUE', ($prose // '') =~ s/\.(?:\s.*|\z)/./r);
}

# Loads the module only for help: it takes half of the start-up time.
sub help () {
	require Pod::Usage;
	return Pod::Usage::pod2usage(-verbose => 99, -sections => [qw(NAME SYNOPSIS OPTIONS KEYS)], -output => \*STDOUT, -exitval => 0);
}

sub usage ($why) { fail(EX_USAGE, "$why; $name --help shows how it is used") }

sub fail ($status, @texts) {
	complain(@texts);
	exit $status;
}

sub complain ($text, @more) {
	erase_progress();
	print STDERR map { printable($_) . "\n" } "$name: $text", @more;
}

# Erases the progress line, if a program shows one.
sub erase_progress () {
	print STDERR "\r\e[K" if -t STDERR;
}

1;
