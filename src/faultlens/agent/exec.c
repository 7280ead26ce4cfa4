/* Programs that this one starts. The agent goes along, also into an environment of the program's own making (env -i,
 * env LD_PRELOAD=…), and stays away where it cannot be loaded.
 *
 * Nothing is allocated and nothing of the program changed: this may run between vfork and exec. */
#define _GNU_SOURCE
#include "parts.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#define AGENT_FILE "libfaultlens_agent.so"
#define ADDED_ENTRIES 4 /* LD_PRELOAD, FAULTLENS_AGENT, FAULTLENS_ONLY_THIS, NULL */

static char agent_path[4096];
static char area_entry[256]; /* "FAULTLENS_AGENT=<path>" */
static int only_this;        /* the process whose children are spared; 0: all are watched */

static bool is_executable(const char *path) {
    return kernel(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) == 0;
}

/* A loader that cannot open the library says so on stderr. */
static bool can_be_opened(const char *path) {
    long file = kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file >= 0) kernel(SYS_close, file, 0, 0, 0, 0, 0);
    return file >= 0;
}

static mode_t mode_of(const char *path) {
    struct stat state;
    return kernel(SYS_newfstatat, AT_FDCWD, (long)path, (long)&state, 0, 0, 0) ? 0 : state.st_mode;
}

/* How many entries; -1: a pointer is bad, and the kernel will say so. */
static long count_entries(char *const *environment) {
    long count = 0;
    if (!environment) return 0;
    for (;; count++) {
        if (!is_readable(environment + count)) return -1;
        if (!environment[count]) return count;
        if (!is_readable(environment[count])) return -1;
    }
}

static const char *variable(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=') return *environment + length + 1;
    return NULL;
}

static bool has_agent(char *const *environment) {
    const char *preload = variable(environment, "LD_PRELOAD");
    return preload && strstr(preload, AGENT_FILE);
}

/* What the environment of a program to be started needs; room 0: it is good as it is. */
struct change {
    size_t room;         /* for entries */
    size_t preload_size; /* for the value of LD_PRELOAD */
    bool takes_agent;
};

static struct change change_for(const char *path, char *const *environment, bool is_child) {
    struct change none = {0, 1, false};
    if (!area || !*agent_path) return none;
    long count = count_entries(environment);
    if (count < 0) return none;
    const char *preload = variable(environment, "LD_PRELOAD");
    bool has_library = has_agent(environment), has_area = variable(environment, "FAULTLENS_AGENT");
    bool is_spared = only_this && (is_child || only_this != process_id());
    bool takes = !is_spared && can_be_opened(agent_path) && (!path || loadable_into(path) == FL_LOADABLE);
    if (takes ? has_library && has_area : is_spared || !has_library) return none;
    size_t size = sizeof "LD_PRELOAD=:" + strlen(agent_path) + (preload ? strlen(preload) : 0);
    return (struct change){(size_t)count + ADDED_ENTRIES, size, takes};
}

/* The libraries to preload but ours, joined by colons. */
static size_t without_agent(const char *preload, char *kept, size_t size) {
    size_t used = 0, own = strlen(AGENT_FILE);
    *kept = 0;
    for (const char *p = preload ? preload : ""; *p;) {
        size_t length = strcspn(p, ": ");
        bool is_ours = length >= own && !strncmp(p + length - own, AGENT_FILE, own);
        if (length && !is_ours && used + length + 1 < size) {
            if (used) kept[used++] = ':';
            memcpy(kept + used, p, length);
            kept[used += length] = 0;
        }
        p += length + (p[length] != 0);
    }
    return used;
}

static char *const *changed(char *const *environment, bool takes_agent, char **room, char *preload, size_t size) {
    static const char name[] = "LD_PRELOAD=";
    size_t start = sizeof name - 1, count = 0;
    memcpy(preload, name, sizeof name);
    size_t kept = without_agent(variable(environment, "LD_PRELOAD"), preload + start, size - start);
    if (takes_agent) snprintf(preload + start + kept, size - start - kept, "%s%s", kept ? ":" : "", agent_path);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, start) && strncmp(*environment, "FAULTLENS_AGENT=", 16))
            room[count++] = *environment;
    if (kept || takes_agent) room[count++] = preload;
    if (takes_agent) room[count++] = area_entry;
    if (takes_agent && only_this) room[count++] = (char *)"FAULTLENS_ONLY_THIS=1";
    room[count] = NULL;
    return room;
}

