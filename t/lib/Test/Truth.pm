package Test::Truth;
# What accel-check says of a configuration, and what requests to the real server show.
#
#     my @cases = Test::Truth::cases('nginx', "$dir/check/nginx");
#     my $row = Test::Truth::measure($cases[0], $tree);
#     print "$row->{verdict} $row->{truth}\n";             # yes, no, partly
#
# A case is started as Test::Site starts an example. Each of its URLs is requested once. A file is accelerated when the client gets it, and the timing lines of
# the accelerator name it, with bytes.
use v5.36;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP ();
use Test::Site ();
use Test::Util qw(slurp);

my $check = abs_path(dirname(__FILE__) . '/../../../scripts/accel-check');

my $examples = abs_path(dirname(__FILE__) . '/../../../examples');
my $modules = '/usr/lib/apache2/modules';

# The configuration around a case.
my %around = (
	nginx => sub ($case, $text) { "user www-data;\npid /run/nginx.pid;\nerror_log /var/log/nginx/error.log;\nevents { }\nhttp {\n\taccess_log off;\n$text}\n" },
	lighttpd => sub ($case, $text) { $text },
	apache => sub ($case, $text) {
		return "ServerName localhost\nServerRoot /run/\nPidFile /run/apache2.pid\nErrorLog /var/log/apache2/error.log\nDefaultRuntimeDir /run/\n"
			. "User www-data\nGroup www-data\nListen 8080\nTypesConfig /etc/mime.types\n<Directory />\n\tAllowOverride None\n</Directory>\n"
			. join('', map { "LoadModule ${_}_module $modules/mod_$_.so\n" } qw(mpm_event mime dir authz_core), split ' ', $case->{load} // '') . $text;
	},
);
my %usual = (
	nginx => '--listen unix:/run/stat-accel.sock --mode=auth --root=/srv/www --index=index.html',
	lighttpd => '--listen unix:/run/stat-accel.sock --mode=auth --root=/srv/www --index=index.html',
	apache => '--listen 127.0.0.1:9000 --mode=auth --root=/srv/www --index=index.html',
);

sub cases ($kind, $file) {
	my (undef, @parts) = split /^=== (.*)\n/m, slurp($file);
	my @all;
	while (my ($name, $text) = splice @parts, 0, 2) {
		my %case = (kind => $kind, name => $name);
		$case{$1} = $2 while $text =~ s/^#: (\w+) (.*)\n//m;
		push @all, { %case, text => $text };
	}
	return @all;
}

# ---------------------------------------------------------------- what Debian ships

my %packaged = (nginx => '/etc/nginx/nginx.conf', lighttpd => '/etc/lighttpd/lighttpd.conf', apache => '/etc/apache2/apache2.conf');

# The configuration of the installed package, unchanged, and with the lines of the README or the examples.  Port, document root and paths of
# logs are replaced; sites are read into the main file for that.  Empty without the package.
sub packaged ($kind) {
	my $file = $packaged{$kind};
	return unless -r $file;
	my %case = (kind => $kind, whole => 1, ask => '/one.txt', accelerated => 'no', finds => $kind eq 'nginx' ? 'no-auth-request' : 'no-accel');
	my $text = __PACKAGE__->can("packaged_$kind")->(slurp($file));
	$text =~ s{/var/www/html|/var/www(?=/)}{/srv/www}g;
	my %more = (accelerated => 'yes', finds => '');
	return { %case, name => "Debian's $file", text => $text },
		{ %case, %more, %{ with_lines($kind, $text) }, name => "Debian's $file, with our lines" };
}

sub packaged_nginx ($text) {
	my $site = slurp('/etc/nginx/sites-available/default') =~ s/^\s*listen \[::\]:80.*\n//mr =~ s/listen 80 default_server;/listen 8080;/r;
	return $text =~ s{^\s*include /etc/nginx/sites-enabled/\*;}{$site}mr =~ s/^(http \{)\s*\n/$1\n/mr;
}

sub packaged_lighttpd ($text) { return $text =~ s/^(server\.port\s*=) 80$/$1 8080\nserver.bind = "127.0.0.1"/mr =~ s/^include_shell ".*use-ipv6.*\n//mr }

sub packaged_apache ($text) {
	my $site = slurp('/etc/apache2/sites-available/000-default.conf') =~ s/\*:80>/*:8080>/r;
	my %var = (RUN_DIR => '/run/', LOCK_DIR => '/run/', PID_FILE => '/run/apache2.pid', LOG_DIR => '/var/log/apache2', RUN_USER => 'www-data', RUN_GROUP => 'www-data');
	return join('', map { "Define APACHE_$_ $var{$_}\n" } sort keys %var) . "ServerRoot /etc/apache2\nServerName localhost\n"
		. $text =~ s/^Include ports\.conf/Listen 127.0.0.1:8080/mr =~ s/^IncludeOptional sites-enabled.*/$site/mr;
}

sub with_lines ($kind, $text) {
	if ($kind eq 'nginx') { return { text => $text =~ s/^\s*server_name _;/$&\n@{[Test::Site->readme(qr{auth_request})]}/mr } }
	# An alias to a directory of another package is exempt.
	my ($js) = glob '/usr/share/javascript/*/*.js';
	my $too = $kind eq 'lighttpd' ? $js && -e '/etc/lighttpd/conf-enabled/90-javascript-alias.conf' ? $js =~ s{^/usr/share}{}r . "=$js" : ''
		: -e '/usr/share/apache2/icons/blank.gif' ? '/icons/blank.gif=/usr/share/apache2/icons/blank.gif' : '';
	my %ask = (ask => "/one.txt $too", accelerated => 'partly', $too ? () : (shows => 'yes'));
	if ($kind eq 'lighttpd') { return { %ask, text => $text . Test::Site->readme(qr/fastcgi\.server/) =~ s/,\s*"bin-path" => "[^"]*", "max-procs" => 1//r, accelerator => '--listen unix:/run/lighttpd/stat-accel.sock --mode=auth --root=/srv/www' } }
	my ($define, $section) = slurp("$examples/apache/auth.conf") =~ m{^(AuthnzFcgiDefineProvider.*\n).*?^(<Directory /srv/www>.*?^</Directory>\n)}ms;
	return { %ask, text => "LoadModule authnz_fcgi_module $modules/mod_authnz_fcgi.so\n$text$define$section", finds => 'autoindex' };
}

# ---------------------------------------------------------------- one case

# The text of a configuration file, with the command of the accelerator as its first comment.
sub configuration ($case) {
	my $kind = $case->{kind};
	my $options = ($case->{accelerator} // 'ends') eq 'ends' ? $usual{$kind} : $case->{accelerator} =~ /--listen/ ? $case->{accelerator}
		: $usual{$kind} =~ s/ --mode.*//r . " $case->{accelerator}";
	return "#     /usr/local/bin/fcgi-stat-accel $options\n" . ($case->{whole} ? $case->{text} : $around{$kind}->($case, $case->{text}));
}

# { verdict, truth, finds => [ids], status, answers => [statuses], said }
sub measure ($case, $tree) {
	my $site = Test::Site->start($case->{kind}, 'a configuration', root => "$tree/www", text => configuration($case), $case->{edit} ? (edit => $case->{edit}) : ());
	$site->stop_accel if ($case->{accelerator} // '') eq 'ends';
	my (@answers, @files, %came);
	for my $ask (split ' ', $case->{ask}) {
		my ($url, $file) = split /=/, $ask;
		my $host = $url =~ s/@(.*)// ? $1 : 'localhost';
		$file //= $url;
		push @files, $file =~ m{^/srv/www(.*)} ? "$site->{root}$1" : $file =~ m{^/usr/} ? $file : "$site->{root}/" . $file =~ s{^/}{}r;
		my $r = $site->get($url, Host => $host);
		push @answers, $r->{status};
		$came{ $files[-1] } = $r->{status} == 200 && $r->{body} eq slurp($files[-1]);
	}
	open my $fh, '-|', $check, '--json', $case->{kind}, "$site->{dir}/conf" or die "$check: $!";
	my $said = do { local $/ = undef; <$fh> // '' };
	close $fh;
	my $status = $? >> 8;
	$site->stop_accel;    # then its log is complete
	my %warm = $site->warmed;
	my $n = grep { $warm{$_} && $came{$_} } @files;
	my $report = eval { JSON::PP->new->decode($said) } // {};
	return { verdict => $report->{accelerated} // 'unreadable', truth => !$n ? 'no' : $n == @files ? 'yes' : 'partly', status => $status,
		finds => [map { $_->{id} } @{ $report->{findings} // [] }], answers => \@answers, said => "$said\n" . $site->said . $site->{app}->said };
}

1;
