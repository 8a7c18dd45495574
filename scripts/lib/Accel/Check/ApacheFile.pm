package Accel::Check::ApacheFile;
# Apache's language into a tree of nodes, see Accel/Check.pm.  Names are in small letters; { said } is as written.
#
# <IfModule>, <IfDefine> and <IfFile> are decided here, in the order of the file, as the server does; their contents count as if they were
# outside.
use v5.36;

use File::Basename qw(dirname);
use Accel::Check   qw(slurp unreadable include_files);

# Debian's server has these built in.
my @BUILT_IN = qw(core so http_core mod_so mod_watchdog mod_log_config mod_logio mod_version mod_unixd);

sub read_tree ($opt, $file) {
	my $state = $opt->{state} //= {};
	$state->{root} = dirname($file);
	$state->{vars} = { envvars(dirname($file) . '/envvars'), %{ $opt->{define} // {} } };
	$state->{modules}{$_} = 1 for map { ($_, "$_.c", s/^mod_//r . '_module') } @BUILT_IN;
	my $top = { name => '', args => [], file => $file, line => 0, kids => [] };
	$top->{last} = read_into($state, $top, $file, undef);
	return $top;
}

# NAME=VALUE lines of a shell file, without running it.
sub envvars ($file) {
	open my $fh, '<', $file or return;
	my %vars;
	while (my $line = <$fh>) {
		my ($name, $value) = $line =~ /^\s*(?:export\s+)?(\w+)=("[^"]*"|'[^']*'|[^\s;#]*)/ or next;
		my $plain = $value =~ s/^'(.*)'\z/$1/;
		$value =~ s/^"(.*)"\z/$1/;
		$value =~ s/\$\{?(\w+)(?::-[^}]*)?\}?/$vars{$1} \/\/ ''/ge unless $plain;
		$vars{$name} = $value;
	}
	close $fh;
	return %vars;
}

# Returns how many lines the file has.
sub read_into ($state, $block, $file, $from) {
	my ($text, $real) = slurp($state, $file, $from);
	push @{ $state->{stack} }, $real;
	my $at = { file => $file, line => 0, open => [{ block => $block }] };
	my ($begun, $logical) = (0, '');
	my @lines = split /\n/, $text;
	for my $line (@lines) {
		$at->{line}++;
		$begun ||= $at->{line};
		next if $line =~ s/\\\z// && do { $logical .= $line; 1 };
		line($state, { %$at, line => $begun, to => $at->{line} }, $logical . $line);
		($begun, $logical) = (0, '');
	}
	line($state, { %$at, line => $begun, to => $at->{line} }, $logical) if length $logical;
	my $last = $at->{open}[-1];
	unreadable($file, $last->{line}, "<$last->{said}> is not closed") if @{ $at->{open} } > 1;
	pop @{ $state->{stack} };
	return scalar @lines;
}

# open is a stack of { block, dead, said, line }: dead when a condition around is false.
sub line ($state, $at, $text) {
	$text =~ s/^\s+|\s+\z//g;
	return if $text eq '' || $text =~ /^#/;
	my $open = $at->{open};
	my $here = $open->[-1];
	if ($text =~ m{^</\s*(\w+)\s*>}) {
		unreadable($at->{file}, $at->{line}, "</$1> without <$1>") if @$open == 1 || lc $here->{said} ne lc $1;
		pop @$open;
		$here->{block}{close} = $at->{line} if $here->{block} != $open->[-1]{block};
		return;
	}
	my ($section) = $text =~ s/^<(\w+)// ? $1 : undef;
	unreadable($at->{file}, $at->{line}, "the '>' of <$section is missing") if defined $section && $text !~ s/>\s*\z//;
	my @words = words($state, $at, $text);
	if (!defined $section) {
		directive($state, $at, $here->{block}, @words) unless $here->{dead};
		return;
	}
	unreadable($at->{file}, $at->{line}, 'more than 100 sections in each other') if @$open > 100;
	my %new = (said => $section, line => $at->{line}, dead => $here->{dead}, block => $here->{block});
	if ($section =~ /^If(?:Module|Define|File|Directive|Section|Version)\z/i) {
		$new{dead} ||= !holds($state, lc $section, $words[0] // '');
	} elsif ($section =~ /^Macro\z/i) {
		$new{dead} = 1;
	} else {
		$new{block} = { name => lc $section, said => $section, args => \@words, file => $at->{file}, line => $at->{line}, open => $at->{to},
			kids => [], parent => $here->{block} };
		push @{ $here->{block}{kids} }, $new{block} unless $here->{dead};
	}
	push @$open, \%new;
}

sub words ($state, $at, $text) {
	$text =~ s/\$\{([\w.:-]+)\}/$state->{vars}{$1} \/\/ "\${$1}"/ge;
	unreadable($at->{file}, $at->{line}, 'a value that grows without end') if length $text > 1_000_000;
	my @words;
	for ($text) {
		while (!/\G\s*\z/gc) {
			/\G\s+/gc;
			if (/\G"([^"\\]*+(?:\\.[^"\\]*+)*+)"/gcs || /\G'([^'\\]*+(?:\\.[^'\\]*+)*+)'/gcs) { push @words, $1 =~ s/\\(["'\\])/$1/gr }
			elsif (/\G(["'])/gc) { unreadable($at->{file}, $at->{line}, 'a quote that is not closed') }
			elsif (/\G(\S+)/gc)  { push @words, $1 }
		}
	}
	return @words;
}

sub holds ($state, $how, $what) {
	my $not = $what =~ s/^!//;
	my $true = $how eq 'ifmodule' ? $state->{modules}{$what}
		: $how eq 'ifdefine' ? exists $state->{vars}{$what}
		: $how eq 'iffile' ? -e ($what =~ m{^/} ? $what : "$state->{root}/$what")
		: return 1;    # of the rest the version is the usual question, and the answer is yes
	return !!$true != $not;
}

sub directive ($state, $at, $block, $said, @args) {
	my $name = lc $said;
	my $node = { name => $name, said => $said, args => \@args, file => $at->{file}, line => $at->{line}, to => $at->{to}, parent => $block };
	push @{ $block->{kids} }, $node;
	if ($name eq 'loadmodule' && @args) {
		my $source = ($args[1] // '') =~ m{([^/]+)\.so\z} ? "$1.c" : '';
		$state->{modules}{$_} = 1 for $args[0], $source, 'mod_' . $args[0] =~ s/_module\z//r . '.c';
	} elsif ($name eq 'define' && @args) {
		$state->{vars}{ $args[0] } = $args[1] // '';
	} elsif ($name eq 'undefine' && @args) {
		delete $state->{vars}{ $args[0] };
	} elsif ($name eq 'serverroot' && @args) {
		$state->{root} = $args[0];
	} elsif ($name =~ /^include(optional)?\z/ && @args) {
		include($state, $block, $node, $args[0], !!$1);
	}
}

sub include ($state, $block, $node, $pattern, $optional) {
	$pattern = "$state->{root}/$pattern" unless $pattern =~ m{^/};
	for my $file (include_files($pattern)) {
		next if $optional && !-e $file;
		read_into($state, $block, $_, $node) for -d $file ? below($state, $file, $node, 0) : $file;
	}
}

# A directory means all files in it.
sub below ($state, $dir, $node, $depth) {
	unreadable(@$node{qw(file line)}, "'$dir' is too deep") if $depth > 20;
	opendir my $dh, $dir or unreadable(@$node{qw(file line)}, "cannot read '$dir': $!");
	my @names = sort grep { !/^\.\.?\z/ } readdir $dh;
	closedir $dh;
	return map { -d "$dir/$_" ? below($state, "$dir/$_", $node, $depth + 1) : "$dir/$_" } @names;
}

1;
