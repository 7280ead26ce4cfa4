/* The last C++ exceptions that were thrown: when one escapes, its thrower is gone from the stack. */
#define _GNU_SOURCE
#include "parts.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unwind.h>

/* Few exceptions per lane, lanes by thread: a thread that throws in a loop does not push out the others'. */
#define LANES 32
#define LANE_DEPTH 4
static struct fl_exception thrown[LANES][LANE_DEPTH];
static uint32_t thrown_next[LANES];

typedef void throw_function(void *object, void *type, void (*destructor)(void *));
typedef _Unwind_Reason_Code backtrace_function(_Unwind_Trace_Fn, void *);
typedef _Unwind_Ptr address_function(struct _Unwind_Context *);

struct cxx_runtime { /* the C++ runtime that a caller uses; a process can hold several */
    throw_function *throw_exception;
    backtrace_function *backtrace;
    address_function *address; /* of libgcc_s, which we do not bring along: some programs do without */
    const void *one_base_vtable; /* marks the type information of classes with one base */
};

struct object_search {
    uintptr_t address;
    const char *name; /* of the object that holds the address */
    bool found;
};

static int match_object(struct dl_phdr_info *info, size_t size, void *raw) {
    (void)size;
    struct object_search *search = raw;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && search->address >= start &&
            search->address < start + info->dlpi_phdr[i].p_memsz) {
            search->name = info->dlpi_name;
            return search->found = true;
        }
    }
    return 0;
}

EXPORT void __cxa_throw(void *object, void *type, void (*destructor)(void *));

static bool take_runtime(struct cxx_runtime *runtime, void *handle) {
    if (!handle) return false;
    throw_function *found = (throw_function *)dlsym(handle, "__cxa_throw");
    if (!found || found == &__cxa_throw) return false;
    runtime->throw_exception = found;
    runtime->backtrace = (backtrace_function *)dlsym(handle, "_Unwind_Backtrace");
    runtime->address = (address_function *)dlsym(handle, "_Unwind_GetIP");
    const char *vtable = dlsym(handle, "_ZTVN10__cxxabiv120__si_class_type_infoE");
    runtime->one_base_vtable = vtable ? vtable + 2 * sizeof(void *) : NULL;
    return true;
}

/* Of programs that were linked with one. Looked up at the start: dlsym() waits for a dlopen() that runs constructors,
 * and frees the text of dlerror(), which the program may be about to throw. */
static struct cxx_runtime first_runtime;

static int is_runtime(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    return info->dlpi_name && (strstr(info->dlpi_name, "libstdc++") || strstr(info->dlpi_name, "libc++abi"));
}

/* A dlsym() that finds nothing allocates, which an allocator that is preloaded may not be ready for. */
void find_first_runtime(void) {
    if (dl_iterate_phdr(is_runtime, NULL)) take_runtime(&first_runtime, RTLD_NEXT);
}

struct runtime_search {
    struct cxx_runtime found;
    int runtimes; /* objects that define one */
};

/* What the objects define, whatever scope they are in. */
static int note_runtime(struct dl_phdr_info *info, size_t size, void *raw) {
    (void)size;
    struct runtime_search *search = raw;
    throw_function *throw_exception = (throw_function *)defined_in(info, "__cxa_throw");
    if (throw_exception && throw_exception != &__cxa_throw && search->runtimes++ == 0) {
        const char *vtable = defined_in(info, "_ZTVN10__cxxabiv120__si_class_type_infoE");
        search->found.throw_exception = throw_exception;
        search->found.one_base_vtable = vtable ? vtable + 2 * sizeof(void *) : NULL;
    }
    if (!search->found.backtrace) {
        search->found.backtrace = (backtrace_function *)defined_in(info, "_Unwind_Backtrace");
        search->found.address = (address_function *)defined_in(info, "_Unwind_GetIP");
    }
    return 0;
}

/* Of several, the one that the caller sees (this allocates): Python loads libraries into scopes of their own. */
static bool find_runtime_in_scope(struct cxx_runtime *runtime, void *caller) {
    if (take_runtime(runtime, RTLD_NEXT)) return true;
    struct object_search search = {.address = (uintptr_t)caller};
    dl_iterate_phdr(match_object, &search);
    if (!search.found || !*search.name) return false;
    void *handle = dlopen(search.name, RTLD_LAZY | RTLD_NOLOAD);
    bool taken = take_runtime(runtime, handle);
    if (handle) dlclose(handle);
    return taken;
}

