/* The fence: preloaded into a program, it gives some allocations pages of their own between pages that nobody may
 * touch, and keeps them forbidden after free(). Whoever leaves such a block, or uses it too late, is stopped by the CPU
 * at that very instruction; the table says whose block it was.
 *
 * Rules: an allocation that is not chosen costs a countdown, a free() a comparison; where anything is missing (room,
 * memory, a table), the C library's own functions are used as if the fence were not there.
 */
#define _GNU_SOURCE
#include "fence.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#define SLOW __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
#define FENCE_FILE "libfaultlens_fence.so"
#define USUAL_ALIGNMENT 16
#define STILL_LARGE (1 << 20)
#define NEVER UINT32_MAX /* a countdown that does not end */

_Static_assert(sizeof(struct fence_file) <= FENCE_PAGE && sizeof(struct fence_part) <= FENCE_PAGE, "one page each");

/* ------------------------------------------------------------------------------- the C library's functions */

#define WRAPPED(X) X(malloc) X(calloc) X(realloc) X(free) X(posix_memalign) X(aligned_alloc) X(memalign) X(malloc_usable_size)

extern void *memalign(size_t alignment, size_t size);
extern size_t malloc_usable_size(void *block);

static struct {
#define DECLARE(name) __typeof__(&name) name;
    WRAPPED(DECLARE)
} real;

/* dlsym() itself may allocate, before anybody is found who could. */
static _Alignas(16) char first_bytes[16384];
static size_t first_used;
static bool searching;

static void *first_block(size_t size) {
    size_t room = (size + 15) & ~(size_t)15;
    if (room < size || room > sizeof first_bytes - first_used) return NULL;
    first_used += room;
    return first_bytes + first_used - room;
}

static bool is_first_block(const void *block) {
    return (const char *)block >= first_bytes && (const char *)block < first_bytes + sizeof first_bytes;
}

static SLOW void find_real(void) {
    searching = true;
#define LOOK_UP(name) real.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
    WRAPPED(LOOK_UP)
    searching = false;
}

#define REAL(name) ({ if (!LIKELY(real.name)) find_real(); real.name; })

/* ------------------------------------------------------------------------------------------------ state */

/* The truth is in memory of this process, so that a forked child has its own; the table has a copy for readers. */
static struct fence_file *file;  /* NULL: no fence */
static struct fence_part own;    /* the head of our part */
static struct fence_slot *slots; /* all of them */
static struct fence_part *shown; /* our part of the table; NULL: none yet (after a fork), or none left */
static bool must_claim;
static bool decided; /* whether there is a fence or not */

static uintptr_t arena, arena_bytes; /* 0 bytes: nothing is ours */
static uint32_t turn; /* every fourth block is placed at the beginning of its pages */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Free slots of a class, the one that waits longest first: what was freed stays forbidden as long as possible. */
static struct queue {
    uint32_t *numbers;
    uint32_t next, count;
} queues[FENCE_CLASSES];

THREAD_LOCAL struct {
    uint32_t plain, aligned; /* allocations until the next one is fenced; 0: the thread is new */
    uint32_t random;
    uint32_t glance;
    bool busy; /* inside the fence */
} mine;

static bool is_ours(const void *block) { return (uintptr_t)block - arena < arena_bytes; }

