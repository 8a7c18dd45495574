package Test::Prometheus;
# A Prometheus for one test, on a port of its own.
#
#     my $prom = Test::Prometheus->start(
#         rules   => Test::Prometheus::shorter(slurp('examples/prometheus/stat-accel.rules.yml'), 150),
#         targets => [ { job => 'accel-server', target => '127.0.0.1:8080' },
#                      { job => 'fcgi-stat-accel', target => '127.0.0.1:80', path => '/stat-accel-metrics' } ],
#     );
#     my ($down) = grep { $_->{labels}{alertname} eq 'AccelDown' } $prom->alerts;     # pending and firing
#     print $_->{value} for $prom->query('sum by (instance) (rate(accel_requests_read_total[2s]))');
#     print "$_->{labels}{alertname} from $_->{from} to $_->{to}\n" for $prom->fired;
#     $prom->stop;
#
# `start` makes a configuration in a temporary directory, starts the program on a free port that the kernel chooses, and returns
# when it is ready. Options:
#
#     rules     the text of a file of rules
#     config    the text of a configuration in place of targets; rule_files and intervals are added
#     targets   a list of { job, target => 'HOST:PORT', path => '/metrics', labels => {...} }
#     every     how often it scrapes and evaluates, as "200ms" (the default)
#
# The process ends with the object, and with the test.
#
# Answers:
#
# - alerts: What /api/v1/alerts says: { labels, annotations, state => 'pending' or 'firing' }.
# - query(EXPR, [TIME]), query_range(EXPR, FROM, TO, STEP): Rows { labels, value }, or { labels, values => [[time, value]...] }. An expression that Prometheus refuses dies with its message.
# - fired([FROM, TO, STEP]): Each time an alert was firing, in the order of their beginning: { labels, from, to }; to is the last time seen. Without arguments
# since the start, in steps of 0.2 s; 11,000 steps is the limit of Prometheus.
# - targets_up, rule_errors: How many targets answered the last scrape. What /api/v1/rules has as errors.
#
# `shorter(TEXT, N)` divides each duration of a file of rules by N: those after for: and interval:, and ranges in brackets. Ranges keep at
# least one second. Nothing else is changed.
use v5.36;
use File::Temp ();
use HTTP::Tiny ();
use JSON::PP   ();
use POSIX      ();
use Test::Util qw(PATIENCE eventually need_program put slurp);
use Time::HiRes qw(time);

use constant { MS => { ms => 1, s => 1000, m => 60_000, h => 3_600_000, d => 86_400_000 }, LEAST_RANGE => 1000, LEAST_FOR => 200 };

my %running;                    # pid => 1, those of this process

# ---------------------------------------------------------------- start and stop

