#!/usr/bin/perl
# proxy-core in nested blocks: a request has the settings of all its blocks, a pool those of the block of its backends, in any
# order of requests.

use v5.36;
use Test::More;
use Time::HiRes qw(time);

use Test::App;
use Test::Server;

sub Test::App::do_which { my ($self) = @_; $self->note('head'); return Test::App::do_head(@_) }

my $app = Test::App->start;
my $backends = qq{proxy-core.backends = ( "unix:@{[ $app->socket ]}" )};

sub server {
	my ($conf) = @_;
	return Test::Server->start(conf => qq{server.document-root = "\@DIR\@"\nserver.max-worker = 1\nproxy-core.protocol = "fastcgi"\n$conf});
}

my $nested = <<"END";
\$HTTP["url"] =~ "^/app" {
	$backends
	proxy-core.max-pool-size = 1
	proxy-core.wait-timeout = 600
	\$HTTP["useragent"] == "hasty" {
		proxy-core.read-timeout = 1
	}
	\$HTTP["useragent"] == "shy" {
		proxy-core.wait-timeout = 1
	}
	\$HTTP["useragent"] == "files" {
		proxy-core.allow-x-sendfile = "enable"
	}
	\$HTTP["useragent"] == "watched" {
		proxy-core.debug = 1
	}
}
END

sub asks {
	my ($srv, $who, $path) = @_;
	my $c = $srv->connect;
	$c->send("GET /app/$path HTTP/1.1\r\nHost: x\r\nUser-Agent: $who\r\n\r\n");
	return $c;
}

my %says = (
	hasty => sub {
		my $t = time;
		is asks($_[0], 'hasty', 'silent')->reply->{status}, 504, 'proxy-core.read-timeout';
		cmp_ok time - $t, '<', 40, '... of the request';
	},
	files => sub {
		my ($srv) = @_;
		is asks($srv, 'files', 'head?X-Sendfile:%20' . $srv->path('file'))->reply->{body}, 'a file', 'proxy-core.allow-x-sendfile';
	},
	watched => sub {
		my ($srv) = @_;
		my $before = () = $srv->log =~ /ev=pool\.lease/g;
		asks($srv, 'watched', 'env')->reply;
		$srv->wait_log(qr/(?:ev=pool\.lease.*){@{[ $before + 1 ]}}/s);
		is scalar(() = $srv->log =~ /ev=pool\.lease/g), $before + 1, 'proxy-core.debug';
	},
	others => sub {
		my ($srv) = @_;
		is asks($srv, 'others', 'head?X-Sendfile:%20' . $srv->path('file'))->reply->{body}, 'body', 'others keep the outer settings';
	},
);

for my $order ([qw(others hasty files watched)], [qw(hasty others watched files)], [qw(watched files others hasty)], [qw(files watched hasty others)]) {
	subtest "@$order" => sub {
		my $srv = server($nested);
		$srv->write('file', 'a file');
		$says{$_}->($srv) for @$order;
	};
}

# Four blocks of which each request is in another set, asked in every order: the first to come decides nothing.
my $second = Test::App->start;
my $mixed = <<"END";
proxy-core.max-keep-alive-requests = 100
proxy-core.balancer = "static"
\$HTTP["url"] =~ "^/app" {
	$backends
	proxy-core.max-pool-size = 2
	proxy-core.rewrite-response = ( "X-Which" => ( ".*" => "outer" ) )
	\$HTTP["useragent"] =~ "sends" {
		proxy-core.allow-x-sendfile = "enable"
	}
	\$HTTP["useragent"] =~ "moves" {
		proxy-core.backends = ( "unix:@{[ $second->socket ]}" )
		proxy-core.rewrite-response = ( "X-Which" => ( ".*" => "inner" ) )
	}
}
\$HTTP["useragent"] =~ "late" {
	proxy-core.rewrite-response = ( "X-Which" => ( ".*" => "late" ) )
	server.tag = "late"
}
END
my %answer = ('none' => 'body outer stat-accel 1', 'sends' => 'a file outer stat-accel 1', 'moves' => 'body inner stat-accel 2', 'sends moves late' => 'a file late late 2');

sub permutations (@all) {
	return [] unless @all;
	return map { my $i = $_; map { [$all[$i], @$_] } permutations(@all[grep { $_ != $i } 0 .. $#all]) } 0 .. $#all;
}

for my $order (permutations(sort keys %answer)) {
	my $srv = server($mixed);
	$srv->write('file', 'a file');
	my @got;
	for my $who (@$order, reverse @$order) {
		my $before = length $second->noted('head');
		my $r = asks($srv, $who, 'which?X-Which:%20x|X-Sendfile:%20' . $srv->path('file'))->reply;
		push @got, "$r->{body} $r->{header}{'x-which'} $r->{header}{server} " . (1 + length($second->noted('head')) - $before);
	}
	is join(', ', @got), join(', ', @answer{ @$order, reverse @$order }), join ', then ', map { "'$_'" } @$order;
}

subtest 'proxy-core.wait-timeout of the request, not of the one in front of it' => sub {
	my $srv = server($nested);
	my $first = asks($srv, 'others', 'silent');
	my $patient = asks($srv, 'others', 'env');
	my $t = time;
	is asks($srv, 'shy', 'env')->reply->{status}, 503, 'the last to come leaves first';
	cmp_ok time - $t, '<', 60, '... in time';
	is $patient->take(1, 0), '', '... and the other one waits on';
	# Only a waiter that has left takes no connection, which the next subtest would count.
	$patient->abort;
	is asks($srv, 'shy', 'env')->reply->{status}, 503, 'nor does it get the socket when it leaves';
	$first->abort;
};

# A request of both blocks is answered by the backends of the first; "max-keep-alive-requests" of the second is for those inside of it.
for my $order ([qw(both one)], [qw(one both)]) {
	subtest "settings of a pool are those of its block: @$order" => sub {
		my $before = length $app->noted('connections');
		my $srv = server(<<"END");
\$HTTP["url"] =~ "^/app" {
	$backends
}
\$HTTP["useragent"] == "both" {
	proxy-core.max-keep-alive-requests = 100
	\$HTTP["url"] =~ "^/other" {
		$backends
	}
}
END
		is asks($srv, $_, 'env')->reply->{status}, 200, $_ for @$order, @$order;
		is length($app->noted('connections')) - $before, 4, 'no socket is kept';
	};
}

done_testing;