/* The kernel itself: the agent stands before the C library's syscall(), and may have something to do there. */
static long kernel(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static int thread_id(void) { return (int)kernel(SYS_gettid, 0, 0, 0); }

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ------------------------------------------------------------------------------------- who is calling */

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

/* Unwinding takes locks of these two: what they allocate themselves is left alone. */
static struct {
    uintptr_t start, end;
} left_alone[2];

static bool is_left_alone(const void *caller) {
    for (int i = 0; i < 2; i++)
        if ((uintptr_t)caller >= left_alone[i].start && (uintptr_t)caller < left_alone[i].end) return true;
    return false;
}

static int note_left_alone(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    int place = strstr(info->dlpi_name, "libgcc_s") ? 0 : strstr(info->dlpi_name, "ld-linux") ? 1 : -1;
    for (int i = 0; place >= 0 && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        left_alone[place].start = info->dlpi_addr + header->p_vaddr;
        left_alone[place].end = left_alone[place].start + header->p_memsz;
    }
    return 0;
}

#define OWN_DEPTH 4 /* frames of our own that may come first */

static uint32_t stack_of_caller(uint64_t *frames) {
    void *found[FENCE_FRAMES + OWN_DEPTH];
    int count = backtrace(found, FENCE_FRAMES + OWN_DEPTH), skipped = 0;
    while (skipped < count && (const char *)found[skipped] >= __ehdr_start && (const char *)found[skipped] < etext)
        skipped++;
    uint32_t kept = 0;
    for (int i = skipped; i < count && kept < FENCE_FRAMES; i++) frames[kept++] = (uint64_t)found[i];
    return kept;
}

/* ---------------------------------------------------------------------------------------- the table */

static void show_head(void) {
    if (shown) memcpy(shown, &own, sizeof own);
}

static struct fence_slot *shown_slots(void) { return (struct fence_slot *)((char *)shown + FENCE_PAGE); }

static uint32_t slot_count(void) {
    const struct fence_class *last = &own.classes[FENCE_CLASSES - 1];
    return last->first + last->slots;
}

/* A part that nobody has, else that of the dead process that came first. */
static int claim_part(void) {
    for (int attempt = 0; attempt < 8; attempt++) {
        int best = -1;
        int32_t owner = 0;
        for (int i = 0; i < FENCE_PARTS; i++) {
            int32_t pid = __atomic_load_n(&file->parts[i].pid, __ATOMIC_ACQUIRE);
            if (!pid) {
                best = i, owner = 0;
                break;
            }
            if (kill(pid, 0) && errno == ESRCH && (best < 0 || file->parts[i].order < file->parts[best].order))
                best = i, owner = pid;
        }
        if (best < 0) return -1;
        if (__atomic_compare_exchange_n(&file->parts[best].pid, &owner, getpid(), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            file->parts[best].order = __atomic_add_fetch(&file->order, 1, __ATOMIC_RELAXED);
            return best;
        }
    }
    return -1;
}

static void map_part(int table) {
    int part = claim_part();
    if (part < 0) return;
    off_t offset = FENCE_PAGE + (off_t)part * (off_t)file->part_bytes, size = (off_t)file->part_bytes;
    void *memory = mmap(NULL, file->part_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, table, offset);
    if (memory == MAP_FAILED) return;
    /* Another process may have had it. */
    if (fallocate(table, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size)) memset(memory, 0, (size_t)size);
    shown = memory;
}

static char table_path[4096];

/* In a forked child, as soon as it has something to show. */
static void claim_after_fork(void) {
    must_claim = false;
    if (shown) munmap(shown, file->part_bytes);
    shown = NULL;
    int table = openat(AT_FDCWD, table_path, O_RDWR | O_CLOEXEC); /* not open(): the agent stands before it */
    if (table < 0) return;
    map_part(table);
    close(table);
    own.pid = getpid();
    if (shown) memcpy(shown_slots(), slots, slot_count() * sizeof *slots);
    show_head();
}

static void show(const struct fence_slot *slot) {
    if (must_claim) claim_after_fork();
    if (!shown) return;
    struct fence_slot *copy = &shown_slots()[slot - slots];
    copy->state = FENCE_UNUSED;
    memcpy((char *)copy + sizeof copy->state, (const char *)slot + sizeof slot->state, sizeof *slot - sizeof slot->state);
    __atomic_store_n(&copy->state, slot->state, __ATOMIC_RELEASE);
    shown->fenced = own.fenced;
    shown->passed = own.passed;
}

/* --------------------------------------------------------------------------------- slots and their pages */

static size_t stride(const struct fence_class *class) { return (size_t)(class->slot_pages + 1) * FENCE_PAGE; }

static uintptr_t pages_of(const struct fence_class *class, uint32_t number) {
    return class->start + (number - class->first) * stride(class) + FENCE_PAGE;
}

static const struct fence_class *class_of(uintptr_t address) {
    for (int i = FENCE_CLASSES - 1; i > 0; i--)
        if (own.classes[i].slots && address >= own.classes[i].start) return &own.classes[i];
    return &own.classes[0];
}

static struct fence_slot *slot_at(uintptr_t address) {
    const struct fence_class *class = class_of(address);
    uint32_t index = (uint32_t)((address - class->start) / stride(class));
    return index < class->slots ? &slots[class->first + index] : NULL;
}

static uintptr_t page_before(uintptr_t address) { return address & ~(uintptr_t)(FENCE_PAGE - 1); }
static uintptr_t page_after(uintptr_t address) { return page_before(address + FENCE_PAGE - 1); }

/* What lies on the pages of a block but outside of it is painted; only the block's users can change it. */
static void paint(uintptr_t from, uintptr_t to) { memset((void *)from, FENCE_PAINT, to - from); }

static bool is_painted(uintptr_t from, uintptr_t to) {
    const uint8_t *first = (const uint8_t *)from;
    return from == to || (*first == FENCE_PAINT && !memcmp(first, first + 1, to - from - 1));
}

/* The changed byte that is nearest to the block; 0: none. */
static uintptr_t damage_behind(uintptr_t from, uintptr_t to) {
    if (is_painted(from, to)) return 0;
    while (*(const uint8_t *)from == FENCE_PAINT) from++;
    return from;
}

static uintptr_t damage_before(uintptr_t from, uintptr_t to) {
    if (is_painted(from, to)) return 0;
    while (*(const uint8_t *)(to - 1) == FENCE_PAINT) to--;
    return to - 1;
}

static enum fence_kind damage_of(const struct fence_slot *slot, uintptr_t *address) {
    uintptr_t end = slot->start + slot->size;
    if ((*address = damage_behind(end, page_after(end)))) return FENCE_OVERFLOW;
    if ((*address = damage_before(page_before(slot->start), slot->start))) return FENCE_UNDERFLOW;
    return FENCE_NOTHING;
}

static bool open_slot(const struct fence_class *class, uint32_t number, size_t size, size_t alignment) {
    uintptr_t low = pages_of(class, number), high = low + (size_t)class->slot_pages * FENCE_PAGE;
    uintptr_t start = (high - size) & ~(alignment - 1);
    if (turn++ % 4 == 3) start = (low + alignment - 1) & ~(alignment - 1);
    if (start < low || start > high || size > high - start) return false;
    uintptr_t from = page_before(start), to = page_after(start + size);
    if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE)) return false;
    paint(from, start);
    paint(start + size, to);
    slots[number].start = start;
    slots[number].size = size;
    return true;
}

