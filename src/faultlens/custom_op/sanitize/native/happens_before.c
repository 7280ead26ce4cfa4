/* Linked into an op that is built with -fsanitize=thread. TensorFlow is not, so that the order which its locks, queues
   and thread pools bring about would go unseen, and everything they guard would look like a race. It is told here:
   code of the op that begins when other code of the op has ended comes after it; only calls that overlap in time can
   race. The locks that the op takes (generated below, for --wrap of the linker) count as locks. */

void __tsan_acquire(void *);
void __tsan_release(void *);
void __real___tsan_func_entry(void *);
void __real___tsan_func_exit(void);

static char world;
static _Thread_local int depth;

void __wrap___tsan_func_entry(void *caller) {
  if (depth++ == 0) __tsan_acquire(&world);
  __real___tsan_func_entry(caller);
}

void __wrap___tsan_func_exit(void) {
  __real___tsan_func_exit();
  if (--depth == 0) __tsan_release(&world);
}

/* Arguments in registers are handed on, whatever they are. */
#define ARGUMENTS long a, long b, long c, long d, long e, long f
#define WRAPPED(name, before, after)                  \
  long __real_##name(ARGUMENTS);                      \
  long __wrap_##name(ARGUMENTS) {                     \
    before;                                           \
    long result = __real_##name(a, b, c, d, e, f);    \
    after;                                            \
    return result;                                    \
  }
#define LOCKS(name) WRAPPED(name, (void)0, __tsan_acquire((void *)a))
#define UNLOCKS(name) WRAPPED(name, __tsan_release((void *)a), (void)0)
#define WAITS(name) WRAPPED(name, __tsan_release(&world), __tsan_acquire(&world))