/* Evaluates `call`, in which `extended` is the environment to use. If that makes it too large, `call` is evaluated
 * again without what is ours. */
#define WITH_AGENT(path, environment, is_child, call)                                                       \
    ({                                                                                                      \
        struct change change_ = change_for(path, environment, is_child);                                    \
        char *room_[change_.room + 1], preload_[change_.preload_size];                                      \
        char *const *extended = environment;                                                                \
        if (change_.room) extended = changed(environment, change_.takes_agent, room_, preload_, sizeof preload_); \
        int result_ = call;                                                                                 \
        if (area && (result_ == E2BIG || (result_ == -1 && errno == E2BIG)) && has_agent(extended)) {       \
            size_t count_ = (size_t)count_entries(extended);                                                \
            char *less_[count_ + ADDED_ENTRIES], kept_[strlen(variable(extended, "LD_PRELOAD")) + 16];      \
            extended = changed(extended, false, less_, kept_, sizeof kept_);                                \
            result_ = call;                                                                                 \
        }                                                                                                   \
        result_;                                                                                            \
    })

/* The file that execvp() would find; NULL: none. */
static const char *in_path(const char *file, char *found) {
    if (!area || strchr(file, '/')) return file;
    const char *folders = getenv("PATH");
    size_t length = strlen(file);
    for (const char *p = folders ? folders : "/bin:/usr/bin"; length < NAME_MAX;) {
        size_t size = strcspn(p, ":");
        if (size + length + 2 < PATH_MAX) {
            memcpy(found, p, size);
            found[size] = '/';
            memcpy(found + size + (size != 0), file, length + 1);
            if (is_executable(found) && S_ISREG(mode_of(found))) return found;
        }
        if (!p[size]) break;
        p += size + 1;
    }
    return NULL;
}

EXPORT int execve(const char *path, char *const *arguments, char *const *environment) {
    if (area) hold_if_crashing();
    return WITH_AGENT(path, environment, false, NEXT(execve)(path, arguments, extended));
}

EXPORT int execvpe(const char *file, char *const *arguments, char *const *environment) {
    if (area) hold_if_crashing();
    char found[PATH_MAX];
    return WITH_AGENT(in_path(file, found), environment, false, NEXT(execvpe)(file, arguments, extended));
}

EXPORT int execv(const char *path, char *const *arguments) { return execve(path, arguments, environ); }
EXPORT int execvp(const char *file, char *const *arguments) { return execvpe(file, arguments, environ); }

/* The arguments of execl() and its like as a list, on the stack of the caller. */
#define COLLECT(first)                                                          \
    va_list list, rest_;                                                        \
    va_start(list, first);                                                      \
    va_copy(rest_, list);                                                       \
    size_t count_ = 1;                                                          \
    while (va_arg(rest_, char *)) count_++;                                     \
    va_end(rest_);                                                              \
    char *arguments[count_ + 1];                                                \
    arguments[0] = (char *)first;                                               \
    for (size_t i_ = 1; i_ <= count_; i_++) arguments[i_] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...) {
    COLLECT(first);
    va_end(list);
    return execve(path, arguments, environ);
}

EXPORT int execlp(const char *file, const char *first, ...) {
    COLLECT(first);
    va_end(list);
    return execvpe(file, arguments, environ);
}

EXPORT int execle(const char *path, const char *first, ...) {
    COLLECT(first);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    return WITH_AGENT(path, environment, true,
                      NEXT(posix_spawn)(pid, path, actions, attributes, arguments, extended));
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    char found[PATH_MAX];
    return WITH_AGENT(in_path(file, found), environment, true,
                      NEXT(posix_spawnp)(pid, file, actions, attributes, arguments, extended));
}

void remember_for_exec(const char *area_path) {
    Dl_info self;
    if (!dladdr((void *)remember_for_exec, &self) || !self.dli_fname) return;
    snprintf(agent_path, sizeof agent_path, "%s", self.dli_fname);
    snprintf(area_entry, sizeof area_entry, "FAULTLENS_AGENT=%s", area_path);
}

/* Children that are started from here on are spared of the agent. */
void spare_children(void) {
    char kept[4096];
    only_this = process_id();
    unsetenv("FAULTLENS_ONLY_THIS");
    unsetenv("FAULTLENS_AGENT");
    if (without_agent(getenv("LD_PRELOAD"), kept, sizeof kept))
        setenv("LD_PRELOAD", kept, 1);
    else
        unsetenv("LD_PRELOAD");
}
