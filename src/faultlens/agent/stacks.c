/* An alternate stack for every thread: without one, a stack overflow off the main thread could not be seen by anybody.
 *
 * The program does not see it: sigaltstack() answers as it would without us, and handlers of the program for fatal
 * signals are not run on it (actions.c). It lies above a page that nobody may touch.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <limits.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define GUARD 4096
#define ROOM_TO_REPORT 2048 /* of an alternate stack of the program's, beside the frame that the kernel makes */
#define SPARE 32

pthread_key_t own_stack_key; /* its destructor takes the stack back when the thread ends */
__thread INITIAL_EXEC char *own_stack;
__thread INITIAL_EXEC int shown_stack_flags;
__thread INITIAL_EXEC bool is_own_stack_lost;
static char *spare[SPARE]; /* of threads that have ended */

static size_t frame_size(void) { return getauxval(AT_MINSIGSTKSZ); } /* vector registers make it large */

/* Our handlers need some hundred bytes beside the kernel's frame. But signals that are sent together are stacked before
 * the first handler runs, a frame each; and Go, which takes our stack for its own, has 32 KiB. */
static size_t own_stack_size(void) { return (65536 + frame_size() + GUARD - 1) & ~(size_t)(GUARD - 1); }

static char *take_spare(void) {
    for (int i = 0; i < SPARE; i++) {
        char *stack = spare[i] ? __atomic_exchange_n(&spare[i], NULL, __ATOMIC_ACQ_REL) : NULL;
        if (stack) return stack;
    }
    return NULL;
}

