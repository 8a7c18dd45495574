package Accel::Check::Report;
# Collects what the checks find and prints it, for people or as JSON.
#
# A finding is { id, severity, file, line, where => [...], why, snippets => [...] }; severity is
#     blocks   a disk can stop the event loop (or take a thread) here
#     breaks   requests get a wrong answer, or get past the accelerator
#     wastes   costs more than it has to
# and a snippet says where its text goes: { after | before_end | replace => { file, line [, to] }, in, text }, or only
# { advice } where there is nothing to paste.  Notes are facts that a configuration cannot tell right from wrong; they do
# not count.
use v5.36;

use JSON::PP     ();
use Accel::Check qw(mounted_on);

my %RANK = (blocks => 0, breaks => 1, wastes => 2);

my $OPEN_ASKS = 'each open() of the web server asks, too, also for a warm file: mount options by type are in "fcgi-stat-accel --manual", or pass '
    . 'these names on to accel-server (examples/nginx, examples/lighttpd)';

# What helps on a file system; the key is the kind of mounted_on().
my %MOUNT = (
	network  => 'each name that is not in memory costs a round trip, and a hung server blocks the caller: warm with --warm=read:16m, '
	    . "keep --deadline on; $OPEN_ASKS",
	fuse     => 'each name is a call to another process and is seldom kept long: --warm=read:16m, a low --remember, and --per-device '
	    . "set to the number of calls that process does in parallel; $OPEN_ASKS",
	rotating => 'each name and each file is a seek: --threads two per disk, vm.vfs_cache_pressure below 100 keeps more names in memory',
	overlay  => 'each layer is searched for a name; see the disks of the layers',
	solid    => 'a name that is not in memory costs about 0.1 ms: there is little to gain',
	memory   => 'all in memory: there is nothing to gain',
	local    => 'a local disk of unknown kind: --timing shows the cost of a cold name',
);

sub new ($class, %opt) { return bless { opt => $opt{opt}, findings => [], notes => [], places => [], roots => {}, seen => {} }, $class }

sub finding ($self, $id, $severity, $node, $where, $why, @snippets) {
	my $key = join "\0", $id, @$node{qw(file line)}, $why =~ s/\d+//gr, @{ $node->{args} // [] };    # a line can hold two locations
	if (my $old = $self->{by_key}{$key}) {
		$self->also($old, $where);
		my %known = map { snippet_key($_) => 1 } @{ $old->{snippets} };
		push @{ $old->{snippets} }, grep { !$known{ snippet_key($_) }++ } map { placed($_) } @snippets;
		return;
	}
	my $found = { id => $id, severity => $severity, file => $node->{file}, line => $node->{line}, where => [$where], why => $why,
		snippets => [map { placed($_) } @snippets] };
	$self->{by_key}{$key} = $found;
	push @{ $self->{findings} }, $found;
}

# Adds one more place of a finding; a configuration can have thousands.
sub also ($self, $old, $where) {
	my $known = $self->{known}{$old} //= { map { $_ => 1 } @{ $old->{where} } };
	push @{ $old->{where} }, $where unless $known->{$where}++;
}

sub snippet_key ($s) {
	my ($at) = map { $s->{$_} ? "$_ $s->{$_}{file}:$s->{$_}{line}" : () } qw(after before_end replace);
	return join "\0", $at // '', $s->{text} // $s->{advice} // '';
}

sub placed ($snippet) {
	my %s = %$snippet;
	for my $how (qw(after before_end replace)) {
		my $node = $s{$how} or next;
		my $line = $how eq 'after' ? $node->{open} // $node->{line} : $how eq 'before_end' ? $node->{close} : $node->{line};
		$s{$how} = { file => $node->{file}, line => $line };
		$s{$how}{to} = delete $s{to} // $node->{to} // $line if $how eq 'replace';
	}
	return \%s;
}

sub note ($self, $id, $node, $where, $why) {
	my $key = "$id\0$why";
	if (my $old = $self->{by_note}{$key}) {
		$self->also($old, $where);
		return;
	}
	push @{ $self->{notes} }, $self->{by_note}{$key} = { id => $id, file => $node->{file}, line => $node->{line}, where => [$where], why => $why };
}

# Notes a place that answers with files; see Accel/Check/Reached.pm.
sub place ($self, $where, $state, $node, %more) {
	push @{ $self->{places} }, { where => $where, state => $state, node => $node, %more };
}

sub served ($self) { return @{ $self->{places} } }

# Whether the files are accelerated: yes, no, partly, unknown; nothing: no place serves files.
sub accelerated ($self) {
	my %n;
	$n{ $_->{state} }++ for $self->served;
	return 'nothing' unless %n;
	return 'unknown' if $n{unknown};
	return keys %n == 1 && $n{asked} ? 'yes' : $n{asked} ? 'partly' : 'no';
}

# 0: fine, 1: something blocks, 2: cannot say.
sub status ($self) {
	return 1 if @{ $self->{findings} };
	return $self->accelerated =~ /^(?:yes|partly)\z/ ? 0 : 2;
}

# Notes that files are served from here.
sub root ($self, $dir, $where) {
	return unless defined $dir;
	$dir =~ s{(?<=.)/+\z}{};
	push @{ $self->{roots}{$dir} }, $where unless $self->{at_root}{$dir}{$where}++;
}

sub mounts ($self) {
	my @found;
	for my $dir (sort keys %{ $self->{roots} }) {
		my $m = mounted_on($self->{opt}, $dir) or next;
		push @found, { root => $dir, where => $self->{roots}{$dir}, mount => $m->{point}, type => $m->{type}, kind => $m->{kind}, advice => $MOUNT{ $m->{kind} } };
	}
	return @found;
}

