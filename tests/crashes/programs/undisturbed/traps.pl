# Handlers of Perl, and what it learns of its children.
use strict;
use warnings;

$| = 1;
$SIG{USR1} = sub { print "usr1\n" };
kill 'USR1', $$;
$SIG{SEGV} = sub { print "segv by kill\n" };
kill 'SEGV', $$;
system('sh', '-c', 'kill -SEGV $$');
print 'child: ', $? & 127, "\n";
my $pid = fork();
if (!$pid) { $SIG{SEGV} = 'DEFAULT'; kill 'SEGV', $$; sleep 5; exit 1 }
waitpid($pid, 0);
print 'fork: ', $? & 127, "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select(undef, undef, undef, 5) };
print "left by: $@";
exit 12;
