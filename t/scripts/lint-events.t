#!/usr/bin/perl
# scripts/lint events: each name in a call has a row in base/events.def, and each row a call.
use v5.36;
use File::Copy qw(copy);
use File::Temp;
use Test::More;

sub spew ($file, $text) { open my $fh, '>', $file or die "$file: $!"; print $fh $text; close $fh or die "$file: $!"; return }

my $dir = File::Temp->newdir;
mkdir "$dir/$_" for qw(scripts base fcgi-stat-accel server server/process);
copy('scripts/lint', "$dir/scripts/lint") or die "scripts/lint: $!";
spew("$dir/server/a.c", <<'C');
/* log_event(LOG_INFO, NULL, "in.comment"); */
static void
one(int n)
{
	log_event(LOG_WARN, NULL, "a.one", LF_STR("why", "x, (y"), LF_U64("of", f(n, 1)));
	log_limited(10, n > 0 ? LOG_WARN : LOG_INFO, conn_id(r, n),
	    n ? "b.either" : "b.or", LF_STR("do", "nothing"), conn_client(r));
}

void
two(void)
{
	process_say(LOG_ERROR, "c.said", why);
	log_line(line, &(struct log_entry){ LOG_ALERT, NULL, "d.entry", f, 3 });
}
C
spew("$dir/server/process/logs.c", "void\nprocess_say(const char *ev)\n{\n\tlog_event(level, NULL, ev, LF_TEXT(\"what\", line));\n}\n");
spew("$dir/fcgi-stat-accel/counters.def", qq{C(x.y, z, "accel.group.x", "x")\n});

sub row ($name, $who = 'server', $level = 'warn') { return qq{E("$name", "$who", "$level", "It means \\"x\\"", "")} }
my @rows = (row('a.one'), row('accel.group', 'accel', 'info'), row('b.either'), row('b.or', 'both', 'info'), row('c.said', 'server', 'error, warn'), row('d.entry', 'both', 'alert'));

sub findings (@row) {
	spew("$dir/base/events.def", join '', "/* rows */\n", map { "$_\n" } sort @row);
	return qx{sh $dir/scripts/lint events 2>/dev/null};
}

is findings(sort { $a cmp $b } @rows), '', 'a row for each';
is $? >> 8, 0, '... has no finding';
for (
	[qr/^fcgi-stat-accel\/counters\.def:1: events: accel\.group has no row/m, 'a group of counters', grep { !/accel/ } @rows],
	[qr/^server\/a\.c:5: events: a\.one has no row in base\/events\.def$/m, 'a name without a row', grep { !/a\.one/ } @rows],
	[qr/^server\/a\.c:6: events: b\.or has no row/m, 'one of two names', grep { !/b\.or/ } @rows],
	[qr/^server\/a\.c:13: events: c\.said has no row/m, 'a name that a caller gives', grep { !/c\.said/ } @rows],
	[qr/^server\/a\.c:14: events: d\.entry has no row/m, 'a line without a sink', grep { !/d\.entry/ } @rows],
	[qr/^base\/events\.def:8: events: nothing writes in\.comment$/m, 'a row without a call', @rows, row('in.comment')],
	[qr/^base\/events\.def:3: events: rows are sorted and stand once$/m, 'a row twice', @rows, row('a.one')],
	[qr/^server\/a\.c:5: events: a\.one: level warn is not in its row/m, 'another level', row('a.one', 'server', 'info'), @rows[1 .. $#rows]],
	[qr/^server\/a\.c:5: events: a\.one: its row .* says that only accel writes it/m, 'another program', row('a.one', 'accel'), @rows[1 .. $#rows]],
	[qr/^base\/events\.def:8: events: not a row/m, 'a row with a mistake', @rows, 'E("x.y", "nobody", "warn", "", "")'],
) {
	my ($want, $what, @with) = @$_;
	like findings(@with), $want, $what;
}
spew("$dir/server/b.c", "void\nthree(const char *ev)\n{\n\tlog_event(LOG_WARN, NULL, ev);\n}\n");
like findings(@rows), qr/^server\/b\.c:4: events: the name is not a literal, and three\(\) is not one of those/m, 'a name of run time in a new place';
spew("$dir/server/b.c", qq{void\nthree(void)\n{\n\tlog_limited(1, LOG_WARN, conn_id(r), "a.one",\n\t    LF_STR("why", "conn_client"));\n}\n});
is findings(@rows), "server/b.c:4: events: the line names a request, and not its client: add conn_client()\n", 'a line about a request without its client';
done_testing;
