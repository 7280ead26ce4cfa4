# Handlers of Ruby, and what it learns of its children.
$stdout.sync = true
trap("USR1") { puts "usr1" }
Process.kill("USR1", Process.pid)
sleep 0.1
system("kill -SEGV $$")
puts "child: #{$?.termsig}"
pid = fork { Signal.trap("ABRT", "DEFAULT"); Process.kill("ABRT", Process.pid); sleep 5 }
Process.wait(pid)
puts "fork: #{$?.termsig}"
def deep(n) = deep(n + 1) + 1
begin
  deep(0)
rescue SystemStackError
  puts "deep recursion caught"
end
exit! 13
