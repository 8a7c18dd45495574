package Accel::Graph::Draw;
# Files and text from charts: what --png, --svg, --ascii and --html ask for.
use v5.36;

use File::Path ();
use File::Temp ();
use List::Util qw(uniq);
use Accel::Graph::Charts  qw(charts chart_names);
use Accel::Command qw(complain fail usage EX_UNAVAILABLE EX_CANTCREAT);
use Accel::Graph::Gnuplot qw(gnuplot_script picture run_gnuplot);
use Accel::Graph::Style   qw(text_of);
use Accel::Util           qw(find_program);

use constant {
	SIZE => '960x600', FONT => 'DejaVu Sans,13',
	LEAST_SIZE => 200, MOST_SIZE => 10_000,    # pixels: smaller has no room for words, larger takes gigabytes
};

our @OPTIONS = ('chart=s@', 'html=s', 'size=s', 'font=s', 'title=s', 'no-title');

# Replaces the words of the command line by what they mean, or ends the run.
sub check_options ($opt) {
	my @names = chart_names();
	my @only  = map { split /,/ } @{ delete $opt->{chart} // [] };
	for my $name (@only) {
		usage("--chart: there is no chart '$name'; choose from " . join(', ', @names)) unless grep { $_ eq $name } @names;
	}
	$opt->{only} = [ uniq @only ] if @only;
	my ($width, $height) = ($opt->{size} // SIZE) =~ m/\A([0-9]{1,5})x([0-9]{1,5})\z/ or usage("--size: expected WIDTHxHEIGHT in pixels, got '$opt->{size}'");
	usage(sprintf '--size: each side is %d to %d pixels', LEAST_SIZE, MOST_SIZE) if grep { $_ < LEAST_SIZE || $_ > MOST_SIZE } $width, $height;
	$opt->{size} = [$width, $height];
	($opt->{font} //= FONT) =~ m/\A[\w .-]*,[0-9]{1,3}\z/a or usage("--font: expected NAME,SIZE as in '" . FONT . "', got '$opt->{font}'");
	usage('--html: the name of a file') if defined $opt->{html} && $opt->{html} eq '';
	usage('--title and --no-title: choose one') if defined $opt->{title} && $opt->{'no-title'};
}

# Draws a model.  Returns { files => [...], ascii => text, missing => why no picture was drawn }.
sub draw ($opt, $model, $spool) {
	my $name = $opt->{name};
	my $keep = $opt->{images} ? undef : File::Temp->newdir('accel-graph-XXXXXXXX', TMPDIR => 1);
	my $dir  = $keep // $opt->{output};
	File::Path::make_path("$dir", { error => \my $errors });
	fail(EX_CANTCREAT, "$dir: " . (values %{ $errors->[0] })[0]) if @$errors;
	$model->{data} = $spool->write_data("$dir/$name.data", $model->{first}) if $spool;
	my @charts = charts($model, only => $opt->{only}, ymax => $opt->{ymax});
	for my $name (@{ $opt->{only} // [] }) {
		complain("--chart $name: there is no data for it") unless grep { ($_->{id} || 'stages') eq $name } @charts;
	}
	my %drawn = (files => [], ascii => '');
	draw_pictures($opt, $model, \@charts, $dir, \%drawn) if $opt->{images};
	if ($opt->{ascii}) {
		require Accel::Graph::Ascii;
		$drawn{ascii} = join '', map { Accel::Graph::Ascii::ascii($_, $opt->{columns}) . "\n" } @{ with_data($model, \@charts, $opt->{columns}, 60) };
	}
	if (defined $opt->{html}) {
		require Accel::Graph::Html;
		my $page = Accel::Graph::Html::html_page($model, with_data($model, \@charts), version => $opt->{version}, time => time, title => $opt->{title});
		utf8::encode($page);
		write_file($opt->{html}, $page);
		push @{ $drawn{files} }, $opt->{html};
	}
	return \%drawn;
}

sub with_data ($model, $charts, @grid) {
	require Accel::Graph::Thin;
	return Accel::Graph::Thin::with_points($charts, $model->{data} && $model->{data}{path}, @grid);
}

# The script and the data stay beside the pictures, so that they can be drawn again.
sub draw_pictures ($opt, $model, $charts, $dir, $drawn) {
	my $name = $opt->{name};
	my %how  = (name => $name, kind => $opt->{kind}, size => $opt->{size}, font => $opt->{font}, requests => $model->{requests} // 0,
		title => !$opt->{'no-title'}, defined $opt->{title} ? (title_text => text_of($opt->{title})) : ());
	my $shown = sub ($file) { ($dir eq '.' ? '' : "$dir/") . $file };
	write_file("$dir/$name.gp", gnuplot_script($charts, %how));
	push @{ $drawn->{files} }, map { $shown->($_) } $model->{data} ? "$name.data" : (), "$name.gp";
	my $gnuplot = find_program('gnuplot');
	if (!$gnuplot) {
		$drawn->{missing} = "gnuplot is not installed (Debian: gnuplot-nox), so no chart was drawn; the data and the script are kept: gnuplot $name.gp";
		return;
	}
	my @pictures = map { picture($_, %how) } @$charts;
	write_file("$dir/$_", '') for @pictures;    # gnuplot reports an unwritable file with status 0
	my ($failed, $err) = run_gnuplot($gnuplot, $dir, "$name.gp");
	fail(EX_UNAVAILABLE, "gnuplot failed on $dir/$name.gp: " . ($err || "wait status $failed")) if $failed;
	complain($err) if $opt->{verbose} && $err ne '';
	for my $picture (@pictures) {
		fail(EX_UNAVAILABLE, "gnuplot drew nothing into $dir/$picture: $err") unless -s "$dir/$picture";
		push @{ $drawn->{files} }, $shown->($picture);
	}
}

sub write_file ($path, $bytes) {
	open my $out, '>', $path or fail(EX_CANTCREAT, "$path: $!");
	print $out $bytes;
	close $out or fail(EX_CANTCREAT, "$path: $!");
}

1;
