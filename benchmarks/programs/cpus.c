/* Preloaded: lets a program believe in as many CPUs as the variable CPUS says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int cpus(void) {
  const char *text = getenv("CPUS");
  return text ? atoi(text) : 1;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
  (void)pid;
  memset(set, 0, size);
  for (int cpu = 0; cpu < cpus() && cpu < (int)size * 8; cpu++) CPU_SET_S(cpu, size, set);
  return 0;
}

int get_nprocs(void) { return cpus(); }
int get_nprocs_conf(void) { return cpus(); }

long sysconf(int name) {
  static long (*real)(int);
  if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return cpus();
  if (!real) real = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return real(name);
}
