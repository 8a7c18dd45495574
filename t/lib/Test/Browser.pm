package Test::Browser;
# Chromium without a window, which opens one page.  It goes with the object; so does its profile.
#
#     my $browser = Test::Browser->start($url, trust => $cert->{pem});
#     $browser->said;         # what it wrote
#
# `trust`: a certificate that no authority has to sign.  undef from `program` if no browser is installed.
use v5.36;
use Digest::SHA qw(sha256_base64);
use File::Temp ();
use POSIX ();
use Test::Util qw(find_program slurp);
use Time::HiRes qw(time);

# It is a visitor who asks for one page: nothing of its own, and no request to others.
my @QUIET = qw(--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check --disable-background-networking
	--disable-component-update --disable-default-apps --disable-extensions --disable-sync --disable-breakpad --metrics-recording-only --no-proxy-server
	--disable-features=OptimizationHints --password-store=basic --use-mock-keychain --mute-audio);

sub program () { return find_program('chromium') // find_program('chromium-browser') }

# What --ignore-certificate-errors-spki-list expects: the hash of the public key.
sub _key_hash ($pem) {
	my (undef, $key) = Test::Util::run_fed('openssl', '', 'x509', '-in', $pem, '-pubkey', '-noout');
	my (undef, $der) = Test::Util::run_fed('openssl', $key, 'pkey', '-pubin', '-outform', 'DER');
	return sha256_base64($der) . '=';
}

sub start ($class, $url, %arg) {
	my $self = bless { dir => File::Temp->newdir('accel-browser-XXXXXX', TMPDIR => 1), owner => $$ }, $class;
	my $dir = "$self->{dir}";
	my @cmd = (program(), @QUIET, "--user-data-dir=$dir/profile", $arg{trust} ? '--ignore-certificate-errors-spki-list=' . _key_hash($arg{trust}) : (), $url);
	defined($self->{pid} = fork) or die "fork: $!";
	return $self if $self->{pid};
	setpgrp;
	@ENV{qw(HOME TMPDIR XDG_CONFIG_HOME XDG_CACHE_HOME)} = ($dir, $dir, "$dir/config", "$dir/cache");
	open STDIN, '<', '/dev/null';
	open STDOUT, '>', "$dir/said";
	open STDERR, '>&', \*STDOUT;
	{ no warnings; exec @cmd }
	POSIX::_exit(127);
}

sub said ($self) { return slurp("$self->{dir}/said") }

# Its processes are a group; they write to the profile until they have ended.
sub DESTROY ($self) {
	return if $$ != $self->{owner};
	local ($?, $!);
	my $group = -$self->{pid};
	kill TERM => $group;
	Test::Util::eventually(sub { waitpid $self->{pid}, POSIX::WNOHANG(); !kill 0, $group }, 10) or kill KILL => $group;
	waitpid $self->{pid}, 0;
}

1;