static void find_runtime(struct cxx_runtime *runtime, void *caller) {
    struct runtime_search search = {.runtimes = 0};
    if (!first_runtime.throw_exception) dl_iterate_phdr(note_runtime, &search);
    bool is_one = first_runtime.throw_exception || search.runtimes == 1;
    if (!is_one && find_runtime_in_scope(runtime, caller)) return;
    *runtime = first_runtime.throw_exception ? first_runtime : search.found;
}

struct frame_list {
    address_function *address;
    uint64_t *frames;
    uint32_t count;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *raw) {
    struct frame_list *list = raw;
    uint64_t address = list->address(context);
    if (list->count == FL_THROW_FRAMES || !address) return _URC_END_OF_STACK;
    list->frames[list->count++] = address;
    return _URC_NO_REASON;
}

/* Type information of the Itanium C++ ABI: { vtable, name, then, for a class with one base, that base }. */
struct type_info {
    const void *vtable;
    const char *name;
    const struct type_info *base;
};

/* The text of exceptions that derive from std::runtime_error or std::logic_error, which keep it behind their
 * vtable pointer. what() is not called: it is foreign code and may do anything. */
static const char *exception_text(const struct type_info *type, void *object, const void *one_base_vtable) {
    for (int depth = 0; type && depth < 8; depth++) {
        if (!strcmp(type->name, "St13runtime_error") || !strcmp(type->name, "St11logic_error"))
            return *(const char **)((char *)object + sizeof(void *));
        if (!one_base_vtable || type->vtable != one_base_vtable) return NULL;
        type = type->base;
    }
    return NULL;
}

/* Walking the stack is what costs: places that throw all the time are spared it. */
#define THROWS_WITH_FRAMES 256

static void remember_exception(const struct cxx_runtime *runtime, void *object, const struct type_info *type, void *caller,
                               uint32_t thrown_here) {
    uint32_t tid = (uint32_t)thread_id(), lane = tid % LANES;
    uint32_t index = __atomic_fetch_add(&thrown_next[lane], 1, __ATOMIC_RELAXED) % LANE_DEPTH;
    struct fl_exception *entry = &thrown[lane][index];
    entry->tid = (int32_t)tid;
    entry->time_ns = now_ns();
    strncpy(entry->type, type->name, sizeof entry->type - 1);
    const char *text = exception_text(type, object, runtime->one_base_vtable);
    strncpy(entry->message, text ? text : "", sizeof entry->message - 1);
    struct frame_list list = {runtime->address, entry->frames, 0};
    if (runtime->backtrace && runtime->address && thrown_here < THROWS_WITH_FRAMES)
        runtime->backtrace(add_frame, &list);
    else
        list.frames[list.count++] = (uint64_t)caller;
    entry->frame_count = list.count;
}

EXPORT void __cxa_throw(void *object, void *type, void (*destructor)(void *)) {
    static __thread INITIAL_EXEC struct {
        void *caller;
        uint32_t count;
        struct cxx_runtime runtime;
    } known[8]; /* throwing places of this thread */
    void *caller = __builtin_return_address(0);
    __typeof__(*known) *entry = &known[((uintptr_t)caller >> 4) % 8];
    if (entry->caller != caller) {
        entry->runtime = (struct cxx_runtime){NULL, NULL, NULL, NULL};
        find_runtime(&entry->runtime, caller);
        entry->caller = caller;
        entry->count = 0;
    }
    if (area && type) remember_exception(&entry->runtime, object, type, caller, entry->count++);
    if (entry->runtime.throw_exception) entry->runtime.throw_exception(object, type, destructor);
    abort(); /* whoever threw was linked against a runtime: not reached */
}

void copy_exceptions(struct fl_slot *slot) {
    uint32_t count = 0;
    int64_t before = INT64_MAX;
    while (count < FL_EXCEPTIONS) {
        const struct fl_exception *latest = NULL;
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < LANE_DEPTH; i++) {
                const struct fl_exception *entry = &thrown[lane][i];
                if (entry->time_ns && entry->time_ns < before && (!latest || entry->time_ns > latest->time_ns))
                    latest = entry;
            }
        if (!latest) break;
        before = latest->time_ns;
        slot->exceptions[count++] = *latest;
    }
    slot->exception_count = count;
}
