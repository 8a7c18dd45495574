package Accel::Check::Reached;
# Is each place that serves files accelerated?  The checks note the places; this asks the accelerators that they name.
#
# A place is { where, state, node, address => [...], root, as }; state is
#     asked     the server asks an accelerator before it opens the file; as says how: auth, authorizer, X-Accel-Redirect...
#     cold      it does not, or it names another file, or it asks too little: a finding says why
#     exempt    it does not, on purpose
#     unknown   the configuration does not tell
use v5.36;

use Accel::Check      qw(within);
use Accel::Check::Ask ();

sub check ($opt) {
	my $report = $opt->{report};
	my %by;
	for my $place (grep { $_->{state} eq 'asked' } $report->served) {
		push @{ $by{ $_ } }, $place for @{ $place->{address} // [] };
		next if @{ $place->{address} // [] } || $place->{itself};
		$place->{state} = 'unknown';
		$report->note('address', $place->{node}, $place->{where}, 'the address of the accelerator is known only when a request comes');
	}
	if ($opt->{ask}) { check_address($opt, $_, @{ $by{$_} }) for sort keys %by }
	all_exempt($report);
	unexplained($report);
}

sub check_address ($opt, $address, @places) {
	my $report = $opt->{report};
	my $found = Accel::Check::Ask::ask($address, $opt->{server_user});
	my $at = $places[0]{pass} // $places[0]{node};
	push @{ $report->{asked} }, { address => $address, %$found };
	if ($found->{state} eq 'unknown') {
		$_->{state} = 'unknown' for @places;
		$report->note('socket', $at, $address, "whether fcgi-stat-accel answers there is not known: $found->{why}");
	} elsif ($found->{state} ne 'accel' && !grep { !$_->{starts} } @places) {
		starts($report, $at, @places);
		$report->note('socket', $at, $address, "the server starts fcgi-stat-accel itself, and it does not answer now: $found->{why}");
	} elsif ($found->{state} ne 'accel') {
		$_->{state} = 'cold' for @places;
		$report->finding('socket', 'blocks', $at, $address, "fcgi-stat-accel does not answer: $found->{why}",
			{ advice => $found->{why} =~ /may not connect/
				? 'Start it with the user of the web server as owner of the socket: spawn-fcgi -U USER, or --listen as that user.'
				: 'Start fcgi-stat-accel there, or correct the address.' });
	} else {
		compare($report, $found->{about}, $_) for @places;
	}
}

# The server starts the program: is it there?
sub starts ($report, $at, @places) {
	$_->{state} = 'unknown' for @places;
	for my $program (grep { defined && !-x } map { (split ' ', $_->{starts})[0] } @places) {
		$_->{state} = 'cold' for @places;
		$report->finding('bin-path', 'blocks', $at, $program, -e $program ? 'the server starts this program, and it is not executable' : 'the server starts this program, and there is none',
			{ advice => 'Write the path of fcgi-stat-accel.' });
	}
}

# Do --mode, the header and --root of the running program fit this place?
sub compare ($report, $about, $place) {
	my ($as, $at) = ($place->{as} // '', $place->{pass} // $place->{node});
	my $wrong = sub ($id, $severity, $why, $advice, $cold = 1) {
		$place->{state} = 'cold' if $cold;
		$report->finding($id, $severity, $at, $place->{where}, $why, { advice => $advice });
	};
	if ($as eq 'auth' && $about->{mode} ne 'auth') {
		$wrong->('accel-mode', 'breaks', "the accelerator runs with --mode=$about->{mode}: its 404 for a missing file becomes a 500 for the client",
			'Start it with --mode=auth.', 0);
	} elsif ($as =~ /^X-/ && $about->{mode} eq 'auth') {
		$wrong->('accel-mode', 'breaks', 'the accelerator runs with --mode=auth: it names no file, and clients get an empty answer', "Start it with --mode=sendfile and the dialect of this server (--for).");
	} elsif ($as =~ /^X-/ && !grep { lc eq lc $about->{header} } split /\|/, $as) {
		$wrong->('accel-header', 'breaks', "the accelerator sends the header $about->{header}, and this server reads @{[$as =~ s/\|/ or /r]}: clients get an empty answer", 'Start it with the dialect of this server (--for).');
	}
	my @roots = @{ $about->{roots} // [] };
	my $root = $place->{root};
	return if !@roots || !defined $root || grep { within($root, $_) } @roots;
	return of_distribution($report, $place, $at) if within($root, '/usr/share');
	return $wrong->('accel-root', 'blocks', "the accelerator opens only files below @roots, and these lie below $root", "Start it with --root=$root, in addition.")
		unless grep { within($_, $root) } @roots;
	$place->{state} = 'unknown';
	$report->note('accel-root', $at, $place->{where}, "the accelerator opens only files below @roots; others below $root stay cold");
	return;
}

# Icons and scripts that packages bring: few, and always in memory.
sub of_distribution ($report, $place, $node) {
	$place->{state} = 'exempt';
	$report->note('distribution', $node, $place->{where}, "files below $place->{root} are opened cold, which is right for files that are always in memory");
}

# If no finding explains why a place is cold, it gets the finding not-asked.
sub unexplained ($report) {
	return if @{ $report->{findings} };
	for my $place (grep { $_->{state} eq 'cold' } $report->served) {
		$report->finding('not-asked', 'blocks', $place->{node}, $place->{where}, 'the accelerator is not asked for these files: they are opened cold',
			{ advice => 'See the examples of fcgi-stat-accel for this server.' });
	}
}

# Exempting popular files is right; exempting all is a mistake.
sub all_exempt ($report) {
	my @places = $report->served;
	my ($first) = grep { $_->{state} eq 'exempt' } @places;
	return if !$first || grep { $_->{state} ne 'exempt' } @places;
	$report->finding('all-exempt', 'blocks', $first->{node}, $first->{where}, 'no place that serves files asks the accelerator: all are exempt',
		{ advice => 'Exempt only the paths of files that are always in memory.' });
}

1;
