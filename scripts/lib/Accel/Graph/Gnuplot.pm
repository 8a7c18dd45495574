package Accel::Graph::Gnuplot;
# The charts: a script for gnuplot, which is kept, and what gnuplot makes of it.
use v5.36;

use Accel::Graph::Error qw(complain fail EX_UNAVAILABLE EX_CANTCREAT);
use File::Path ();
use File::Spec ();
use File::Temp ();

# Draws what $opt asks for, see accel-graph.  Returns { files => [...], ascii => text, missing => why nothing was drawn }.
sub draw ($opt, $model, $spool) {
	my $name = $opt->{name};
	my $keep = $opt->{images} ? undef : File::Temp->newdir('accel-graph-XXXXXXXX', TMPDIR => 1);
	my $dir  = $keep // $opt->{output};
	File::Path::make_path("$dir", { error => \my $errors });
	fail(EX_CANTCREAT, "$dir: " . (values %{ $errors->[0] })[0]) if @$errors;
	$model->{data} = $spool->write_data("$dir/$name.data", $model->{first});
	my $gnuplot = find_program('gnuplot');
	my ($ascii, @files) = '';

	if ($opt->{images}) {
		write_text("$dir/$name.gp", gp_script($name, $model, $opt, $opt->{kind}));
		push @files, map { ($dir eq '.' ? '' : "$dir/") . $_ } "$name.data", "$name.gp";
		if ($gnuplot) {
			my @charts = map { "$name$_.$opt->{kind}" } '', '-read-queue-wait', '-read', '-write';
			for my $chart (@charts) {    # gnuplot reports an unwritable file with status 0
				open my $probe, '>', "$dir/$chart" or fail(EX_CANTCREAT, "$dir/$chart: $!");
			}
			my ($failed, $out, $err) = run_gnuplot($gnuplot, $dir, "$name.gp");
			fail(EX_UNAVAILABLE, "gnuplot failed on $dir/$name.gp: " . ($err || "wait status $failed")) if $failed;
			complain($err) if $opt->{verbose} && $err ne '';
			for my $chart (@charts) {
				fail(EX_UNAVAILABLE, "gnuplot drew nothing into $dir/$chart: $err") unless -s "$dir/$chart";
				push @files, ($dir eq '.' ? '' : "$dir/") . $chart;
			}
		}
	}
	if ($opt->{ascii} && $gnuplot) {
		my $scratch = $keep // File::Temp->newdir('accel-graph-XXXXXXXX', TMPDIR => 1);
		my $script  = gp_script($name, $model, $opt, 'dumb');
		$script =~ s/^data = .*/'data = ' . gp_quote(File::Spec->rel2abs("$dir\/$name.data"))/me;
		write_text("$scratch/ascii.gp", $script);
		my ($failed, $out, $err) = run_gnuplot($gnuplot, "$scratch", 'ascii.gp');
		fail(EX_UNAVAILABLE, 'gnuplot failed: ' . ($err || "wait status $failed")) if $failed;
		$ascii = ($out =~ s/\f\n?//gr =~ s/[ \t]+$//mgr) . "\n";
	}
	my $why = 'gnuplot is not installed (Debian: gnuplot-nox), so no chart was drawn'
	    . ($opt->{images} ? "; the data and the script are kept: gnuplot $name.gp" : '');
	return { files => \@files, ascii => $ascii, missing => $gnuplot ? undef : $why };
}

sub write_text ($path, $text) {
	open my $out, '>', $path or fail(EX_CANTCREAT, "$path: $!");
	print $out $text;
	close $out or fail(EX_CANTCREAT, "$path: $!");
	return;
}


# gnuplot expands nothing between single quotes; only a line break could end them.
sub gp_quote ($text) {
	$text =~ s/[\x00-\x1f\x7f]/_/g;
	$text =~ s/'/''/g;
	return "'$text'";
}

# A leading "<" or "|" would start a program, a leading "~" would name a home directory.
sub gp_file ($file) { return gp_quote($file =~ m/\A\w/ ? $file : "./$file") }

# The three colours also differ in brightness, for readers with any kind of colour blindness.
my %CHART = (
	'read-queue-wait' => { color => '#0072B2', column => 2, label => 'read-queue-wait-time' },
	'read'            => { color => '#E69F00', column => 3, label => 'read-time' },
	'write'           => { color => '#56B4E9', column => 4, label => 'write-time' },
);

sub gp_script ($name, $model, $opt, $kind) {
	my $dumb  = $kind eq 'dumb';
	my $n     = $model->{requests};
	my $size  = $n <= 500 ? 0.9 : $n <= 5_000 ? 0.55 : $n <= 50_000 ? 0.35 : 0.2;
	my @gp    = "# Charts of $name.data.  Edit and draw again, in this directory: gnuplot $name.gp" =~ s/[\x00-\x1f\x7f]/_/gr;
	my $q     = \&gp_quote;
	push @gp, 'reset', 'data = ' . gp_file("$name.data"), '';
	if ($dumb) {
		push @gp, "set terminal dumb mono noenhanced size $opt->{columns},$opt->{rows}";
	} else {
		push @gp, 'size = ' . $size . '    # of a point', 'set encoding utf8';
		push @gp, $kind eq 'svg'
		    ? "set terminal svg noenhanced size 1200,675 dynamic font 'DejaVu Sans,14' background '#ffffff'"
		    : ("if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {",
			"	set terminal pngcairo noenhanced size 1200,675 font 'DejaVu Sans,12' background '#ffffff'",
			'} else {',
			'	set terminal png size 1200,675',
			'}');
		push @gp,
		    q{set border 3 linecolor '#808080'},
		    q{set tics nomirror out textcolor '#303030'},
		    q{set grid linecolor '#e4e4e4' linetype 1 linewidth 1};
		push @gp, 'set mxtics 2', 'set mytics 2';
	}
	push @gp, $dumb
	    ? 'set key outside top center horizontal noenhanced'
	    : ('set key horizontal right bottom at graph 1, 1.005 reverse Left noenhanced samplen 0.5', 'set tmargin 4.5');
	push @gp,
	    q{set xlabel 'start-time of a request (seconds since the first)'},
	    q{set ylabel 'ms per request'},
	    q{set format y '%.10g'},
	    'set xrange [' . ($model->{span} > 0 ? '0:*' : '-1:1') . '] noextend',
	    'set offsets graph 0.01, graph 0.01, graph 0.04, 0';

	my $limit = $opt->{ymax};
	my $title = sub ($what) {
		return 'set title ' . $q->(sprintf '%s: %s, %d %s', $name, $what, $n, ($n == 1 ? 'request' : 'requests')) . ' noenhanced'
		    . ($dumb ? '' : q{ offset 0, 1.2 font ',14'});
	};
	my $range = sub ($max_us) {
		return 'set yrange [0:' . ($limit // ($max_us > 0 ? '*' : 1)) . ']';
	};
	my $output = sub ($suffix) { return $dumb ? () : 'set output ' . gp_file("$name$suffix.$kind") };
	my $points = sub ($chart, $char) {
		return $dumb
		    ? "title '$chart->{label}' with points pointtype '$char'"
		    : "notitle with points pointtype 7 pointsize size linecolor '$chart->{color}'";
	};
	# separate entries in the key: the points of a long log are too small to show their colour
	my $legend = sub (@charts) {
		return $dumb ? () : map { "	NaN title '$_->{label}' with points pointtype 7 pointsize 1 linecolor '$_->{color}', \\" } @charts;
	};

	my ($q_chart, $r_chart, $w_chart) = @CHART{qw(read-queue-wait read write)};
	my $top = $limit // $model->{data}{max_us}{stacked} / 1000;
	push @gp, '', '# all stages, one upon the other; the highest first, so that the lower ones stay visible', $output->(''),
	    $title->('all stages'), $range->($model->{data}{max_us}{stacked});
	push @gp,
	    q{set arrow 1 from graph 0, first 4000 to graph 0.99, first 4000 nohead } . ($dumb ? '' : q{dashtype 2 linecolor '#909090'}),
	    q{set label 1 '4 s: clients give up' at graph 1, first 4000 right front offset -0.5,0.6 } . ($dumb ? '' : q{textcolor '#606060'})
	    if $top > 4000;
	push @gp,
	    'plot \\', $legend->($q_chart, $r_chart, $w_chart),
	    '	data using 1:($2+$3+$4) ' . $points->($w_chart, 'w') . ', \\',
	    '	data using 1:($2+$3) ' . $points->($r_chart, 'r') . ', \\',
	    '	data using 1:2 ' . $points->($q_chart, 'q'),
	    'unset arrow 1', 'unset label 1';
	for my $what (qw(read-queue-wait read write)) {
		my $chart = $CHART{$what};
		push @gp, '', $output->("-$what"), $title->($what), $range->($model->{data}{max_us}{$what}),
		    'plot \\', $legend->($chart), "	data using 1:$chart->{column} " . $points->($chart, '*');
	}
	push @gp, 'unset output' unless $dumb;
	return join "\n", @gp, '';
}

sub find_program ($program) {
	for my $dir (split /:/, $ENV{PATH} // '') {
		my $path = ($dir eq '' ? '.' : $dir) . "/$program";
		return $path if -f $path && -x _;
	}
	return;
}

# Runs gnuplot on a script in a directory.  Returns its exit status, its output and its error messages.
sub run_gnuplot ($gnuplot, $dir, $script) {
	my ($out, $err) = map { File::Temp->new } 1, 2;
	my $pid = fork // fail(EX_UNAVAILABLE, "fork: $!");
	if (!$pid) {
		if (chdir $dir and open STDOUT, '>&', $out and open STDERR, '>&', $err and open STDIN, '<', '/dev/null') {
			no warnings 'exec';
			exec { $gnuplot } 'gnuplot', "./$script";
		}
		require POSIX;
		POSIX::_exit(127);
	}
	waitpid $pid, 0;
	my $status = $?;
	local $/ = undef;
	seek $_, 0, 0 for $out, $err;
	return ($status, <$out> // '', <$err> // '');
}

1;
