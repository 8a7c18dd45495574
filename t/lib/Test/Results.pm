package Test::Results;
# doc/RESULTS.md and the table of README.md, from one run of the benchmarks.
#
#     my $results = Test::Results->new(dir => 'build/results');
#     $results->run('hot', 'cold');           # the benchmarks, each into DIR/NAME.json
#     $results->write;                        # doc/RESULTS.md, the blocks of README.md, doc/img/
#
#     step                 DIR/NAME.json          block                    doc/RESULTS.md.in
#     scripts/bench   -->  figures of a run  -->  a table in Markdown -->  "@hot@" becomes the table
#     accel-bench          DIR/NAME.kept/              `-------------->  README.md, between <!-- accel --> and <!-- /accel -->
#                          logs              -->  accel-graph         -->  doc/img/
#
# A step that was not run keeps the figures of the last time, as long as its file is there. Then the text says which run they are
# from.
use v5.36;
use Carp         qw(croak);
use File::Path   qw(make_path);
use JSON::PP     ();
use POSIX        ();
use Time::HiRes  qw(time);
use Test::Results::Charts ();
use Test::Results::Tables ();
use Test::Results::Then   ();

# name, seconds that the step takes on two cores, command; --json FILE is added.
my @STEPS = (
	[hot => 200, qw(scripts/bench --hot --rounds 3 --seconds 1.5), map { ('--case', $_) } qw(1k 1k-1000 pipe 10k 100k 10m close 404)],
	[idle => 15, qw(scripts/bench --idle)],
	[fcgi => 20, qw(scripts/bench --fcgi --quick), map { ('--case', $_) } qw(idle beyond hot-kept)],
	[hotcost => 50, qw(scripts/bench --hotcost --quick)],
	[accel => 200, qw(scripts/bench --accel --quick --rounds 2)],
	[cold => 380, qw(scripts/bench --cold --quick --rounds 2)],
	[pressure => 240, qw(scripts/bench --pressure --quick --disk slow --disk hung)],
	map({ ["2007-$_->[0]", $_->[1], 'scripts/accel-bench', "2007-$_->[0]", '--quick'] } ['cold-small', 100], ['cold-large', 100],
		['hot', 80], ['threads', 80], ['stat-accel', 25], ['noatime', 25], ['november', 75]),
	[starvation => 45, qw(scripts/accel-bench starvation --quick)],
	[timing => 20, qw(scripts/bench --timing)],
	[load => 50, qw(scripts/bench --load --rounds 3 --seconds 1.5)],
	[tls => 180, qw(scripts/bench --tls --quick)],
	[http2 => 110, qw(scripts/bench --http2 --quick --case matrix --case fair)],
	[floods => 160, qw(scripts/bench --http2 --quick --case floods --server accel --seconds 3)],
);

sub new ($class, %arg) { return bless { dir => 'build/results', root => '.', say => sub { }, %arg }, $class }

sub steps ($class) { return map { $_->[0] } @STEPS }

sub seconds ($class, @names) {
	my $sum = 0;
	$sum += $_->[1] for _chosen(@names);
	return $sum;
}

sub _chosen (@names) {
	my %step = map { $_->[0] => $_ } @STEPS;
	for my $name (@names) { croak "no step \"$name\"; there are: @{[ map { $_->[0] } @STEPS ]}" unless $step{$name} }
	my %wanted = map { $_ => 1 } @names;
	return grep { !@names || $wanted{ $_->[0] } } @STEPS;
}

# Runs steps, all if none is named.  What a step prints goes to DIR/NAME.txt.  Dies when one fails.
sub run ($self, @names) {
	make_path($self->{dir});
	my @steps = _chosen(@names);
	my $n = 0;
	for my $step (@steps) {
		my ($name, $usual, @cmd) = @$step;
		$self->{say}->(sprintf '[%d/%d] %s, about %d s', ++$n, scalar @steps, $name, $usual);
		my $began = time;
		$self->_run_one($name, @cmd);
		$self->{say}->(sprintf '        %.0f s', time - $began);
	}
	return;
}

sub _run_one ($self, $name, @cmd) {
	my $to = "$self->{dir}/$name";
	push @cmd, '--json', "$to.json.new";
	my $extra = { starvation => '--keep', timing => '--charts' }->{$name};
	make_path("$to.kept") if $extra;
	push @cmd, $extra, "$to.kept" if $extra;
	my $pid = fork // croak "fork: $!";
	if (!$pid) {
		open STDOUT, '>', "$to.txt" and open STDERR, '>&', \*STDOUT and exec { $cmd[0] } @cmd;
		POSIX::_exit(127);
	}
	waitpid $pid, 0;
	croak "$cmd[0] failed (status $?); its words are in $to.txt" if $?;
	rename "$to.json.new", "$to.json" or croak "$to.json: $!";
}

# The figures of a step; nothing when it never ran.
sub figures ($self, $name) {
	open my $fh, '<', "$self->{dir}/$name.json" or return;
	local $/ = undef;
	return JSON::PP::decode_json(<$fh>);
}

# All blocks: name => text of a table.
sub blocks ($self) {
	my %figures = map { $_->[0] => scalar $self->figures($_->[0]) } @STEPS;
	my %block;
	for my $source (qw(Test::Results::Tables Test::Results::Then)) {
		my $made = $source->blocks(\%figures);
		@block{ keys %$made } = values %$made;
	}
	return \%block;
}

# "@NAME@" on a line of its own becomes the block, between the marks that README.md has, too.
sub fill ($class, $template, $block) {
	my @missing;
	my $text = $template =~ s{^\@([\w-]+)\@$}{
		push @missing, $1 unless defined $block->{$1};
		"<!-- $1 -->\n" . ($block->{$1} // "(not measured)\n") . "<!-- /$1 -->"
	}gmer;
	return ($text, @missing);
}

# The blocks that a text has: name => its lines.
sub marked ($class, $text) {
	my %block;
	while ($text =~ m{^<!-- ([\w-]+) -->\n(.*?)^<!-- /\1 -->$}gms) { $block{$1} = $2 }
	return \%block;
}

# The text with these blocks in place of its own.  Marked blocks that are not among them stay.
sub replace ($class, $text, $block) {
	return $text =~ s{^(<!-- ([\w-]+) -->\n)(.*?)(^<!-- /\2 -->)$}{ $1 . ($block->{$2} // $3) . $4 }gmser;
}

sub write ($self) {
	my $block = $self->blocks;
	my ($text, @missing) = ref($self)->fill(_slurp("$self->{root}/doc/RESULTS.md.in"), $block);
	croak "never measured: @missing; run those steps first" if @missing;
	_spew("$self->{root}/doc/RESULTS.md", $text);
	_spew("$self->{root}/README.md", ref($self)->replace(_slurp("$self->{root}/README.md"), $block));
	Test::Results::Charts::draw($self->{dir}, "$self->{root}/doc/img");
	return;
}

sub _slurp ($file) {
	open my $fh, '<', $file or croak "$file: $!";
	local $/ = undef;
	return scalar <$fh>;
}

sub _spew ($file, $text) {
	open my $fh, '>', $file or croak "$file: $!";
	print $fh $text;
	close $fh or croak "$file: $!";
}

1;
