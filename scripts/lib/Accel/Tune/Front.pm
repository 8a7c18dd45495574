package Accel::Tune::Front;
# fcgi-stat-accel in front of nginx, for each measurement.
# See Accel::Tune::Trial. nginx is that of the system, with one worker, `auth_request` for each request, and aio threads with the option `aio`.
# `factors` are the options of fcgi-stat-accel that can be swept.
use v5.36;
use parent 'Accel::Tune::Trial';
use Accel::Peer ();

# Defaults of fcgi-stat-accel.
use constant { THREADS => 20, WARM => 'read:16m' };

sub name_of ($factor) { return "--$factor" }

sub factors (%arg) {
	return (
		{ name => 'threads', values => [1, 2, 4, 8, 16, 32, 64], ordered => 1, now => $arg{threads} // THREADS },
		{ name => 'warm', values => [qw(stat open read:256k), WARM, $arg{aio} ? 'auto:threads' : ()], now => $arg{warm} // WARM },
	);
}

sub lines ($setting) { return map { "--$_=$setting->{$_}\n" } sort keys %$setting }

sub begin ($self, $setting) {
	return Accel::Peer->start('nginx', root => $self->{files}->root, front => 1, threads => $setting->{threads}, aio => $self->{aio},
		stat_accel_args => ["--warm=$setting->{warm}"], %{ $self->{peer} // {} });
}

1;
