package Accel::Check;
# What the readers of all three languages share: files, includes, places, findings.
#
# A reader makes a tree of nodes { name, args, file, line, kids, open, parent }: kids is an array for a block and
# missing for a plain directive; line is where the directive begins, open where the first line inside its block may go.
use v5.36;

use Accel::Mounts ();
use Cwd      ();
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Glob     qw(bsd_glob GLOB_QUOTE);

our @EXPORT_OK = qw(by_name check_words slurp unreadable include_files within mounted_on slow_kind is_page page_not_asked);

use constant {
	MAX_FILE  => 8 << 20,     # bytes: what is larger is not a configuration
	MAX_TOTAL => 32 << 20,    # bytes of all files together
	MAX_DEPTH => 32,          # includes in includes
	MAX_FILES => 10_000,
	MAX_WORK  => 2e11,        # words of a file x its bytes: Perl copies the text for each word; 5 s
};

# Ends the run with a message that names a place; a blessed hash, so that a bug of ours looks different.
sub unreadable ($file, $line, $why) { die bless { file => $file, line => $line, why => $why }, 'Accel::Check::Unreadable' }

sub check_words ($file, $line, $words, $bytes) {
	unreadable($file, $line, "$words words up to here, too many for a file of this size") if $words * $bytes > MAX_WORK;
}

# The text of a file.  $from = { file, line, stack } is the include that asks for it, if one does.
sub slurp ($state, $file, $from = undef) {
	my ($at, $nr) = $from ? @$from{qw(file line)} : ($file, 0);
	my $real = Cwd::realpath($file) // $file;
	my $stack = $state->{stack} //= [];
	unreadable($at, $nr, "'$file' includes itself") if grep { $_ eq $real } @$stack;
	unreadable($at, $nr, 'more than ' . MAX_DEPTH . ' includes in each other') if @$stack >= MAX_DEPTH;
	unreadable($at, $nr, "'$file' is a directory") if -d $file;
	unreadable($at, $nr, "'$file' is not a regular file") if -e _ && !-f _;
	open my $fh, '<:raw', $file or unreadable($at, $nr, "cannot read '$file': $!");
	my $text = '';
	read($fh, $text, MAX_FILE + 1) // unreadable($at, $nr, "cannot read '$file': $!");
	unreadable($file, 1, 'larger than ' . (MAX_FILE >> 20) . ' MiB, that is not a configuration') if length $text > MAX_FILE;
	$state->{total} += length $text;
	unreadable($at, $nr, 'more than ' . (MAX_TOTAL >> 20) . ' MiB with everything it includes') if $state->{total} > MAX_TOTAL;
	my $nul = index $text, "\0";
	unreadable($file, 1 + (substr($text, 0, $nul) =~ tr/\n//), 'a zero byte: not a text file') if $nul >= 0;
	unreadable($at, $nr, 'more than ' . MAX_FILES . ' files') if @{ $state->{files} // [] } >= MAX_FILES;
	push @{ $state->{files} }, $file;
	return ($text, $real);
}

# The names that an include stands for, sorted; without wildcards the name itself, whether it exists or not.
sub include_files ($pattern) {
	return $pattern unless $pattern =~ /[*?\[]/;
	return sort(bsd_glob($pattern, GLOB_QUOTE));
}

# name => directives of that name; a big configuration asks often.
sub by_name ($node) {
	return $node->{by_name} //= do {
		my %by;
		push @{ $by{ $_->{name} } }, $_ for @{ $node->{kids} // [] };
		\%by;
	};
}

# Is $path $dir itself, or below it?
sub within ($path, $dir) {
	s{(?<=.)/+\z}{} for $path, $dir;
	return $dir eq '/' || $path eq $dir || index($path, "$dir/") == 0;
}

# ---------------------------------------------------------------- mounts

my %NETWORK = map { $_ => 1 } qw(nfs nfs4 cifs smb3 smbfs ceph 9p afs lustre gpfs beegfs ocfs2 gfs2 glusterfs coda ncpfs orangefs);
my %MEMORY  = map { $_ => 1 } qw(tmpfs ramfs devtmpfs rootfs);

# The mount that $path lies on: { point, type, source, kind } or undef; kind is network, fuse, overlay, memory,
# rotating, solid or local.  A path that does not exist yet has the mount of its nearest directory.
sub mounted_on ($opt, $path) {
	my $mounts = $opt->{mounts} //= Accel::Mounts::read_table($opt->{mountinfo} // '/proc/self/mountinfo');
	$path = Cwd::realpath($path) // $path unless $opt->{mountinfo};
	my $best;
	for my $m (@$mounts) {
		next unless within($path, $m->{point});
		$best = $m if !$best || length $m->{point} >= length $best->{point};    # the later of two hides the first
	}
	$best->{kind} //= kind_of($opt, $best) if $best;
	return $best;
}

sub kind_of ($opt, $m) {
	my $type = $m->{type};
	return 'network' if $NETWORK{$type} || $type =~ /^fuse\.(?:sshfs|s3fs|goofys|glusterfs|ceph|rclone|juicefs|gcsfuse|mount-s3)/;
	return 'fuse'    if $type =~ /^fuse/;
	return 'overlay' if $type =~ /^(?:overlay|aufs)/;
	return 'memory'  if $MEMORY{$type};
	# A partition has no queue of its own; the disk is the directory above it.
	for my $dir (map { ($opt->{sysfs} // '/sys') . "/dev/block/$m->{dev}$_" } '', '/..') {
		open my $fh, '<', "$dir/queue/rotational" or next;
		my $answer = <$fh> // '';
		close $fh;
		return $answer =~ /^1/ ? 'rotating' : 'solid';
	}
	return 'local';
}

# Kinds on which a name that is not in memory costs milliseconds.
sub slow_kind ($kind) { return $kind =~ /^(?:network|fuse|rotating)\z/ }

# True for the path of a file, false for that of an application.
sub is_page ($path) { return $path =~ m{^/.*\.(?!(?:php\d?|phtml|[fs]?cgi|p[ly]|rb|lua|jsp)\z)\w+\z} }

# The server sends a page below $root instead of the requested file.
sub page_not_asked ($opt, $node, $where, $page, $root) {
	my ($report, $m) = ($opt->{report}, mounted_on($opt, $root // '/'));
	my $slow = $m && slow_kind($m->{kind});
	$report->place("$where, by $node->{name}", $slow ? 'cold' : 'exempt', $node);
	return $report->note('error-page', $node, $where, "the server opens $page without asking for it, which is right for a page that is always in memory") unless $slow;
	return $report->finding('error-page', 'blocks', $node, $where, "the server opens $page on $m->{type} without asking for it",
		{ advice => 'Move the page to a local disk, or let an application answer.' });
}

1;
