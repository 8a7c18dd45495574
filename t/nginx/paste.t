# The module's lines of the README and of examples/nginx, pasted: a cold file is asked for, and nothing is lost while the accelerator is down.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Cwd ();
use Test::More;
use Test::Site;
use Test::Site::Checks ();
use Test::Util qw(eventually program put slurp temp_tree);

Test::Site->need('nginx');

my $top = Cwd::abs_path("$FindBin::Bin/../..");
my $built = "$top/" . ($ENV{B} // 'build') . '/nginx/';
my $lines = Test::Site->readme(qr/stat_accel unix/);
my ($load, $ask) = split /(?<=\n)/, $lines;
my $page = slurp("$top/examples/nginx/README.md");
my ($section) = $page =~ /^## One line: the module\n(.*?)^## /ms or die 'no section';
my ($command) = $section =~ /^    (spawn-fcgi .*)$/m or die 'no command';

my $dir = temp_tree();
mkdir "$dir/www" or die "mkdir: $!";
mkdir "$dir/www/names" or die "mkdir: $!";

sub start ($name, %arg) {
	return Test::Site->start('nginx', $name, root => "$dir/www", edit => sub { $_[0] =~ s{modules/(?=ngx_http_stat_accel)}{$built}r }, %arg);
}

# A file that is not in memory, where the file system of the test can forget one.
sub cold ($name, $text = "I am $name") {
	my $alone = "$dir/www/$name.d";
	mkdir $alone;
	put("$alone/$name", $text);
	system program('accel-pool'), 'evict', '--quiet', $alone;
	return "$name.d/$name";
}

subtest 'the lines' => sub {
	like $load, qr/^load_module /, 'one loads the module';
	like $ask, qr/^stat_accel unix:/, 'one names the accelerator';
	like $section, qr/^\Q    $load    $ask\E/m, 'they are those of examples/nginx/README.md';
	like slurp("$top/examples/nginx/module.conf"), qr/^load_module \S+;\n.*^\s*\Q@{[$ask =~ s{;.*}{;}sr]}\E$/ms, '... and of module.conf';
};

subtest 'the README: in http, server and location' => sub {
	my $n = 0;
	for my $where (
		['http', '', "$ask server { listen 8080; root /srv/www; }"],
		['server', '', "server { listen 8080; root /srv/www; $ask }"],
		['location', 'x/', "server { listen 8080; location /x/ { alias /srv/www/; $ask } }"]) {
		my ($block, $below, $text) = @$where;
		my $shortest = Test::Site->shortest('nginx', $command, "\tlog_format s '\$stat_accel_status \$stat_accel_time';\n\taccess_log /var/log/nginx/waits s;\n$text\n") =~ s/^(?=error_log)/$load/mr =~ s/^\taccess_log off;\n//mr;
		my $site = start('the lines of the README', text => $shortest);
		my $name = 'cold' . $n++ . '.txt';
		my $file = cold($name);
		is $site->get("/$below$file")->{body}, "I am $name", "$block: a file";
		my $status = '';
		eventually(sub { ($status) = slurp("$site->{dir}/waits") =~ /^(\w+) \d+\.\d{3}$/m }, 5);
		like $status, qr/\A(?:warmed|hot)\z/, '... was looked at';
		Test::Site::Checks::warmed_are($site, $file => length "I am $name") if $status eq 'warmed';
		is $site->get("/${below}none")->{status}, 404, '... an absent one';
		is_deeply [map { $site->get("/$below$file")->{status} } 1 .. 3], [(200) x 3], '... the same once more';
		like((split /\n/, slurp("$site->{dir}/waits"))[-1], qr/^remembered /, '... is remembered');
	}
};

subtest 'module.conf' => sub {
	my $site = start('module.conf');
	put("$dir/www/names/a.txt", 'I am a');
	for my $path (qw(/pictures/a.txt /threads/names/a.txt /plain/names/a.txt)) {
		is $site->get($path)->{body}, 'I am a', $path;
	}
	is $site->get('/none')->{status}, 404, 'an absent file is 404';
	like $site->get('/stat-accel-status')->{body}, qr/^nginx\.requests\.\w+: [1-9]/m, 'its counters';

	$site->stop_accel;
	for my $i (1 .. 5) { is $site->get('/' . cold("down$i.txt"))->{body}, "I am down$i.txt", "without the accelerator nginx still serves ($i)" }
	my $once = qr/stat_accel: "unix:\S+" (?:cannot be connected to|has closed a connection without an answer|does not answer); files are served without it/;
	cmp_ok scalar(() = $site->said =~ /$once/g), '<=', slurp('/proc/cpuinfo') =~ tr/\n//, '... and the log says so at most once for each worker';
	is $site->complaints($once, qr/\[notice\]/, qr/"\S+\/none" failed \(2: /), '', '... which has no other lines';
	$site->start_accel;
	is $site->get('/' . cold('back.txt'))->{body}, 'I am back.txt', '... and goes on';
};

subtest 'the tables' => sub {
	my $source = slurp("$top/nginx/module.c");
	my %directives = map { $_ => 1 } $source =~ /ngx_string\("(stat_accel\w*)"\)/g;
	my %rows = map { $_ => 1 } $section =~ /^\| `(stat_accel\w*)/mg;
	is_deeply [sort keys %rows], [sort keys %directives], 'a row for each directive';
	my ($words) = slurp("$top/nginx/vars.c") =~ /words\[\] = \{ (.*?) \}/;
	my ($table) = $section =~ /^\| `\$stat_accel_status` (.*?)\n\n/ms;
	my @counters = slurp("$top/nginx/counters.def") =~ /^C\(\w+, "(\S+)"/mg;
	my ($shown) = $section =~ /^\| counter (.*?)\n\n/ms;
	is_deeply [grep { my ($group, $name) = split /\./; $shown !~ /`nginx\.$group\b.*[.]\Q$name\E`/ } @counters], [], 'a place for each counter';
	is_deeply [sort $table =~ /`(\w+)`(?=[^|]*\|[^|]*\|$)/mg], [sort $words =~ /"(\w+)"/g], 'a row for each status';
};

done_testing;