static bool keep_spare(char *stack) {
    for (int i = 0; i < SPARE; i++) {
        char *none = NULL;
        if (!spare[i] && __atomic_compare_exchange_n(&spare[i], &none, stack, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static char *make_stack(void) {
    size_t size = own_stack_size();
    long memory = kernel(SYS_mmap, 0, (long)(GUARD + size), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0) return NULL;
    if (kernel(SYS_mprotect, memory, GUARD, PROT_NONE, 0, 0, 0) == 0) return (char *)memory + GUARD;
    kernel(SYS_munmap, memory, (long)(GUARD + size), 0, 0, 0, 0);
    return NULL;
}

static long set_stack(const stack_t *stack, stack_t *before) {
    return kernel(SYS_sigaltstack, (long)stack, (long)before, 0, 0, 0, 0);
}

static void use_own_stack(void) {
    stack_t stack = {.ss_sp = own_stack, .ss_size = own_stack_size()};
    set_stack(&stack, NULL);
}

void give_own_stack(void) {
    stack_t before;
    if (stands_aside || set_stack(NULL, &before) || !(before.ss_flags & SS_DISABLE)) return; /* it has one */
    if (!own_stack) own_stack = take_spare();
    if (!own_stack) own_stack = make_stack();
    if (own_stack) use_own_stack();
}

void drop_own_stack(void) {
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (own_stack && set_stack(NULL, &now) == 0 && now.ss_sp == own_stack) set_stack(&none, NULL);
}

/* Destructors of the program's may crash as well: ours is the last, as far as there is an order. */
static __thread INITIAL_EXEC int destructor_calls;

void end_own_stack(void *stack) {
    if (++destructor_calls < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(own_stack_key, stack) == 0) return;
    drop_own_stack();
    own_stack = NULL;
    if (!keep_spare(stack)) kernel(SYS_munmap, (long)stack - GUARD, (long)(GUARD + own_stack_size()), 0, 0, 0, 0);
}

/* A frame of the kernel's tells what sigaltstack() does not. */
static void on_learning(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    shown_stack_flags = ((ucontext_t *)context)->uc_stack.ss_flags;
}

void learn_shown_stack(void) {
    struct kernel_action action = {(void *)on_learning, SA_SIGINFO | SA_RESTORER, restorer, 0}, before;
    uint64_t blocked = 0;
    kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&blocked, sizeof blocked, 0, 0);
    if (blocked & 1ull << (OUR_SIGNAL - 1) || kernel_action(OUR_SIGNAL, &action, &before)) return;
    kernel(SYS_tgkill, process_id(), thread_id(), OUR_SIGNAL, 0, 0, 0);
    kernel_action(OUR_SIGNAL, &before, NULL);
}

EXPORT int sigaltstack(const stack_t *wanted, stack_t *before) {
    if (!area) return NEXT(sigaltstack)(wanted, before);
    long failed = set_stack(wanted, before); /* by the kernel, because either pointer may be bad */
    if (failed) {
        errno = (int)-failed;
        return -1;
    }
    if (before && own_stack && before->ss_sp == own_stack) *before = (stack_t){.ss_flags = SS_DISABLE};
    if (!wanted) return 0;
    shown_stack_flags = SS_DISABLE; /* as the kernel shows it where there is none any more */
    if (wanted->ss_flags & SS_DISABLE) {
        if (own_stack) give_own_stack();
        return 0;
    }
    tell_wishes();
    /* An abort() would become a SIGSEGV on it. */
    if (wanted->ss_size < frame_size() + ROOM_TO_REPORT || !is_readable((char *)wanted->ss_sp + wanted->ss_size - 8))
        step_aside();
    return 0;
}

/* ------------------------------------------------------------------------------------ who takes it for its own */

/* Go asks the kernel itself for the alternate stack of a thread, finds ours, and lets its handlers insist on it. */
bool is_own_stack_adopted;

struct object_search {
    uintptr_t address;
    bool is_go;
};

static bool has_note_of_go(const char *note, size_t size) {
    static const char name[4] = "Go\0";
    ElfW(Nhdr) header;
    for (size_t at = 0; at + sizeof header <= size;) {
        memcpy(&header, note + at, sizeof header);
        if (header.n_namesz == sizeof name && at + sizeof header + sizeof name <= size &&
            !memcmp(note + at + sizeof header, name, sizeof name))
            return true;
        at += sizeof header + ((header.n_namesz + 3) & ~3u) + ((header.n_descsz + 3) & ~3u);
    }
    return false;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *raw) {
    (void)size;
    struct object_search *search = raw;
    bool holds_it = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && search->address - start < header->p_memsz) holds_it = true;
        if (header->p_type == PT_NOTE && has_note_of_go((const char *)start, header->p_memsz)) search->is_go = true;
    }
    if (!holds_it) search->is_go = false;
    return holds_it;
}

/* Looked up once for each place that calls: the list of objects is locked, and this may be a handler, or a child of a
 * process with many threads. */
void note_who_sets_handlers(const void *caller) {
    static const void *known[16];
    const void **place = &known[((uintptr_t)caller >> 4) % 16];
    if (is_own_stack_adopted || __atomic_load_n(place, __ATOMIC_RELAXED) == caller) return;
    struct object_search search = {.address = (uintptr_t)caller};
    if (dl_iterate_phdr(search_object, &search) && search.is_go) {
        is_own_stack_adopted = true;
        tell_wishes();
    }
    __atomic_store_n(place, caller, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------------------------------- every new thread */

struct thread_start {
    uint32_t is_taken;
    void *(*function)(void *);
    void *argument;
};

/* Not from malloc(): to give it back, every thread would get an arena of its own. */
static struct thread_start starts[256];

static struct thread_start *claim_start(void) {
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!starts[i].is_taken && !__atomic_exchange_n(&starts[i].is_taken, 1, __ATOMIC_ACQ_REL)) return &starts[i];
    return NULL;
}

static void release_start(struct thread_start *start) { __atomic_store_n(&start->is_taken, 0, __ATOMIC_RELEASE); }

/* Ends in a tail call: no frame of ours remains on the thread's stack for anybody to see. */
static void *begin_thread(void *raw) {
    struct thread_start *start = raw;
    void *(*function)(void *) = start->function;
    void *argument = start->argument;
    release_start(start);
    shown_stack_flags = SS_DISABLE;
    give_own_stack();
    if (own_stack) pthread_setspecific(own_stack_key, own_stack); /* if that fails, the stack outlives the thread */
    return function(argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument) {
    struct thread_start *start = area ? claim_start() : NULL;
    if (!start) return NEXT(pthread_create)(thread, attributes, function, argument); /* it gets no stack of ours */
    start->function = function;
    start->argument = argument;
    int failed = NEXT(pthread_create)(thread, attributes, begin_thread, start);
    if (failed) release_start(start);
    return failed;
}
