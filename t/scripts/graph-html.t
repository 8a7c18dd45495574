# The report of accel-graph --html: one valid page, readable without pictures, that loads and runs nothing.
use v5.36;
use utf8;
use Test::More;
use Test::Timing qw(timing_lines full_model);
use Test::Util   qw(put slurp);
use Cwd          qw(abs_path);
use Digest::SHA  qw(sha256_base64);
use File::Temp   ();
use FindBin      ();
use POSIX        ();
use lib "$FindBin::Bin/../../scripts/lib";
use Accel::Graph::Charts qw(charts);
use Accel::Graph::Html   qw(html_page);
use Accel::Graph::Thin   qw(with_points);

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output);
my $script = abs_path("$FindBin::Bin/../../scripts/accel-graph");
my $dir    = File::Temp->newdir;
chdir $dir or die "chdir: $!";
my $EVIL = qq{</script></style></title></desc><b onclick="x">&amp;'\x01\xff};

sub page_of ($model, %arg) {
	my @charts = @{ with_points([charts($model)], $model->{data}{path}) };
	return (html_page($model, \@charts, version => '1', time => 1_173_101_341, %arg), @charts);
}

# Reads a page as XML, whose rules are stricter than those of HTML.  Returns the elements, or what is wrong with it.
sub elements ($page) {
	my (@open, @all);
	my $attribute = qr{\s+([\w:-]+)="([^"<]*)"};
	pos($page) = 0;
	$page =~ m{\G<!DOCTYPE html>\n}gc or return 'no DOCTYPE';
	until ($page =~ m{\G\s*\z}gc) {
		if ($page =~ m{\G<([a-z][a-z0-9]*)((?:$attribute)*)\s*(/?)>}gc) {
			my ($name, $attributes, $empty) = ($1, $2, $5);
			my %element = (name => $name, inside => join(' ', @open), text => '');
			while ($attributes =~ m{\G$attribute}g) {
				return "<$name> has $1 twice" if exists $element{"\@$1"};
				$element{"\@$1"} = $2;
			}
			push @all,  \%element;
			push @open, $name unless $empty;
		} elsif ($page =~ m{\G</([a-z0-9]+)>}gc) {
			return "</$1> inside <$open[-1]>" unless @open && pop(@open) eq $1;
		} elsif ($page =~ m{\G((?:[^<&]|&\#\d+;)+)}gc) {
			return 'text outside' if !@open && $1 =~ /\S/;
			$all[-1]{text} .= $1;
		} else {
			return 'cannot read ' . substr $page, pos $page, 60;
		}
	}
	return @open ? "<$open[-1]> is not closed" : \@all;
}

put('cold.log', join "\n", timing_lines(400), '');
my $model = full_model('cold.log', "cold$EVIL" =~ s{[/\x01]}{}gr, $dir, $EVIL);
my ($page, @charts) = page_of($model);
my $all = elements($page);
is ref $all, 'ARRAY', 'every tag is closed, every attribute quoted' or die $all;
my %named;
push @{ $named{ $_->{name} } }, $_ for @$all;

subtest 'each chart has words and figures' => sub {
	is scalar(@charts), 13, 'all charts are in the page';
	is scalar(@{ $named{$_} }), 13, "thirteen of <$_>" for qw(figure svg desc h2 table);
	my %id;
	$id{$_}++ for grep { defined } map { $_->{'@id'} } @$all;
	is_deeply [grep { $id{$_} > 1 } keys %id], [], 'no name twice';
	for my $svg (@{ $named{svg} }) {
		is_deeply [grep { !$id{$_} } split ' ', $svg->{'@aria-labelledby'}], [], 'a picture has the title and the description that it names';
		is $svg->{'@role'}, 'img', 'and is one picture to a screen reader';
	}
	is_deeply [grep { $_->{inside} =~ / svg/ && length $_->{text} < 10 } @{ $named{title} }, @{ $named{desc} }], [], 'with words in them';
	is_deeply [grep { !$id{ substr $_->{'@href'}, 1 } } @{ $named{a} }], [], 'links lead to charts of this page';
	is scalar(grep { ($_->{'@scope'} // '') eq 'col' } @{ $named{th} }), scalar(@{ $named{th} }), 'columns have headings';
	cmp_ok scalar(@{ $named{td} }), '>', 300, 'figures';
	ok !(grep { $_->{text} =~ /NaN|inf|ARRAY|HASH/i && $_->{text} !~ /information/ } @{ $named{td} }), 'which are figures';
	my ($advice) = grep { ($_->{'@class'} // '') eq 'advice' } @{ $named{p} };
	like $advice->{text}, qr/^Nothing to change/, 'the advice';
	my $first_svg = index $page, '<svg';
	cmp_ok index($page, 'class="advice"'), '<', $first_svg, 'stands above the charts';
	like join(' ', map { $_->{text} } @{ $named{dd} }), qr/400 \(200 cold, 200 hot\).*from 2007-03-05 13:29:01 UTC.*cold\.log.*network_gthread_aio/s, 'facts of the log';
};

subtest 'the machine of a benchmark' => sub {
	my %machine = (system => 'Debian', kernel => '6.1', cpu => 'one <b>', cores => 2, memory_mb => 4096, congestion_control => 'reno', versions => 'accel 1, nginx 2');
	my $facts = sub ($of) { return join ' | ', map { $_->{text} } grep { $_->{name} =~ /\Ad[td]\z/ } @{ elements((page_of(bless({ %$model, sweep => { %{ $model->{sweep} }, machine => $of } }, ref $model)))[0]) } };
	like $facts->(\%machine), qr/Measured on \| Debian, Linux 6\.1, 2 × one &#60;b&#62;, 4096 MB of memory, congestion control reno\s*\| Programs \| accel 1, nginx 2\s*\z/, 'is described';
	unlike $facts->(undef), qr/Measured on|Programs/, 'or is not, if it is unknown';
	my ($kernel) = (POSIX::uname())[2];
	unlike $page, qr/\Q$kernel\E/, 'that of the reader has no place beside a log';
};

subtest 'nothing is loaded, nothing runs' => sub {
	is_deeply [grep { $named{$_} } qw(script link img iframe object embed image use form base audio video)], [], 'no element that could';
	is_deeply [grep { my $e = $_; grep { /^\@(?:on|src|style|xlink|background|action)/ || /^\@href/ && $e->{$_} !~ /\A#chart-\d+\z/ } keys %$e } @$all], [], 'no attribute';
	my ($css) = $page =~ m{<style>(.*?)</style>}s;
	unlike $css, qr/url\s*\(|\@import|expression/i, 'no rule';
	is_deeply [$page =~ m{(https?://[^"\s]*)}g], [('http://www.w3.org/2000/svg') x 13], 'no address but the name of SVG';
	my ($policy) = map { $_->{'@content'} } grep { ($_->{'@http-equiv'} // '') eq 'Content-Security-Policy' } @{ $named{meta} };
	like $policy, qr/\Adefault-src 'none';/, 'and a policy forbids it';
	like $policy, qr{\Qstyle-src 'sha256-@{[ sha256_base64($css) ]}='}, 'except this very style sheet';
};

subtest 'text from outside is only text' => sub {
	unlike $page, qr/<b\b|onclick="/, 'no tag of it becomes one';
	cmp_ok scalar(() = $page =~ /&#60;b onclick=/g), '>', 10, 'it is shown as it is';
	unlike $page, qr/[\x00-\x08\x0b\x0c\x0e-\x1f]/, 'without bytes that no page may have';
	my ($title) = page_of($model, title => 'A & B <c>');
	like $title, qr{<h1>A &#38; B &#60;c&#62;</h1>}, '--title too';
};

subtest 'light, dark, narrow, printed' => sub {
	like $page, qr/prefers-color-scheme:dark/, 'follows the theme of the reader';
	like $page, qr/\@media print/, 'has rules for print';
	like $page, qr/name="viewport" content="width=device-width/, 'fits a telephone';
	my ($light, $dark) = $page =~ /:root\{([^}]*)\}.*?:root\{([^}]*)\}/s;
	my %colors = map { $_ => { ($_ eq 'light' ? $light : $dark) =~ /--([\w-]+):(#\w{6})/g } } qw(light dark);
	is_deeply [sort keys %{ $colors{dark} }], [sort keys %{ $colors{light} }], 'each colour in both';
	my %used = map { $_ => 1 } $page =~ /class="(?:bar |mark )?([flh]-[\w-]+)"/g;
	is_deeply [grep { my $class = $_; $page !~ /\.\Q$class\E\{/ } sort keys %used], [], 'each class of a picture has a rule';
	for my $theme (qw(light dark)) {
		my ($back, $front, $soft) = map { my $c = $colors{$theme}{$_}; luminance($c) } qw(bg fg soft);
		cmp_ok contrast($back, $front), '>=', 7, "$theme: text can be read";
		cmp_ok contrast($back, $soft), '>=', 4.5, "$theme: small text too";
		my @heat = map { contrast($back, luminance($colors{$theme}{"h$_"})) } 0 .. 5;
		cmp_ok $heat[0], '>=', 1.7, "$theme: a cell of one request can be seen";
		ok !(grep { $heat[$_] < 1.2 * $heat[ $_ - 1 ] } 1 .. 5), "$theme: ... and each level from the one below";
		cmp_ok contrast($back, luminance($colors{$theme}{"s-$_"})), '>=', 1.9, "$theme: $_ can be seen" for map { s/\As-//r } grep { /\As-/ } sort keys %{ $colors{$theme} };
	}
};

sub luminance ($color) {
	my @part = map { my $c = hex($_) / 255; $c <= 0.03928 ? $c / 12.92 : (($c + 0.055) / 1.055)**2.4 } $color =~ /(\w\w)/g;
	return 0.2126 * $part[0] + 0.7152 * $part[1] + 0.0722 * $part[2];
}

sub contrast (@two) { my ($low, $high) = sort { $a <=> $b } @two; return ($high + 0.05) / ($low + 0.05) }

subtest 'a page of any log has a bounded size' => sub {
	put('long.log', join "\n", timing_lines(20_000), '');
	my $before = length((page_of(Test::Timing::model_of('cold.log', 'cold', $dir)))[0]);
	my $after  = length((page_of(Test::Timing::model_of('long.log', 'long', $dir)))[0]);
	cmp_ok $after, '<', 2_500_000, "$before bytes for 400 requests, $after for 20000";
};

subtest 'the program writes it' => sub {
	my $name = q{a"b'<i>.log};
	put($name, join "\n", timing_lines(20, path => '</script><b>\"'), '');
	is system("cd '$dir' && COLUMNS=80 $^X '$script' --html report.html './a\"b'\\''<i>.log' >out 2>&1"), 0, 'status' or diag slurp('out');
	is ref elements(slurp('report.html')), 'ARRAY', 'a valid page';
	like slurp('report.html'), qr{<h1>a&#34;b&#39;&#60;i&#62;</h1>}, 'with the name of the log';
	like slurp('out'), qr/^wrote report\.html$/m, 'which is announced';
	is_deeply [glob '*.png *.gp'], [], 'and nothing else';
	is system("$^X '$script' --html missing/report.html cold.log >out 2>&1") >> 8, 73, 'where it cannot be written: 73';
	put('zero.log', join "\n", map { "network_gthread_aio.c.78: (trace) write-start: 1173101341.$_ read-queue-wait: 0 ms read-time: 0 ms write-time: 0 ms" } 1 .. 3);
	is system("$^X '$script' --html zero.html zero.log >out 2>&1"), 0, 'a log of zeros';
	is ref elements(slurp('zero.html')), 'ARRAY', 'has a valid page too';
};

chdir '/';
done_testing;
