package Accel::Graph::Options;
# The command line of accel-graph.  Every name that reaches a file, gnuplot or a terminal is checked or cleaned here.
use v5.36;

use Accel::Graph::Draw  ();
use Accel::Build   ();
use Accel::Command qw(usage);
use Exporter       qw(import);
use File::Basename qw(basename);

our @EXPORT_OK = qw(options);

# Returns { option => value } and the logs; ends for --help and --version.
sub options (@args) {
	my %opt = (output => '.', 'give-up' => '4s', interval => 2);
	Accel::Command::options(\%opt, \@args, 'name|n=s', 'output|o=s', 'png', 'svg', 'ascii', 'json', 'csv', 'curves', 'charts!', 'ymax=f', 'give-up=s',
		'before=s', 'lanes=s', 'sweep=s', 'load=s@', 'fail-if=s@', 'follow|f', 'interval=f', @Accel::Graph::Draw::OPTIONS, 'verbose|v');
	my $no_log = !@args && ($opt{sweep} || $opt{load});
	if (!@args && !$no_log) {
		usage('no log given; "-" reads standard input') if -t STDIN;
		@args = '-';
	}
	check_output(\%opt);
	check_inputs(\%opt, @args);
	set_name(\%opt, grep { defined } @args, $opt{sweep}, @{ $opt{load} // [] });
	$opt{kind}    = $opt{svg} ? 'svg' : 'png';
	$opt{images}  = ($opt{charts} // 1) && !$opt{follow} && ($opt{png} || $opt{svg} || !($opt{ascii} || defined $opt{html}));
	$opt{draws}   = $opt{images} || $opt{ascii} || defined $opt{html};
	$opt{version} = $Accel::Build::VERSION;
	$opt{columns} = terminal_columns();
	return (\%opt, \@args);
}

sub check_output ($opt) {
	my @formats = grep { $opt->{$_} } qw(ascii json csv);
	usage("--$formats[0] and --$formats[1] both print on standard output: choose one") if @formats > 1;
	usage('--png and --svg: choose one') if $opt->{png} && $opt->{svg};
	usage('--no-charts leaves nothing for --png, --svg, --ascii or --html to draw')
	    if defined $opt->{charts} && !$opt->{charts} && ($opt->{png} || $opt->{svg} || $opt->{ascii} || defined $opt->{html});
	Accel::Graph::Draw::check_options($opt);
	usage('--curves belongs to --json') if $opt->{curves} && !$opt->{json};
	usage('--ymax: a number of milliseconds above 0') if defined $opt->{ymax} && !($opt->{ymax} > 0 && $opt->{ymax} < 9e15);
	usage('--output: the name of a directory') if $opt->{output} eq '';
}

sub check_inputs ($opt, @logs) {
	$opt->{give_up_us} = duration_us($opt->{'give-up'}) // usage("--give-up: '$opt->{'give-up'}' is not a time as 4s or 1500ms");
	if (!@logs) {
		usage("--$_ needs a log") for grep { $opt->{$_} } qw(before lanes fail-if follow);
	}
	my @stdin = grep { ($_ // '') eq '-' } @logs, @$opt{qw(before lanes sweep)}, @{ $opt->{load} // [] };
	usage('"-", standard input, can be read once') if @stdin > 1;
	if ($opt->{follow}) {
		usage("--follow draws on a terminal only, not with --$_") for grep { defined $opt->{$_} } qw(png svg html before lanes sweep load);
		usage("--follow: $_ is compressed, so it does not grow") for grep { m/\.gz\z/ } @logs;
	}
	usage('--interval: seconds, 0.1 to 3600') unless $opt->{interval} >= 0.1 && $opt->{interval} <= 3600;
	if ($opt->{'fail-if'}) {
		require Accel::Graph::Limit;
		$opt->{limits} = [Accel::Graph::Limit::parse(@{ $opt->{'fail-if'} })];
		usage("--fail-if '$_->{text}': a ratio needs --before") for grep { $_->{ratio} && !$opt->{before} } @{ $opt->{limits} };
	}
}

# Checks a name of files: no slash, and no line break, which would end a quoted string in the script of gnuplot.
sub set_name ($opt, $first, @) {
	if (defined $opt->{name}) {
		usage('--name is a name, not a path; --output says where') if $opt->{name} =~ m{/};
		usage('--name is empty') if $opt->{name} eq '';
	} else {
		$opt->{name} = name_of($first);
	}
	$opt->{name} =~ s/[\x00-\x1f\x7f]/_/g;
}

sub name_of ($file) {
	return 'timing' if $file eq '-';
	return basename($file) =~ s/\.gz\z//r =~ s/(?<=.)\.(?:log|txt|json)\z//r =~ s/[\x00-\x1f\x7f]/_/gr;
}

sub duration_us ($text) {
	$text =~ m/\A([0-9]{1,9}(?:\.[0-9]{1,6})?)(us|ms|s)\z/ or return;
	return $1 * { us => 1, ms => 1000, s => 1_000_000 }->{$2} || undef;
}

sub terminal_columns () {
	my $columns = $ENV{COLUMNS} // '';
	if ($columns !~ m/\A[0-9]{1,4}\z/ && -t STDOUT) {
		my $size = '';
		$columns = (unpack 'S!4', $size)[1] if ioctl STDOUT, 0x5413, $size = "\0" x 8;    # TIOCGWINSZ on Linux
	}
	$columns = 80 unless $columns =~ m/\A[0-9]{1,4}\z/ && $columns > 0;
	return $columns < 40 ? 40 : $columns > 400 ? 400 : $columns;
}

1;
