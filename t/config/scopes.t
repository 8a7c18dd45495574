#!/usr/bin/perl
# Where each setting of proxy-core may stand: all rows of directives.def, in every kind of block.

use v5.36;
use File::Temp ();
use FindBin ();
use Test::More;

use Test::Util qw(program put slurp);

my $dir = File::Temp->newdir('accel-scopes-XXXXXX', TMPDIR => 1);
my @row = slurp("$FindBin::Bin/../../server/config/directives.def")
    =~ /^D\(\w+,\s*"(proxy-core\.[^"]+)",\s*(\w+),\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",\s*(\w+),/mg;
my @all;
push @all, { name => $row[0], type => $row[1], default => $row[2], min => $row[3], max => $row[4], scope => $row[6] }, splice @row, 0, 7 while @row;
@all = grep { ref } @all;
cmp_ok scalar @all, '>', 25, 'rows';

# A value that is allowed.
my %value = (
	'proxy-core.protocol' => '"scgi"', 'proxy-core.weights' => '( "2" )', 'proxy-core.authorizer' => '( "unix:/a" )',
	'proxy-core.authorizer-protocol' => '"scgi"', 'proxy-core.backends' => '( "unix:/b" )', 'proxy-core.x-sendfile-docroot' => '( "/tmp" )',
	'proxy-core.x-sendfile-tempdir' => '( "/tmp" )',
	'proxy-core.spawn' => '( "unix:/x" => ( "command" => "/bin/true" ) )',
);
sub value ($row) {
	my ($word) = split / /, $row->{min};
	return $value{ $row->{name} } // {
		BOOL => '"enable"', UINT => $row->{min} || 1, STR => '"' . ($word // ($row->{default} || '/x')) . '"', LIST => '( "' . ($word // 'x') . '" )', MAPS => '( "X" => ( "a" => "b" ) )',
	}->{ $row->{type} };
}

# The message of the check of this configuration, with LINE for the line of the setting.
sub check ($row, $conf) {
	my $set = "$row->{name} = " . value($row);
	my $protocol = $row->{name} =~ /core.protocol$/ ? '' : $row->{name} =~ /secret/ ? 'ajp13' : 'fastcgi';
	my $text = qq{server.document-root = "/tmp"\n} . ($protocol && qq{proxy-core.protocol = "$protocol"\n}) . $conf =~ s/SET/$set/r;
	my ($line) = map { tr/\n// + 1 } $text =~ /\A(.*?)\Q$set\E/s;
	put("$dir/a.conf", $text);
	my $said = qx{@{[ program('accel-server') ]} -t -f $dir/a.conf 2>&1};
	return ($?, $said, qr/^\Q$dir\E\/a\.conf:$line:\d+: \Q$row->{name}\E /m);
}

my $backends = 'proxy-core.backends = ( "unix:/x" )';
my ($a, $b, $c) = map { qq<\$HTTP["url"] =~ "^/$_" {> } qw(a b c);
# name => [configuration, whether a setting of a pool may stand there]
my %place = (
	'outside of all blocks' => ["SET\n$a\n$backends\n}\n", 1],
	'in the block of the backends' => ["$a\n$backends\nSET\n}\n", 1],
	'around their block' => ["$a\nSET\n$b\n$backends\n}\n}\n", 1],
	'around two blocks' => ["$a\nSET\n$b\n$backends\n}\n$c\n$backends\n}\n}\n", 1],
	'inside of it' => ["$a\n$backends\n$b\nSET\n}\n}\n", 0],
	'deep inside of it' => ["$a\n$backends\n$b\n$c\nSET\n}\n}\n}\n", 0],
	'in another block' => ["$a\n$backends\n}\n$b\nSET\n}\n", 0],
	'in another block before it' => ["$b\nSET\n}\n$a\n$backends\n}\n", 0],
	'in an else' => ["$a\n$backends\n}\nelse $b\nSET\n}\n", 0],
	'in a block with backends in front of it' => ["$backends\n$a\nSET\n}\n", 0],
	'between two blocks with backends' => ["$a\n$backends\n$b\nSET\n$c\n$backends\n}\n}\n}\n", 0],
	'in the block of an authorizer' => ["$a\n$backends\n$b\nproxy-core.authorizer = ( \"unix:/y\" )\nSET\n}\n}\n", 1],
	'around the block of an authorizer' => ["$a\nSET\n$b\nproxy-core.authorizer = ( \"unix:/y\" )\n}\n}\n$c\n$backends\n}\n", 1],
);

for my $row (grep { $_->{type} !~ /^(?:ALIAS|OLD|NOP|BLOCK)$/ && $_->{name} !~ /\.(?:backends|authorizer)$/ } @all) {
	subtest "$row->{name}, $row->{scope}" => sub {
		for my $where (sort keys %place) {
			next if $where =~ /authorizer/ && $row->{name} eq 'proxy-core.protocol';       # the authorizer has its own
			my ($conf, $pool) = @{ $place{$where} };
			my ($status, $said, $error) = check($row, $conf);
			if ($row->{scope} eq 'REQUEST' || $pool) { is $status, 0, $where or diag $said }
			else {
				isnt $status, 0, "$where: refused";
				like $said, $error, '... with file and line';
			}
		}
	};
}

done_testing;
