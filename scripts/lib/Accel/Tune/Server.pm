package Accel::Tune::Server;
# accel-server with a copy of a configuration, for each measurement.
# See Accel::Tune::Trial. Options: `config`, an Accel::Tune::Config. `factors` are the settings that can be swept.
use v5.36;
use parent 'Accel::Tune::Trial';
use Accel::Backends ();
use Accel::Peer ();
use Accel::Tune::Config ();
use Accel::Util qw(put);

use constant { STARTS => 3 };

my %SETTING = (
	'stat-threads' => 'server.max-stat-threads', 'read-threads' => 'server.max-read-threads',
	'backend' => 'server.network-backend', 'read-ahead' => 'server.network-chunk-size',
);

sub name_of ($factor) { return $SETTING{$factor} }

sub factors ($config) {
	my @threads = (1, 2, 4, 8, 16, 32, 64);
	return (
		{ name => 'stat-threads', values => [@threads], ordered => 1, now => $config->now('server.max-stat-threads') },
		{ name => 'read-threads', values => [@threads], ordered => 1, now => $config->now('server.max-read-threads') },
		{ name => 'backend', values => [@{ (Accel::Backends::list())[0] }], now => $config->now('server.network-backend') },
		{ name => 'read-ahead', values => [0, 65_536, 262_144, 1_048_576], now => $config->now('server.network-chunk-size') },
	);
}

sub lines ($setting) { return map { Accel::Tune::Config::statement($SETTING{$_}, $setting->{$_}) } sort keys %$setting }

# The port is chosen as the server starts; an inherited socket would take its place.
sub begin ($self, $setting) {
	my %settings = map { $SETTING{$_} => $setting->{$_} } keys %$setting;
	my $file = put("$self->{dir}/conf", $self->{config}->copy(dir => "$self->{dir}", settings => \%settings));
	delete local @ENV{qw(LISTEN_FDS LISTEN_PID NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID)};
	for my $try (1 .. STARTS) {
		my $server = eval { Accel::Peer->start('accel', root => $self->{files}->root, file => $file, env => { ACCEL_TUNE => 1 }, %{ $self->{peer} // {} }) };
		return $server if $server;
		die $@ unless $try < STARTS && $@ =~ /Address already in use/;          # another program was faster
	}
	return;
}

1;