sub start ($class, %arg) {
	my $program = need_program('prometheus', 'prometheus');
	my $self = bless { dir => File::Temp->newdir('prometheus-XXXXXX', TMPDIR => 1), owner => $$, every => $arg{every} // '200ms', began => time }, $class;
	put("$self->{dir}/rules.yml", $arg{rules} // "groups: []\n");
	put("$self->{dir}/prometheus.yml", $self->_config(%arg));
	$self->{pid} = fork // die "fork: $!";
	if (!$self->{pid}) {
		open STDIN,  '<',  '/dev/null' or POSIX::_exit(126);
		open STDOUT, '>',  "$self->{dir}/log" or POSIX::_exit(126);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
		@ENV{qw(GOMAXPROCS GOGC)} = (1, 50);
		{ no warnings; exec qw(setpriv --pdeathsig KILL --), $program, "--config.file=$self->{dir}/prometheus.yml", "--storage.tsdb.path=$self->{dir}/data",
		    '--web.listen-address=127.0.0.1:0' }
		POSIX::_exit(127);
	}
	$running{ $self->{pid} } = 1;
	eventually(sub { $self->_port && $self->_ready or $self->_ended }) or die "prometheus is not ready: " . $self->log;
	die "prometheus ended: " . $self->log if $self->_ended;
	return $self;
}

sub _config ($self, %arg) {
	my $text = $arg{config} // "scrape_configs:\n" . join '', map { _job($_) } @{ $arg{targets} // [] };
	return "global:\n  scrape_interval: $self->{every}\n  scrape_timeout: $self->{every}\n  evaluation_interval: $self->{every}\nrule_files: [ rules.yml ]\n$text";
}

# YAML reads JSON.
my $targets = 0;
sub _job ($t) {
	my $json = JSON::PP->new->canonical;
	my @one = ({ targets => [ $t->{target} ], labels => $t->{labels} // {} });
	my $path = $t->{path} // '/metrics';
	my ($url, $query) = split /\?/, $path, 2;
	my %job = (job_name => "$t->{job}-" . ++$targets, metrics_path => $url, static_configs => \@one,
		relabel_configs => [ { target_label => 'job', replacement => $t->{job} } ], defined $query ? (params => { $query => [''] }) : ());
	return '  - ' . $json->encode(\%job) . "\n";
}

# The log has the port that the kernel chose.
sub _port ($self) {
	return $self->{port} //= $self->log =~ /msg="Listening on" address=127\.0\.0\.1:(\d+)/ ? $1 : undef;
}

sub _ready ($self) { return HTTP::Tiny->new(timeout => 5)->get($self->url . '/-/ready')->{success} }

sub _ended ($self) {
	return 1 if !$running{ $self->{pid} };
	return 0 if waitpid($self->{pid}, POSIX::WNOHANG()) == 0;
	delete $running{ $self->{pid} };
	return 1;
}

sub url ($self) { return "http://127.0.0.1:$self->{port}" }
sub log ($self) { return slurp("$self->{dir}/log") }
sub pid ($self) { return $self->{pid} }

# True: it ended after TERM.
sub stop ($self) {
	return 1 if $self->_ended;
	kill TERM => $self->{pid};
	my $ended = eventually(sub { $self->_ended }, PATIENCE / 2);
	kill KILL => $self->{pid} if !$ended;
	waitpid $self->{pid}, 0 if !$ended;
	delete $running{ $self->{pid} };
	return $ended;
}

sub DESTROY ($self) {
	return if $self->{owner} != $$ || !$self->{pid};
	local ($?, $!, $@);
	$self->stop;
}

my $owner = $$;
END { if ($$ == $owner) { local $?; kill KILL => $_ for keys %running } }

# ---------------------------------------------------------------- what it knows

sub _api ($self, $path, %query) {
	my $http = HTTP::Tiny->new(timeout => PATIENCE);
	my $r = $http->get($self->url . "/api/v1/$path" . (%query ? '?' . $http->www_form_urlencode(\%query) : ''));
	my $json = eval { JSON::PP->new->utf8->decode($r->{content}) } // die "$path: $r->{status} $r->{content}\n";
	die "$path: $json->{error}\n" if $json->{status} ne 'success';
	return $json->{data};
}

sub alerts ($self) { return @{ $self->_api('alerts')->{alerts} } }

sub query ($self, $expr, $time = undef) {
	my $data = $self->_api('query', query => $expr, defined $time ? (time => $time) : ());
	return { labels => {}, value => $data->{result}[1] } if $data->{resultType} =~ /^(?:scalar|string)$/;
	return map { { labels => $_->{metric}, value => $_->{value}[1] } } @{ $data->{result} };
}

sub query_range ($self, $expr, $from, $to, $step) {
	my $data = $self->_api('query_range', query => $expr, start => $from, end => $to, step => $step);
	return map { { labels => $_->{metric}, values => $_->{values} } } @{ $data->{result} };
}

sub fired ($self, $from = $self->{began}, $to = time, $step = 0.2) {
	my @fired;
	for my $row ($self->query_range('ALERTS{alertstate="firing"}', $from, $to, $step)) {
		my $last;
		for my $at (map { $_->[0] } @{ $row->{values} }) {
			push @fired, { labels => $row->{labels}, from => $at } if !defined $last || $at - $last > 1.5 * $step;
			$fired[-1]{to} = $last = $at;
		}
	}
	return sort { $a->{from} <=> $b->{from} } @fired;
}

sub targets_up ($self) { return scalar grep { $_->{health} eq 'up' } @{ $self->_api('targets')->{activeTargets} } }

sub rule_errors ($self) {
	return map { "$_->{name}: $_->{lastError}" } grep { ($_->{lastError} // '') ne '' } map { @{ $_->{rules} } } @{ $self->_api('rules')->{groups} };
}

# ---------------------------------------------------------------- shorter rules

sub _divided ($number, $unit, $by, $least) {
	my $ms = POSIX::floor($number * MS->{$unit} / $by + 0.5);
	return ($ms < $least ? $least : $ms) . 'ms';
}

sub shorter ($text, $by) {
	my $for = sub ($n, $unit) { _divided($n, $unit, $by, $n ? LEAST_FOR : 0) };
	$text =~ s/^(\s*(?:- )?(?:for|interval):\s*)(\d+)(ms|s|m|h|d)\b/$1 . $for->($2, $3)/gme;
	$text =~ s/\[(\d+)(ms|s|m|h|d)\]/'[' . _divided($1, $2, $by, LEAST_RANGE) . ']'/ge;
	return $text;
}

1;