sub sorted ($self) {
	my $nr = 0;
	my %order = map { $_ => $nr++ } @{ $self->{opt}{state}{files} // [] };
	# If two findings ask for the same text, it is printed once.
	my @all = sort { $order{ $a->{file} } <=> $order{ $b->{file} } || $a->{line} <=> $b->{line} || $RANK{ $a->{severity} } <=> $RANK{ $b->{severity} } }
		@{ $self->{findings} };
	my %seen;
	for my $f (@all) {
		for my $s (@{ $f->{snippets} }) {
			my ($at) = map { $s->{$_} ? "$_ $s->{$_}{file}:$s->{$_}{line}" : () } qw(after before_end replace);
			$s->{as_above} = JSON::PP::true if defined $at && $seen{"$at\0$s->{text}"}++;
		}
	}
	return @all;
}

sub json ($self, $server, $file) {
	my $text = JSON::PP->new->canonical->pretty->encode({
		server => $server, config => $file, files => $self->{opt}{state}{files}, findings => [$self->sorted],
		notes => $self->{notes}, mounts => [$self->mounts], accelerated => $self->accelerated, status => $self->status,
		places => [map { { where => $_->{where}, state => $_->{state}, address => $_->{address} // [] } } $self->served], asked => $self->{asked} // [],
	});
	# The configuration was read as bytes.  UTF-8 stays; in other text each byte becomes a Latin-1 letter.
	utf8::encode($text) unless utf8::decode(my $copy = $text);
	return $text;
}

# ---------------------------------------------------------------- for people

# A name must not move the cursor: no control characters, not even those of two bytes.
sub clean ($text) { return $text =~ s/[^\x20-\x7e\x80-\xff]|\xc2[\x80-\x9f]/?/gr }

sub wrapped ($indent, $text) {
	my ($line, @out) = ('');
	for my $word (split ' ', clean($text)) {
		if (length $line && length("$indent$line $word") > 110) { push @out, "$indent$line\n"; $line = '' }
		$line .= length $line ? " $word" : $word;
	}
	return join '', @out, "$indent$line\n";
}

# A word of a configuration keeps its small letter at the start.
sub sentence ($why) { return ($why =~ /^[a-z]+(?:[,:]? |\z)/ ? ucfirst $why : $why) . '.' }

sub places ($list) {
	my @all = @$list;
	return join('; ', @all <= 5 ? @all : (@all[0 .. 3], (@all - 4) . ' more'));
}

sub text ($self) {
	my $out = '';
	my @all = $self->sorted;
	for my $f (@all) {
		$out .= clean("$f->{file}:$f->{line}: $f->{severity}: $f->{id}: " . places($f->{where})) . "\n" . wrapped('    ', sentence($f->{why}));
		for my $s (@{ $f->{snippets} }) {
			if ($s->{advice}) { $out .= wrapped('    ', $s->{advice}); next }
			my ($at) = map { $s->{$_} // () } qw(after before_end replace);
			my $place = $at->{line} ? "$at->{file}:$at->{line}" : "at the top of $at->{file}";
			$out .= clean("    Write $s->{in} ($place)" . ($s->{as_above} ? ', as above.' : ':')) . "\n";
			$out .= join '', map { '        ' . clean(s/\t/    /gr) . "\n" } split /\n/, $s->{text} unless $s->{as_above};
		}
		$out .= "\n";
	}
	if (my @mounts = $self->mounts) {
		$out .= "Where the files lie:\n";
		$out .= wrapped('    ', "$_->{root} ($_->{type}, $_->{kind}): $_->{advice}.") for @mounts;
		$out .= "\n";
	}
	if (@{ $self->{notes} }) {
		$out .= "Good to know:\n";
		$out .= wrapped('    ', "$_->{file}:$_->{line}: " . places($_->{where}) . ": $_->{why}.") for @{ $self->{notes} };
		$out .= "\n";
	}
	return $out . $self->asked_text . $self->summary(@all);
}

# Who answers at the addresses of the configuration.
sub asked_text ($self) {
	my $out = '';
	for my $a (grep { $_->{state} eq 'accel' } @{ $self->{asked} // [] }) {
		my ($about, @roots) = ($a->{about}, @{ $a->{about}{roots} // [] });
		$out .= wrapped('    ', "$a->{address}: fcgi-stat-accel $about->{version}, --mode=$about->{mode}, " . (@roots ? "--root=@roots" : 'no --root') . '.');
	}
	return $out eq '' ? '' : "Who answers:\n$out\n";
}

my %SUMMARY = (
	yes => 'accelerated: all files', partly => 'accelerated: all files but the exempt ones',
	no => 'accelerated: nothing', unknown => 'accelerated: not known, see above',
	nothing => 'accelerated: nothing; no place of this configuration serves files',
);

sub summary ($self, @all) {
	my %n;
	$n{ $_->{severity} }++ for @all;
	my $how = $self->accelerated;
	my @cold = grep { $_->{state} eq 'cold' } $self->served;
	my $out = ($how eq 'partly' && @cold ? 'accelerated: all but ' . clean(places([map { $_->{where} } @cold])) : $SUMMARY{$how}) . "\n";
	return $out . @all . ' ' . (@all == 1 ? 'finding' : 'findings') . ': ' . join(', ', map { $n{$_} ? "$n{$_} $_" : () } qw(blocks breaks wastes)) . "\n" if @all;
	return $out if $self->status != 0;
	return $out . ($self->{opt}{ask} ? "nothing left that blocks\n" : "nothing in the configuration blocks; whether fcgi-stat-accel answers was not asked\n");
}

1;
