package Accel::Check::LighttpdFile;
# lighttpd's language into a tree of nodes, see Accel/Check.pm.
#
# An assignment has key, value and the line where it ends; a list is an array of [key or undef, value, line].
use v5.36;

use File::Basename qw(dirname);
use Accel::Check   qw(slurp unreadable include_files check_words);

use constant MAX_NESTED => 50;

sub read_tree ($opt, $file) {
	my $state = $opt->{state} //= {};
	@$state{qw(prefix define)} = (dirname($file), $opt->{define} // {});
	my $top = { name => '', args => [], file => $file, line => 0, kids => [], open => 0 };
	read_into($state, $top, $file, undef);
	return $top;
}

my @TOKENS = (
	[op    => qr/\G(==|!=|=~|!~|=\^|=\$|=>|\+=|:=|[=+(),{}\[\]])/],
	[int   => qr/\G(-?\d+)(?![\w.])/],
	[field => qr/\G\$([A-Za-z_]+)/],
	[word  => qr/\G([A-Za-z_][\w.-]*|\d[\w.-]*)/],
);

# [kind, text, line]; "eol" is left out inside parentheses, as the server does.
sub tokens ($file, $text) {
	my ($line, $depth, @all) = (1, 0);
	for ($text) {
		TOKEN: while (!/\G\z/gc) {
			next if /\G[ \t\r]+/gc || /\G#[^\n]*/gc;
			check_words($file, $line, scalar @all, length);
			if (/\G\n/gc) {
				push @all, [eol => '', $line] if !$depth && @all && $all[-1][0] ne 'eol';
				$line++;
				next;
			}
			if (/\G"([^"\\]*+(?:\\.[^"\\]*+)*+)"/gcs) {
				push @all, [string => $1 =~ s/\\"/"/gr, $line];
				$line += ($1 =~ tr/\n//);
				next;
			}
			unreadable($file, $line, 'a quote that is not closed') if /\G"/gc;
			for (@TOKENS) {
				my ($kind, $re) = @$_;
				$text =~ /$re/gc or next;
				my $what = $1;
				$depth++ if $what eq '(' && $kind eq 'op';
				$depth-- if $what eq ')' && $kind eq 'op' && $depth;
				push @all, [$kind, $what, $line];
				next TOKEN;
			}
			unreadable($file, $line, 'cannot be read');
		}
	}
	push @all, [eol => '', $line], [end => '', $line];
	return \@all;
}

sub read_into ($state, $top, $file, $from) {
	my ($text, $real) = slurp($state, $file, $from);
	push @{ $state->{stack} }, $real;
	my $in = { file => $file, tokens => tokens($file, $text), at => 0, state => $state };
	statements($in, $top, 0);
	pop @{ $state->{stack} };
}

sub peek ($in) { return $in->{tokens}[$in->{at}] }
sub take ($in) { return $in->{tokens}[$in->{at}++] }
sub next_is ($in, $text) { my $t = peek($in); return $t->[0] eq 'op' && $t->[1] eq $text }

sub expect ($in, $text) {
	my $t = take($in);
	return $t if $t->[0] eq 'op' && $t->[1] eq $text;
	my $got = $t->[0] eq 'end' || $t->[0] eq 'eol' ? 'the line ends' : "'$t->[1]' stands there";
	unreadable($in->{file}, $t->[2], "'$text' is missing: $got");
}

sub skip_eol ($in) { $in->{at}++ while peek($in)->[0] eq 'eol'; return }

sub statements ($in, $block, $depth) {
	unreadable($in->{file}, $block->{line}, 'too many blocks in each other') if $depth > MAX_NESTED;
	while (1) {
		skip_eol($in);
		my $t = peek($in);
		if ($t->[0] eq 'end') {
			unreadable($in->{file}, $block->{line}, 'a block that is not closed') if $depth;
			return;
		}
		return $t if $depth && next_is($in, '}');
		statement($in, $block, $depth);
	}
}

sub statement ($in, $block, $depth) {
	my $t = take($in);
	my ($kind, $word, $line) = @$t;
	if ($kind eq 'word' && $word =~ /^(?:else|elseif|elsif|elif)\z/) {
		skip_eol($in);
		return block($in, $block, 'else', $line, $depth) if next_is($in, '{');
		($kind, $word) = @{ take($in) };
	}
	return block($in, $block, condition($in, $word), $line, $depth) if $kind eq 'field';
	unreadable($in->{file}, $line, "'$word' is not expected here") if $kind ne 'word';
	return block($in, $block, undef, $line, $depth) if $word eq 'global' && next_is($in, '{');
	return included($in, $block, $word, $line) if $word =~ /^include(?:_shell)?\z/;
	my $op = take($in);
	unreadable($in->{file}, $line, "'=' is missing after '$word'") if $op->[0] ne 'op' || $op->[1] !~ /^(?:=|\+=|:=)\z/;
	my $value = expression($in, $block, 0);
	my $key = $word =~ /\./ ? $word : "var.$word";
	if ($op->[1] eq '+=') {
		my $old = value($block, $key);
		$value = bounded($in, $line, plus($old, $value)) if defined $old;
	}
	push @{ $block->{kids} }, $block->{last}{$key} = { name => $key, value => $value, file => $in->{file}, line => $line,
		to => $in->{tokens}[$in->{at} - 1][2], parent => $block };
	return;
}

# $FIELD["name"] OP "value", as written.
sub condition ($in, $field) {
	my $name = '';
	if (next_is($in, '[')) {
		take($in);
		$name = '["' . take($in)->[1] . '"]';
		expect($in, ']');
	}
	my $op = take($in);
	unreadable($in->{file}, $op->[2], 'a condition without comparison') if $op->[0] ne 'op' || $op->[1] !~ /^(?:==|!=|=~|!~|=\^|=\$)\z/;
	my $value = expression($in, { kids => [] }, 0);
	return "\$$field$name $op->[1] \"" . (ref $value ? '...' : $value) . '"';
}

sub block ($in, $outer, $cond, $line, $depth) {
	skip_eol($in);
	my $open = expect($in, '{');
	my $node = { name => 'block', cond => $cond, kids => [], file => $in->{file}, line => $line, open => $open->[2], parent => $outer };
	if (defined $cond) { push @{ $outer->{kids} }, $node }
	else               { $node = $outer }    # global { }: as if it were not there
	statements($in, $node, $depth + 1);
	my $close = expect($in, '}')->[2];
	$node->{close} = $close if defined $cond;
}

# Does not run a program: its output is not seen, and a note says so.
sub included ($in, $block, $how, $line) {
	my $name = expression($in, $block, 0);
	my $state = $in->{state};
	if ($how eq 'include_shell') {
		push @{ $state->{not_run} }, { file => $in->{file}, line => $line, command => $name };
		return;
	}
	$name = "$state->{prefix}/$name" unless $name =~ m{^/};
	my $from = { file => $in->{file}, line => $line };
	read_into($state, $block, $_, $from) for include_files($name);
}

# ---------------------------------------------------------------- expressions

sub expression ($in, $block, $depth) {
	unreadable($in->{file}, peek($in)->[2], 'too many lists in each other') if $depth > MAX_NESTED;
	my $value = operand($in, $block, $depth);
	while (next_is($in, '+')) {
		my $line = take($in)->[2];
		$value = bounded($in, $line, plus($value, operand($in, $block, $depth)));
	}
	return $value;
}

sub operand ($in, $block, $depth) {
	my ($kind, $text, $line) = @{ take($in) };
	return $text if $kind eq 'string' || $kind eq 'int';
	if ($kind eq 'word') {
		return $in->{state}{define}{$1} // $ENV{$1} // '' if $text =~ /^env\.(.+)/;
		return $in->{state}{prefix} if $text eq 'var.CWD';
		return value($block, $text =~ /\./ ? $text : "var.$text") // '';
	}
	unreadable($in->{file}, $line, 'a value is missing') if $kind ne 'op' || $text ne '(';
	my @list;
	until (next_is($in, ')')) {
		my $at = peek($in)->[2];
		unreadable($in->{file}, $line, 'a list that is not closed') if peek($in)->[0] eq 'end';
		my ($key, $value) = (undef, expression($in, $block, $depth + 1));
		if (next_is($in, '=>')) {
			take($in);
			($key, $value) = ($value, expression($in, $block, $depth + 1));
		}
		push @list, [$key, $value, $at];
		if   (next_is($in, ',')) { take($in) }
		elsif (!next_is($in, ')')) { unreadable($in->{file}, peek($in)->[2], "',' or ')' is missing in the list of line $line") }
	}
	take($in);
	return \@list;
}

sub plus ($one, $two) {
	return [ref $one ? @$one : [undef, $one, 0], ref $two ? @$two : [undef, $two, 0]] if ref $one || ref $two;
	return $one . $two;
}

# a = a + a, forty times, is a short file.
sub bounded ($in, $line, $value) {
	unreadable($in->{file}, $line, 'a value that grows without end') if ref $value ? @$value > 100_000 : length $value > 1_000_000;
	return $value;
}

# ---------------------------------------------------------------- for the checks

# The assignment that holds in a block: the last one in it, otherwise that of the block around it.
sub setting ($block, $key) {
	for (; $block; $block = $block->{parent}) {
		my $found = $block->{last}{$key};
		return $found if $found;
	}
	return;
}

sub value ($block, $key) {
	my $found = setting($block, $key);
	return $found ? $found->{value} : undef;
}

# A value as a user would write it.
sub written ($value, $indent = '') {
	return '"' . $value =~ s/"/\\"/gr . '"' unless ref $value;
	return '( )' unless @$value;
	# (( ... )): the usual way to write a list that holds one list
	return '(' . written($value->[0][1], $indent) . ')' if @$value == 1 && !defined $value->[0][0] && ref $value->[0][1];
	my @items = map { (defined $_->[0] ? written($_->[0]) . ' => ' : '') . written($_->[1], "$indent\t") } @$value;
	my $flat = '( ' . join(', ', @items) . ' )';
	return $flat if length $flat < 70 && $flat !~ /\n/;
	return "(\n" . join(",\n", map { "$indent\t$_" } @items) . "\n$indent)";
}

1;
