/* The agent: preloaded into the supervised program, it tells the supervisor of a fatal signal and waits.
 *
 * Rules: nothing happens while the program lives but for a few function calls passed through; handlers
 * allocate nothing and call only async-signal-safe functions; the program's own handlers run as they would
 * without the agent; the signal, the exit status and the core file stay what they were.
 */
#define _GNU_SOURCE
#include "inside.h"
#include "parts.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

struct fl_area *area;
int own_pid;
struct next_functions next_functions;

void find_next_functions(void) {
#define LOOK_UP(name) next_functions.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
    WRAPPED(LOOK_UP)
}

int64_t now_ns(void) {
    struct timespec t;
    NEXT(clock_gettime)(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---------------------------------------------------------------------------- modules that Python imports */

/* A file is looked at when it was opened: its name may be a bad pointer. What is not passed is read as garbage and
 * ignored, as the C library itself does without O_CREAT. */
#define WRAP_OPEN(name)                                  \
    EXPORT int name(const char *path, int flags, ...) {  \
        va_list list;                                    \
        va_start(list, flags);                           \
        mode_t mode = va_arg(list, mode_t);              \
        va_end(list);                                    \
        int file = NEXT(name)(path, flags, mode);        \
        if (area && file >= 0) after_open(area, path);   \
        look_if_asked(area);                             \
        keep_own_stack();                                \
        return file;                                     \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)

/* ------------------------------------------------------------------------------------------------ start */

static void begin_forked_child(void) {
    own_pid = process_id();
    take_own_progress(area);
}

EXPORT pid_t _Fork(void) {
    pid_t pid = NEXT(_Fork)();
    if (pid == 0 && area) begin_forked_child();
    return pid;
}

/* The memory that the supervisor shares. Its name may be an old one, and mean something else by now. */
struct fl_area *open_area(const char *path) {
    static const char kind[] = "/memfd:faultlens ";
    char target[64];
    long length = kernel(SYS_readlink, (long)path, (long)target, sizeof target, 0, 0, 0);
    if (length < (long)sizeof kind || strncmp(target, kind, sizeof kind - 1)) return NULL;
    long file = kernel(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (file < 0) return NULL;
    long found = kernel(SYS_mmap, 0, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    kernel(SYS_close, file, 0, 0, 0, 0, 0);
    if (found < 0) return NULL;
    struct fl_area *shared = (struct fl_area *)found;
    if (shared->magic == FL_MAGIC && shared->version == FL_VERSION) return shared;
    kernel(SYS_munmap, found, sizeof *area, 0, 0, 0, 0);
    return NULL;
}

static void __attribute__((constructor)) start_agent(void) {
    find_next_functions();
    find_first_runtime();
    const char *path = getenv("FAULTLENS_AGENT");
    if (!path) return;
    int saved_errno = errno;
    struct fl_area *found = is_traced() || has_shadow_stack() ? NULL : open_area(path);
    if (found && pthread_key_create(&own_stack_key, end_own_stack) == 0) {
        own_pid = process_id();
        cover_default_actions();
        learn_shown_stack();
        give_own_stack();
        pthread_atfork(NULL, NULL, begin_forked_child);
        remember_own_loader();
        __atomic_fetch_add(&found->attached, 1, __ATOMIC_RELAXED);
        area = found;
        look_for_supervisor();
    }
    remember_for_exec(path);
    if (getenv("FAULTLENS_ONLY_THIS")) spare_children();
    errno = saved_errno;
}
