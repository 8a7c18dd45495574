package Accel::Check::NginxFile;
# nginx's language into a tree of nodes, see Accel/Check.pm.
use v5.36;

use File::Basename qw(dirname);
use Accel::Check   qw(slurp unreadable include_files check_words);

# The contents of these blocks are data, not directives, and can be long.
my %DATA = map { $_ => 1 } qw(map geo types split_clients charset_map);

sub read_tree ($state, $file) {
	$state->{prefix} //= dirname($file);
	my $top = { name => '', args => [], file => $file, line => 0, kids => [] };
	read_into($state, $top, $file, undef);
	return $top;
}

sub read_into ($state, $block, $file, $from) {
	my ($text, $real) = slurp($state, $file, $from);
	push @{ $state->{stack} }, $real;
	my @open = ($block);
	my (@words, $began);
	my ($line, $count) = (1, 0);
	for ($text) {
		while (1) {
			if (/\G([ \t\r]*\n)+/gc) { $line += ($& =~ tr/\n//) }
			/\G[ \t\r]+/gc;
			next if /\G#[^\n]*/gc || /\G(?=\n)/gc;
			last if /\G\z/gc;
			my $at = $line;
			if (/\G;/gc) {
				unreadable($file, $line, 'unexpected ";"') unless @words;
				my $node = add($open[-1], $file, $began, splice @words);
				include($state, $open[-1], $node) if $node->{name} eq 'include';
			} elsif (/\G\{/gc) {
				unreadable($file, $line, 'unexpected "{"') unless @words;
				my $node = add($open[-1], $file, $began, splice @words);
				@$node{qw(kids open)} = ([], $line);
				if ($node->{name} =~ /_by_lua_block\z|^js_block\z/) {
					$line += skip_code(\$_, $file, $began);
				} else {
					push @open, $node;
					unreadable($file, $line, 'more than 100 blocks in each other') if @open > 100;
				}
			} elsif (/\G\}/gc) {
				unreadable($file, $line, "\"$words[-1]\" is not ended by \";\"") if @words;
				unreadable($file, $line, 'unexpected "}"') if @open == 1;
				(pop @open)->{close} = $line;
			} else {
				$began = $line unless @words;
				my $word;
				if (/\G"([^"\\]*+(?:\\.[^"\\]*+)*+)"/gcs || /\G'([^'\\]*+(?:\\.[^'\\]*+)*+)'/gcs) { $word = $1 }
				elsif (/\G["']/gc) { unreadable($file, $at, 'a quote that is not closed') }
				elsif (/\G((?:[^\s;{\\\$]++|\\.|\$\{|\$)++)/gcs) { $word = $1 }
				else { unreadable($file, $line, 'cannot be read') }
				$line += ($word =~ tr/\n//);
				check_words($file, $line, ++$count, length);
				push @words, $word =~ s/\\(["'\\])/$1/gr;
			}
		}
	}
	unreadable($file, $began, "\"$words[0]\" is not ended by \";\"") if @words;
	unreadable($open[-1]{file}, $open[-1]{line}, "the block \"$open[-1]{name}\" is not closed") if @open > 1;
	pop @{ $state->{stack} };
}

sub add ($parent, $file, $line, $name, @args) {
	my $node = { name => $name, args => \@args, file => $file, line => $line, parent => $parent };
	push @{ $parent->{kids} }, $node unless $DATA{ $parent->{name} } && $name ne 'include';
	return $node;
}

# Names are relative to the directory of the main file, not of the including one.
sub include ($state, $block, $node) {
	my $pattern = $node->{args}[0] // return;
	return if $DATA{ $block->{name} };
	$pattern = "$state->{prefix}/$pattern" unless $pattern =~ m{^/};
	read_into($state, $block, $_, $node) for include_files($pattern);
}

# Jumps over Lua to the brace that ends it; returns the line breaks on the way.
sub skip_code ($text, $file, $began) {
	my ($depth, $from) = (1, pos $$text);
	for ($$text) {
		while ($depth) {
			if    (/\G(?:[^{}"'\[\-]+|--\[(=*)\[.*?\]\1\]|--[^\n]*|\[(=*)\[.*?\]\2\]|[\[\-])/gcs) { next }
			elsif (/\G"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|\G'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'/gcs)                             { next }
			elsif (/\G\{/gc) { $depth++ }
			elsif (/\G\}/gc) { $depth-- }
			else             { unreadable($file, $began, 'code that does not end') }
		}
		return substr($_, $from, pos() - $from) =~ tr/\n//;
	}
}

1;