/* New pages in place of the old ones: these cannot be read any more, cost nothing, and grow together with their
 * neighbours in the kernel's list. */
static void close_slot(const struct fence_slot *slot) {
    uintptr_t from = page_before(slot->start), to = page_after(slot->start + slot->size);
    mmap((void *)from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* The import of TensorFlow leaves half a million small blocks, more than there are slots, and takes long enough. */
#define GLANCE 64 /* allocations between two looks at what is loaded, and wished for */
#define OWN_CODE 32
static bool sparing, looking;
static unsigned long long loads_seen;
static uint32_t own_code_count;
static struct code {
    uintptr_t base, end;
} own_code[OWN_CODE];

static bool is_own_code(const char *path) {
    static const char *const others[] = {"-packages/", "/lib/python", "/libpython", FENCE_FILE, "libfaultlens_agent.so"};
    if (*path != '/' || !strncmp(path, "/usr/", 5) || !strncmp(path, "/lib", 4)) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(path, others[i])) return false;
    return true;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads) {
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

static int note_code(struct dl_phdr_info *info, size_t size, void *tensorflow) {
    (void)size;
    if (strstr(info->dlpi_name, "/libtensorflow")) *(bool *)tensorflow = true;
    uint32_t place = __atomic_load_n(&own_code_count, __ATOMIC_RELAXED);
    if (place == OWN_CODE || !is_own_code(info->dlpi_name)) return 0;
    for (uint32_t i = 0; i < place; i++)
        if (own_code[i].base == info->dlpi_addr) return 0;
    own_code[place] = (struct code){info->dlpi_addr, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
        if (header->p_type == PT_LOAD && end > own_code[place].end) own_code[place].end = end;
    }
    __atomic_store_n(&own_code_count, place + 1, __ATOMIC_RELEASE);
    return 0;
}

static void look_at_code(void) {
    unsigned long long loads = 0;
    mine.busy = true;
    dl_iterate_phdr(count_loads, &loads);
    if (loads != loads_seen && !__atomic_test_and_set(&looking, __ATOMIC_ACQUIRE)) { /* not `lock`: this takes others */
        bool tensorflow = false;
        dl_iterate_phdr(note_code, &tensorflow);
        sparing = tensorflow && !own_code_count;
        loads_seen = loads;
        __atomic_clear(&looking, __ATOMIC_RELEASE);
    }
    mine.busy = false;
}

static bool by_own_code(const uint64_t *frames, uint32_t count) {
    for (uint32_t k = 0; k < own_code_count; k++)
        for (uint32_t i = 0; i < count; i++)
            if (frames[i] >= own_code[k].base && frames[i] < own_code[k].end) return true;
    return false;
}

static SLOW void *allocate(size_t size, size_t alignment, bool zeroed, const void *caller) {
    if (size < file->smallest || size > file->largest || is_left_alone(caller)) return NULL;
    int saved_errno = errno;
    mine.busy = true;
    uint64_t frames[FENCE_FRAMES];
    uint32_t count = stack_of_caller(frames); /* before the lock is taken: it takes others */
    void *block = NULL;
    bool reserved = file->spare_start && !by_own_code(frames, count); /* half of the slots, for the user's own code */
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FENCE_CLASSES && !block; i++) {
        const struct fence_class *class = &own.classes[i];
        struct queue *queue = &queues[i];
        if (size > (size_t)class->slot_pages * FENCE_PAGE || queue->count <= (reserved ? class->slots / 2 : 0)) continue;
        uint32_t number = queue->numbers[queue->next];
        if (!open_slot(class, number, size, alignment)) continue;
        queue->next = (queue->next + 1) % class->slots;
        queue->count--;
        struct fence_slot *slot = &slots[number];
        slot->state = FENCE_LIVE;
        slot->made_by = thread_id();
        slot->made_ns = now_ns();
        slot->made_frames = count;
        memcpy(slot->made, frames, count * sizeof *frames);
        slot->freed_by = 0, slot->freed_ns = 0, slot->freed_frames = 0;
        block = (void *)slot->start;
        own.fenced++;
        show(slot);
    }
    if (!block) own.passed++;
    pthread_mutex_unlock(&lock);
    if (block && !zeroed && file->fill >= 0) memset(block, file->fill, size); /* fresh pages are zero */
    mine.busy = false;
    errno = saved_errno;
    return block;
}

/* ------------------------------------------------------------------------------------ what is wrong */

static const char *const said[] = {"", "a block was freed twice", "an address was freed that is not the beginning of a block",
                                   "bytes behind a block were overwritten", "bytes before a block were overwritten"};

static void name_libraries(const struct fence_slot *slot) {
    Dl_info found;
    for (uint32_t i = 0; i < slot->made_frames; i++) {
        uint64_t address = slot->made[i];
        if (!dladdr((void *)address, &found) || !found.dli_fname) continue;
        for (int k = 0; k < FENCE_LIBRARIES; k++) {
            struct fence_library *library = &own.libraries[k];
            if (library->start && library->start != (uint64_t)found.dli_fbase) continue;
            if (!library->start) snprintf(library->path, sizeof library->path, "%s", found.dli_fname);
            library->start = (uint64_t)found.dli_fbase;
            if (library->end <= address) library->end = address + 1;
            break;
        }
    }
}

static void note(enum fence_kind kind, uintptr_t address, const struct fence_slot *slot, bool at_exit) {
    own.error.kind = kind;
    own.error.thread = thread_id();
    own.error.address = address;
    own.error.start = slot ? slot->start : 0;
    own.error.at_exit = at_exit;
    if (at_exit && slot) name_libraries(slot);
    if (must_claim) claim_after_fork();
    show_head();
}

static SLOW void __attribute__((noreturn)) stop(enum fence_kind kind, const struct fence_slot *slot) {
    char text[160];
    int length = snprintf(text, sizeof text, "faultlens: %s (%llu bytes)\n", said[kind],
                          slot ? (unsigned long long)slot->size : 0ull);
    struct iovec line = {text, (size_t)length};
    if (writev(STDERR_FILENO, &line, 1)) {} /* if it cannot be said, it is in the table */
    abort();
}

static SLOW void release(void *block) {
    if (mine.busy) return; /* a handler that interrupted us: better lost than stuck */
    int saved_errno = errno;
    mine.busy = true;
    uint64_t frames[FENCE_FRAMES];
    uint32_t count = stack_of_caller(frames);
    uintptr_t address = (uintptr_t)block, where = address;
    pthread_mutex_lock(&lock);
    struct fence_slot *slot = slot_at(address);
    enum fence_kind kind = FENCE_NOTHING;
    if (!slot || slot->state == FENCE_UNUSED || slot->start != address)
        kind = FENCE_INVALID_FREE;
    else if (slot->state == FENCE_FREED)
        kind = FENCE_DOUBLE_FREE;
    else
        kind = damage_of(slot, &where);
    if (kind) {
        own.error.frame_count = count;
        memcpy(own.error.frames, frames, count * sizeof *frames);
        note(kind, where, slot, false);
        pthread_mutex_unlock(&lock);
        stop(kind, slot);
    }
    close_slot(slot);
    slot->state = FENCE_FREED;
    slot->freed_by = thread_id();
    slot->freed_ns = now_ns();
    slot->freed_frames = count;
    memcpy(slot->freed, frames, count * sizeof *frames);
    const struct fence_class *class = class_of(address);
    struct queue *queue = &queues[class - own.classes];
    queue->numbers[(queue->next + queue->count++) % class->slots] = (uint32_t)(slot - slots);
    show(slot);
    pthread_mutex_unlock(&lock);
    mine.busy = false;
    errno = saved_errno;
}

/* Blocks that are never freed are looked at when the program ends; its end stays what it is. */
static void __attribute__((destructor)) look_at_exit(void) {
    if (!arena_bytes || mine.busy) return;
    mine.busy = true;
    pthread_mutex_lock(&lock);
    uintptr_t address;
    for (uint32_t i = 0; i < slot_count(); i++) {
        enum fence_kind kind = slots[i].state == FENCE_LIVE ? damage_of(&slots[i], &address) : FENCE_NOTHING;
        if (!kind) continue;
        own.error.frame_count = 0;
        note(kind, address, &slots[i], true);
        break;
    }
    pthread_mutex_unlock(&lock);
    mine.busy = false;
}

/* ---------------------------------------------------------------------------- which allocations are fenced */

static uint32_t random_number(void) {
    uint32_t x = mine.random ? mine.random : (uint32_t)thread_id() * 2654435761u + (uint32_t)now_ns();
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return mine.random = x ? x : 1;
}

/* Fencing a block takes as long as a thousand others: there is time for so many a second, and more at the start. */
static bool is_affordable(bool aligned) {
    static int64_t spent_until[2]; /* on plain and on aligned ones */
    if (!file->per_second) return true;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = t.tv_sec * 1000000000ll + t.tv_nsec, each = 1000000000ll / file->per_second;
    int64_t until = __atomic_load_n(&spent_until[aligned], __ATOMIC_RELAXED);
    if (until > now) {
        __atomic_fetch_add(&own.passed, 1, __ATOMIC_RELAXED);
        return false;
    }
    int64_t saved = now - file->at_once * each;
    __atomic_store_n(&spent_until[aligned], (until > saved ? until : saved) + each, __ATOMIC_RELAXED);
    return true;
}

static SLOW bool draw(uint32_t *countdown, bool aligned) {
    bool is_new = *countdown == NEVER; /* it was 0 */
    if (!decided || mine.busy) {
        *countdown = 0; /* asked again next time */
        return false;
    }
    uint32_t every = !arena_bytes ? 0 : aligned ? file->aligned_every : file->every;
    if (every && !aligned && file->spare_start && mine.glance++ % GLANCE == 0) look_at_code();
    if (every && !aligned && sparing) {
        mine.glance = 0;
        *countdown = GLANCE;
        return false;
    }
    /* Who has the table may change what is wished for while the program runs. */
    *countdown = !arena_bytes ? NEVER : every == 0 ? GLANCE : every == 1 ? 1 : 1 + random_number() % (2 * every - 1);
    return (every == 1 || (every && !is_new)) && is_affordable(aligned);
}

static inline bool is_chosen(uint32_t *countdown, bool aligned) {
    return LIKELY((*countdown)-- > 1) ? false : draw(countdown, aligned);
}

static bool is_power_of_two(size_t number) { return number && !(number & (number - 1)); }

#define CALLER __builtin_return_address(0)

EXPORT void *malloc(size_t size) {
    void *block;
    if (is_chosen(&mine.plain, false) && (block = allocate(size, USUAL_ALIGNMENT, false, CALLER))) return block;
    return searching ? first_block(size) : REAL(malloc)(size);
}

EXPORT void *calloc(size_t count, size_t size) {
    size_t bytes;
    void *block;
    if (is_chosen(&mine.plain, false) && !__builtin_mul_overflow(count, size, &bytes) &&
        (block = allocate(bytes, USUAL_ALIGNMENT, true, CALLER)))
        return block;
    return searching ? first_block(count * size) : REAL(calloc)(count, size);
}

EXPORT void free(void *block) {
    if (LIKELY(!is_ours(block))) {
        if (!is_first_block(block)) REAL(free)(block);
    } else {
        release(block);
    }
}

/* Always moved: whoever kept the old address is then found out. */
static SLOW void *move(void *block, size_t old_size, size_t size) {
    void *moved = malloc(size);
    if (moved) {
        memcpy(moved, block, old_size < size ? old_size : size);
        free(block);
    }
    return moved;
}

static size_t size_of(const void *block) {
    const struct fence_slot *slot = slot_at((uintptr_t)block);
    return slot && slot->state == FENCE_LIVE && slot->start == (uintptr_t)block ? slot->size : 0;
}

EXPORT void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    if (is_first_block(block)) return move(block, (size_t)(first_bytes + first_used - (char *)block), size);
    if (LIKELY(!is_ours(block))) return REAL(realloc)(block, size);
    size_t old_size = size_of(block);
    if (!size || !old_size) { /* not a live block: free() finds out what it is */
        free(block);
        return NULL;
    }
    return move(block, old_size, size);
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    void *block;
    if (is_chosen(&mine.aligned, true) && is_power_of_two(alignment) && alignment >= sizeof(void *) &&
        (block = allocate(size, alignment, false, CALLER))) {
        *result = block;
        return 0;
    }
    return REAL(posix_memalign)(result, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    void *block;
    if (is_chosen(&mine.aligned, true) && is_power_of_two(alignment) &&
        (block = allocate(size, alignment, false, CALLER)))
        return block;
    return REAL(aligned_alloc)(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size) {
    void *block;
    if (is_chosen(&mine.aligned, true) && is_power_of_two(alignment) &&
        (block = allocate(size, alignment, false, CALLER)))
        return block;
    return REAL(memalign)(alignment, size);
}

EXPORT size_t malloc_usable_size(void *block) {
    return LIKELY(!is_ours(block)) ? REAL(malloc_usable_size)(block) : size_of(block);
}

/* -------------------------------------------------------------------------------------------- the start */

/* Slots of 1 page, 4, 16 and so on, as many as the largest block needs. */
static size_t lay_out(uint32_t count, uint64_t largest) {
    size_t bytes = 0;
    uint32_t first = 0, pages = 1;
    for (int i = 0; i < FENCE_CLASSES; i++, pages *= 4) {
        bool needed = i == 0 || largest > (uint64_t)pages / 4 * FENCE_PAGE;
        own.classes[i] = (struct fence_class){bytes, pages, needed ? count : 0, first, 0};
        bytes += own.classes[i].slots * stride(&own.classes[i]);
        first += own.classes[i].slots;
        count = count > 1 ? count / 2 : 1;
    }
    return bytes + FENCE_PAGE; /* the last one's guard */
}

static void *reserve(size_t bytes, int protection) {
    void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Whether somebody else's allocator is the one that the program calls. An executable at a fixed address (Debian's
   python3) that takes the address of a function has an entry of its own for it, which is no definition and leads to
   whoever has one: such a name tells nothing, and the others are asked. */
static bool is_preceded(void) {
    static const char *const names[] = {"malloc", "calloc", "realloc", "free", "posix_memalign", "malloc_usable_size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Dl_info owner;
        const ElfW(Sym) *symbol = NULL;
        void *function = dlsym(RTLD_DEFAULT, names[i]);
        if (!dladdr1(function, &owner, (void **)&symbol, RTLD_DL_SYMENT))
            return true;
        bool defined = !symbol || symbol->st_shndx != SHN_UNDEF;
        if (defined && owner.dli_fbase != (const void *)__ehdr_start)
            return true;
    }
    return false;
}

/* Why there can be no fence, or NULL. */
static const char *build_fence(void) {
    Dl_info owner;
    if (is_preceded())
        return "another allocator comes before it";
    const char *name = dladdr((void *)REAL(malloc), &owner) ? strrchr(owner.dli_fname, '/') : NULL;
    if (!name || (strncmp(name, "/libc.so", 8) && strncmp(name, "/libc-2", 7) && strncmp(name, "/libc_malloc_debug", 18)))
        return "the program has an allocator of its own";
    uint32_t count = file->slots;
    uint64_t largest = file->largest;
    size_t bytes = lay_out(count, largest);
    struct rlimit limit; /* address space that we take is missed by the program */
    bool limited = !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
    while (limited && bytes > limit.rlim_cur / 8 && count > 1) {
        if (largest > STILL_LARGE)
            largest /= 4;
        else
            count /= 2;
        bytes = lay_out(count, largest);
    }
    if (limited && bytes > limit.rlim_cur / 8) return "its address space is limited (ulimit -v)";
    if (FENCE_PAGE + slot_count() * sizeof *slots > file->part_bytes) return "its table is too small";
    void *memory = reserve(bytes, PROT_NONE);
    slots = reserve(slot_count() * sizeof *slots, PROT_READ | PROT_WRITE);
    uint32_t *numbers = reserve(slot_count() * sizeof *numbers, PROT_READ | PROT_WRITE);
    if (!memory || !slots || !numbers) return "there is no memory for it";
    for (int i = 0; i < FENCE_CLASSES; i++) {
        struct fence_class *class = &own.classes[i];
        class->start += (uintptr_t)memory;
        queues[i] = (struct queue){numbers + class->first, 0, class->slots};
        for (uint32_t k = 0; k < class->slots; k++) queues[i].numbers[k] = class->first + k;
    }
    own.arena = (uint64_t)memory;
    own.arena_bytes = bytes;
    own.active = 1;
    return NULL;
}

/* Children that are started from here on are spared of the fence. */
static void hide_from_children(void) {
    unsetenv("FAULTLENS_FENCE");
    const char *preload = getenv("LD_PRELOAD");
    char kept[4096] = "";
    size_t used = 0;
    for (const char *p = preload ? preload : ""; *p;) {
        size_t length = strcspn(p, ": "), own_length = strlen(FENCE_FILE);
        bool ours = length >= own_length && !strncmp(p + length - own_length, FENCE_FILE, own_length);
        if (length && !ours && used + length + 2 < sizeof kept)
            used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%.*s", used ? ":" : "", (int)length, p);
        p += length + (p[length] != 0);
    }
    if (used)
        setenv("LD_PRELOAD", kept, 1);
    else if (preload)
        unsetenv("LD_PRELOAD");
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void in_forked_child(void) {
    pthread_mutex_unlock(&lock);
    must_claim = true;
    mine.random = 0;
}

static void open_table(const char *path) {
    int table = open(path, O_RDWR | O_CLOEXEC);
    struct stat state;
    if (table < 0) return;
    void *memory = mmap(NULL, FENCE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, table, 0);
    if (memory != MAP_FAILED) {
        struct fence_file *found = memory;
        bool whole = !fstat(table, &state) && state.st_size >= FENCE_PAGE && found->magic == FENCE_MAGIC &&
                     found->version == FENCE_VERSION && found->slots && found->part_bytes >= FENCE_PAGE &&
                     (uint64_t)state.st_size >= FENCE_PAGE + FENCE_PARTS * found->part_bytes;
        if (whole) {
            file = found;
            map_part(table);
        } else {
            munmap(memory, FENCE_PAGE);
        }
    }
    close(table);
}

static void __attribute__((constructor)) start_fence(void) {
    if (!real.free) find_real();
    const char *path = getenv("FAULTLENS_FENCE");
    int saved_errno = errno;
    if (path && strlen(path) < sizeof table_path) {
        strcpy(table_path, path);
        open_table(path);
    }
    if (shown) {
        own.pid = getpid();
        const char *problem = build_fence();
        if (problem) snprintf(own.problem, sizeof own.problem, "%s", problem);
        show_head();
        if (own.active) {
            void *frame;
            backtrace(&frame, 1); /* loads what it needs now, and not within malloc() */
            dl_iterate_phdr(note_left_alone, NULL);
            pthread_atfork(before_fork, after_fork, in_forked_child);
            arena = own.arena;
            arena_bytes = own.arena_bytes;
        }
        if (file->only_this) hide_from_children();
    }
    decided = true;
    errno = saved_errno;
}
