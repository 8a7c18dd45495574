# static-file.etags = "disable": files have no entity tag, and dates answer conditional requests.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Test::Server;

my $srv = Test::Server->start(conf => qq{\$HTTP["url"] =^ "/plain/" { static-file.etags = "disable" }\n});
$srv->write($_, 'x') for 'a', 'plain/a';
my $with = $srv->fetch('/a');
ok $with->{header}{etag}, 'a file has a tag';
my $without = $srv->fetch('/plain/a');
is $without->{status}, 200, 'a file of the condition is sent';
is $without->{header}{etag}, undef, '... without a tag';
# A file that was written just now has no date, because a second change could leave the same one.
my $date;
ok Test::Util::eventually(sub { $date = $srv->fetch('/plain/a')->{header}{'last-modified'} }), '... with a date, once it is settled';
is $srv->fetch('/plain/a', 'If-Modified-Since' => $date)->{status}, 304, 'the date answers';
is $srv->fetch('/plain/a', 'If-None-Match' => '"x"')->{status}, 200, 'no tag matches';
is $srv->fetch('/plain/a', 'If-Range' => '"x"', Range => 'bytes=0-0')->{status}, 200, '... also not for a part';

done_testing;
