package Test::Truth;

=head1 NAME

Test::Truth - what accel-check says of a configuration, and what requests to the real server show

=head1 SYNOPSIS

    my @cases = Test::Truth::cases('nginx', "$dir/check/nginx");
    my $row = Test::Truth::measure($cases[0], $tree);
    print "$row->{verdict} $row->{truth}\n";             # yes, no, partly

=head1 DESCRIPTION

A case is started as L<Test::Site> starts an example. Each of its URLs is requested once. A file is accelerated when the client gets it, and the timing lines of
the accelerator name it, with bytes.

=cut

use v5.36;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP ();
use Test::Site ();
use Test::Util qw(slurp);

my $check = abs_path(dirname(__FILE__) . '/../../../scripts/accel-check');

my $modules = '/usr/lib/apache2/modules';

# What stands around a case.
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
		$file //= $url;
		push @files, $file =~ m{^/srv/www(.*)} ? "$site->{root}$1" : "$site->{root}/" . $file =~ s{^/}{}r;
		my $r = $site->get($url);
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
