# Traps, jobs and statuses of a shell.
trap 'echo trapped USR1' USR1
kill -USR1 $$
sh -c 'kill -SEGV $$' 2>/dev/null
echo "segv: $?"
sh -c 'kill -ABRT $$' 2>/dev/null
echo "abrt: $?"
sh -c 'trap "" TERM; kill -TERM $$; exit 9'
echo "ignored: $?"
sleep 30 &
kill -TERM $!
wait $! 2>/dev/null
echo "waited: $?"
trap 'echo at exit' EXIT
exit 11
