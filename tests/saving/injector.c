// Which calls of this process change files below one folder, and what becomes of call number N?
//
// A seccomp filter turns every system call that can change a file into SIGSYS, and the handler decides: do it, let it
// fail, do half of it, stop or die before or after it. Unlike wrapped functions of libc this also sees what stdio,
// C++ streams, ctypes and syscall() do. The handler makes its own calls from one instruction that the filter lets pass,
// allocates nothing and takes no lock of libc's.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "written for x86-64"
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum { PATH = 4096, IOVECS = 64, COPY_BLOCK = 4096, FICLONE_ = 0x40049409, FICLONERANGE_ = 0x4020940D };

// The same in injector.py: class Kind, class Action, class Page, RECORD.
enum kind {
    OPEN = 1 << 0,  // for writing; the file stays as it is
    CREATE = 1 << 1,  // with O_CREAT or O_TRUNC
    WRITE = 1 << 2,
    TRUNCATE = 1 << 3,
    SYNC = 1 << 4,
    RENAME = 1 << 5,
    EXCHANGE = 1 << 6,  // renameat2 with flags
    LINK = 1 << 7,
    SYMLINK = 1 << 8,
    UNLINK = 1 << 9,
    RMDIR = 1 << 10,
    MKDIR = 1 << 11,
    COPY = 1 << 12,  // copy_file_range, sendfile, FICLONE
    ALLOCATE = 1 << 13,
    METADATA = 1 << 14,
    LOCK = 1 << 15,
};

enum action { NOTHING, KILL_BEFORE, KILL_AFTER, KILL_HALFWAY, FAIL, FAIL_HALFWAY, STOP_BEFORE };

enum flag { CREATED = 1, TRUNCATED = 2, WHOLE_SYSTEM = 4, UNNAMED = 8 };

struct page {
    uint32_t action;  // at call `at`
    uint32_t kinds;  // that are counted
    uint32_t later;  // kinds that fail after call `at`
    uint32_t never;  // kinds that always fail
    uint32_t unused;
    int32_t error;  // errno of calls that fail
    int64_t at;  // from 1; 0: never
    int64_t count;
    int32_t log;  // a descriptor to append records to; -1: none
    uint32_t busy;  // one call at a time while recording, so that the log has the true order
    uint32_t last;  // the kind of call `at`
    uint32_t watched_length;
    char watched[PATH];
};

struct record {
    uint32_t size;  // of all that follows, this included
    uint32_t kind;
    uint32_t flags;
    uint32_t path_length;
    uint32_t other_length;
    uint32_t unused;
    int64_t result;
    uint64_t inode;
    int64_t offset;
    int64_t length;
    uint64_t data_length;
};

struct call {
    long number, arguments[6];
    uint32_t kind, flags;
    int descriptor;  // -1: by path
    char path[PATH], other[PATH];
    uint64_t inode;
    int64_t offset, length;
};

static struct page *page;

long injector_syscall(long number, long a, long b, long c, long d, long e, long f);
extern const char injector_after[];
__asm__(".text\n.globl injector_syscall\n.type injector_syscall,@function\ninjector_syscall:\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\nmov 8(%rsp),%r9\n"
        "syscall\n.globl injector_after\ninjector_after:\nret\n");

#define CALL6(n, a, b, c, d, e, f, ...) \
    injector_syscall((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(...) CALL6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

static long perform(const struct call *call) {
    const long *a = call->arguments;
    return injector_syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static _Noreturn void say_nothing_and_die(void) {
    CALL(SYS_kill, CALL(SYS_getpid), SIGKILL);
    for (;;) CALL(SYS_pause);
}

// ------------------------------------------------------------------------------------------ what a call is about

static void name_of_descriptor(int descriptor, char *name) {
    char link[32] = "/proc/self/fd/";
    char digits[12];
    int length = 0, at = strlen(link);
    unsigned rest = descriptor;
    do digits[length++] = '0' + rest % 10;
    while (rest /= 10);
    while (length) link[at++] = digits[--length];
    long got = CALL(SYS_readlink, link, name, PATH - 1);
    name[got > 0 ? got : 0] = 0;
}

// The folder of a path is resolved by the kernel, its last part is kept: the call is about the entry, not its target.
static void full_name(int folder, const char *path, char *name) {
    char parent[PATH];
    size_t length = strnlen(path, PATH - 1);
    while (length > 1 && path[length - 1] == '/') length--;
    size_t start = length;
    while (start && path[start - 1] != '/') start--;
    size_t last = length - start;
    memcpy(parent, path, start);
    if (!start) parent[start++] = '.';
    parent[start] = 0;
    long opened = CALL(SYS_openat, folder, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    name[0] = 0;
    if (opened < 0) return;
    name_of_descriptor(opened, name);
    CALL(SYS_close, opened);
    size_t end = strlen(name);
    if (end + last + 2 > PATH) return;
    if (end > 1) name[end++] = '/';
    memcpy(name + end, path + length - last, last);
    name[end + last] = 0;
}

static int watched(const char *name) {
    size_t length = page->watched_length;
    return !strncmp(name, page->watched, length) && (!name[length] || name[length] == '/');
}

static int about_path(struct call *call, uint32_t kind, int folder, long path) {
    call->kind = kind;
    full_name(folder, (const char *)path, call->path);
    return watched(call->path);
}

static int about_paths(struct call *call, uint32_t kind, int from, long path, int to, long other) {
    int first = about_path(call, kind, from, path);
    full_name(to, (const char *)other, call->other);
    return watched(call->other) || first;
}

static int about_descriptor(struct call *call, uint32_t kind, int descriptor) {
    call->kind = kind;
    call->descriptor = descriptor;
    if (descriptor < 0) return 0;
    name_of_descriptor(descriptor, call->path);
    return watched(call->path);
}

static int about_open(struct call *call, int folder, long path, long flags) {
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        call->flags |= UNNAMED;
        return about_path(call, CREATE, folder, path);
    }
    return about_path(call, flags & (O_CREAT | O_TRUNC) ? CREATE : OPEN, folder, path);
}

// Whether the call is one that counts; fills in what it is about.
static int recognised(struct call *call) {
    const long *a = call->arguments;
    switch (call->number) {
        case SYS_open: return about_open(call, AT_FDCWD, a[0], a[1]);
        case SYS_openat: return about_open(call, a[0], a[1], a[2]);
        case SYS_creat: return about_open(call, AT_FDCWD, a[0], O_CREAT | O_TRUNC);
        case SYS_write:
        case SYS_pwrite64:
        case SYS_writev:
        case SYS_pwritev:
        case SYS_pwritev2: return about_descriptor(call, WRITE, a[0]);
        case SYS_ftruncate: call->length = a[1]; return about_descriptor(call, TRUNCATE, a[0]);
        case SYS_truncate: call->length = a[1]; return about_path(call, TRUNCATE, AT_FDCWD, a[0]);
        case SYS_fsync:
        case SYS_fdatasync: return about_descriptor(call, SYNC, a[0]);
        case SYS_syncfs: call->flags |= WHOLE_SYSTEM; return about_descriptor(call, SYNC, a[0]);
        case SYS_rename: return about_paths(call, RENAME, AT_FDCWD, a[0], AT_FDCWD, a[1]);
        case SYS_renameat: return about_paths(call, RENAME, a[0], a[1], a[2], a[3]);
        case SYS_renameat2: call->length = a[4]; return about_paths(call, a[4] ? EXCHANGE : RENAME, a[0], a[1], a[2], a[3]);
        case SYS_link: return about_paths(call, LINK, AT_FDCWD, a[0], AT_FDCWD, a[1]);
        case SYS_linkat: return about_paths(call, LINK, a[0], a[1], a[2], a[3]);
        case SYS_symlink: full_name(AT_FDCWD, (const char *)a[1], call->other); break;
        case SYS_symlinkat: full_name(a[1], (const char *)a[2], call->other); break;
        case SYS_unlink: return about_path(call, UNLINK, AT_FDCWD, a[0]);
        case SYS_rmdir: return about_path(call, RMDIR, AT_FDCWD, a[0]);
        case SYS_unlinkat: return about_path(call, a[2] & AT_REMOVEDIR ? RMDIR : UNLINK, a[0], a[1]);
        case SYS_mkdir: return about_path(call, MKDIR, AT_FDCWD, a[0]);
        case SYS_mkdirat: return about_path(call, MKDIR, a[0], a[1]);
        case SYS_copy_file_range: return about_descriptor(call, COPY, a[2]);
        case SYS_sendfile:
        case SYS_ioctl: return about_descriptor(call, COPY, a[0]);
        case SYS_fallocate: call->offset = a[2]; call->length = a[3]; return about_descriptor(call, ALLOCATE, a[0]);
        case SYS_chmod: return about_path(call, METADATA, AT_FDCWD, a[0]);
        case SYS_fchmodat:
        case SYS_fchmodat2: return about_path(call, METADATA, a[0], a[1]);
        case SYS_fchmod: return about_descriptor(call, METADATA, a[0]);
        case SYS_utimensat:
            return a[1] ? about_path(call, METADATA, a[0], a[1]) : about_descriptor(call, METADATA, a[0]);
        case SYS_flock: return about_descriptor(call, LOCK, a[0]);
        default: return 0;
    }
    strncpy(call->path, (const char *)a[0], PATH - 1);  // a symbolic link: what it says
    call->kind = SYMLINK;
    return watched(call->other);
}

// ------------------------------------------------------------------------------------------ half a call

static size_t bytes_of(const struct iovec *vectors, long count) {
    size_t bytes = 0;
    for (long i = 0; i < count; i++) bytes += vectors[i].iov_len;
    return bytes;
}

// Writes the first half of what should be written; other calls have no half.
static long halfway(struct call *call) {
    struct call half = *call;
    struct iovec vectors[IOVECS];
    long *a = half.arguments;
    switch (call->number) {
        case SYS_write:
        case SYS_pwrite64: a[2] /= 2; return perform(&half);
        case SYS_copy_file_range: a[4] /= 2; return perform(&half);
        case SYS_sendfile: a[3] /= 2; return perform(&half);
        case SYS_writev:
        case SYS_pwritev:
        case SYS_pwritev2: {
            if (a[2] > IOVECS) return -EINVAL;
            memcpy(vectors, (void *)a[1], a[2] * sizeof *vectors);
            size_t left = bytes_of(vectors, a[2]) / 2;
            for (long i = 0; i < a[2]; i++) {
                if (vectors[i].iov_len > left) vectors[i].iov_len = left;
                left -= vectors[i].iov_len;
            }
            a[1] = (long)vectors;
            return perform(&half);
        }
        default: return 0;
    }
}

// ------------------------------------------------------------------------------------------ the log

static void append(const void *data, size_t size) {
    const char *at = data;
    while (size) {
        long written = CALL(SYS_write, page->log, at, size);
        if (written <= 0) say_nothing_and_die();  // a log with a hole would prove anything
        at += written;
        size -= written;
    }
}

static void append_copied(const struct call *call, int64_t from, int64_t size) {
    char block[COPY_BLOCK];
    int source = call->number == SYS_sendfile ? call->arguments[1] : call->arguments[0];
    while (size > 0) {
        long got = CALL(SYS_pread64, source, block, size < COPY_BLOCK ? size : COPY_BLOCK, from);
        if (got <= 0) say_nothing_and_die();
        append(block, got);
        from += got;
        size -= got;
    }
}

// Where the copied bytes come from, asked before the call moves it.
static int64_t source_offset(const struct call *call) {
    const long *a = call->arguments;
    if (call->number == SYS_copy_file_range) return a[1] ? *(int64_t *)a[1] : CALL(SYS_lseek, a[0], 0, SEEK_CUR);
    if (call->number == SYS_sendfile) return a[2] ? *(int64_t *)a[2] : CALL(SYS_lseek, a[1], 0, SEEK_CUR);
    return 0;
}

static int64_t target_offset(const struct call *call, long result) {
    const long *a = call->arguments;
    if (call->number == SYS_pwrite64 || call->number == SYS_pwritev || call->number == SYS_pwritev2) return a[3];
    if (call->number == SYS_copy_file_range && a[3]) return *(int64_t *)a[3] - result;
    return CALL(SYS_lseek, call->descriptor, 0, SEEK_CUR) - result;
}

static uint64_t inode_of(int folder, const char *path, int flags) {
    struct stat found;
    return CALL(SYS_newfstatat, folder, path, &found, flags) < 0 ? 0 : found.st_ino;
}

static long recorded(struct call *call) {
    while (__atomic_exchange_n(&page->busy, 1, __ATOMIC_ACQUIRE)) CALL(SYS_sched_yield);
    int64_t from = source_offset(call);
    uint64_t before = inode_of(AT_FDCWD, call->path, AT_SYMLINK_NOFOLLOW);
    if (call->number == SYS_linkat && call->arguments[4])  // a file without a name gets one
        before = inode_of(call->arguments[0], (const char *)call->arguments[1], call->arguments[4] & AT_EMPTY_PATH);
    long result = perform(call);
    const long *a = call->arguments;
    struct record record = {.kind = call->kind, .flags = call->flags, .result = result, .length = call->length};
    if (call->kind == CREATE && result >= 0) {
        long flags = call->number == SYS_openat ? a[2] : call->number == SYS_open ? a[1] : O_CREAT | O_TRUNC;
        record.inode = inode_of(result, "", AT_EMPTY_PATH);
        if (!before || call->flags & UNNAMED) record.flags |= CREATED;
        if (flags & O_TRUNC) record.flags |= TRUNCATED;
    } else if (call->descriptor >= 0) {
        record.inode = inode_of(call->descriptor, "", AT_EMPTY_PATH);
    } else {
        record.inode = before ? before : inode_of(AT_FDCWD, call->path, AT_SYMLINK_NOFOLLOW);
    }
    int has_data = (call->kind == WRITE || call->kind == COPY) && result > 0;
    record.offset = has_data ? target_offset(call, result) : call->offset;
    record.data_length = has_data ? result : 0;
    record.path_length = strlen(call->path);
    record.other_length = strlen(call->other);
    record.size = sizeof record + record.path_length + record.other_length + record.data_length;
    append(&record, sizeof record);
    append(call->path, record.path_length);
    append(call->other, record.other_length);
    if (has_data && call->kind == COPY) {
        append_copied(call, from, result);
    } else if (has_data && (call->number == SYS_write || call->number == SYS_pwrite64)) {
        append((void *)a[1], result);
    } else if (has_data) {
        const struct iovec *vectors = (void *)a[1];
        for (long i = 0, left = result; i < a[2] && left; i++) {
            long size = (long)vectors[i].iov_len < left ? (long)vectors[i].iov_len : left;
            append(vectors[i].iov_base, size);
            left -= size;
        }
    }
    __atomic_store_n(&page->busy, 0, __ATOMIC_RELEASE);
    return result;
}

// ------------------------------------------------------------------------------------------ the decision

static long decided(struct call *call) {
    if (call->kind & page->never) return -page->error;
    if (call->kind & page->kinds) {
        int64_t number = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
        if (number == page->at) {
            page->last = call->kind;
            switch (page->action) {
                case KILL_BEFORE: say_nothing_and_die();
                case KILL_AFTER: perform(call); say_nothing_and_die();
                case KILL_HALFWAY: halfway(call); say_nothing_and_die();
                case FAIL: return -page->error;
                case FAIL_HALFWAY: {
                    long written = halfway(call);
                    return written > 0 ? written : -page->error;
                }
                case STOP_BEFORE: CALL(SYS_kill, CALL(SYS_getpid), SIGSTOP); break;
                default: break;
            }
        }
    }
    if (call->kind & page->later && __atomic_load_n(&page->count, __ATOMIC_SEQ_CST) >= page->at) return -page->error;
    return page->log >= 0 ? recorded(call) : perform(call);
}

static void on_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    struct call call;
    call.number = info->si_syscall;
    call.arguments[0] = registers[REG_RDI];
    call.arguments[1] = registers[REG_RSI];
    call.arguments[2] = registers[REG_RDX];
    call.arguments[3] = registers[REG_R10];
    call.arguments[4] = registers[REG_R8];
    call.arguments[5] = registers[REG_R9];
    call.kind = call.flags = 0;
    call.descriptor = -1;
    call.path[0] = call.other[0] = 0;
    call.offset = call.length = 0;
    if (call.number == SYS_rt_sigprocmask) {  // a blocked SIGSYS would be deadly; the rest is as asked
        uint64_t wanted = 0, mask = 0;
        if (call.arguments[1]) {
            memcpy(&wanted, (void *)call.arguments[1], sizeof wanted);
            wanted &= ~(1ull << (SIGSYS - 1));
            call.arguments[1] = (long)&wanted;
        }
        registers[REG_RAX] = perform(&call);
        CALL(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, sizeof mask);
        memcpy(&((ucontext_t *)context)->uc_sigmask, &mask, sizeof mask);
        return;
    }
    registers[REG_RAX] = page->watched_length && recognised(&call) ? decided(&call) : perform(&call);
}

// ------------------------------------------------------------------------------------------ from outside

static const int TRAPPED[] = {
    SYS_write,    SYS_pwrite64,  SYS_writev,    SYS_pwritev,   SYS_pwritev2, SYS_creat,           SYS_ftruncate,
    SYS_truncate, SYS_fsync,     SYS_fdatasync, SYS_syncfs,    SYS_rename,   SYS_renameat,        SYS_renameat2,
    SYS_link,     SYS_linkat,    SYS_symlink,   SYS_symlinkat, SYS_unlink,   SYS_unlinkat,        SYS_rmdir,
    SYS_mkdir,    SYS_mkdirat,   SYS_sendfile,  SYS_fallocate, SYS_chmod,    SYS_copy_file_range, SYS_fchmod,
    SYS_fchmodat, SYS_fchmodat2, SYS_utimensat, SYS_flock,     SYS_rt_sigprocmask,
};
enum { TRAPS = sizeof TRAPPED / sizeof *TRAPPED };

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ARGUMENT(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define IF_ANY(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), yes, no)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)

// From now on this thread, and those it makes, are watched; there is no way back. 0, or the errno.
int injector_arm(struct page *shared) {
    uint64_t after = (uint64_t)injector_after;
    struct sock_filter filter[32 + TRAPS] = {
        FIELD(arch),
        IF(AUDIT_ARCH_X86_64, 1, 0),
        ANSWER(SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        IF(after >> 32, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        IF(after, 0, 1),
        ANSWER(SECCOMP_RET_ALLOW),
        FIELD(nr),
        IF(SYS_openat, 0, 4),
        ARGUMENT(2),
        IF_ANY(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1),
        ANSWER(SECCOMP_RET_TRAP),
        ANSWER(SECCOMP_RET_ALLOW),
        IF(SYS_open, 0, 4),
        ARGUMENT(1),
        IF_ANY(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1),
        ANSWER(SECCOMP_RET_TRAP),
        ANSWER(SECCOMP_RET_ALLOW),
        IF(SYS_ioctl, 0, 5),
        ARGUMENT(1),
        IF(FICLONE_, 1, 0),
        IF(FICLONERANGE_, 0, 1),
        ANSWER(SECCOMP_RET_TRAP),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    int length = 25;
    for (int i = 0; i < TRAPS; i++) {
        int to_trap = TRAPS - i;  // over the rest of the comparisons and over "allow"
        filter[length++] = (struct sock_filter)IF(TRAPPED[i], to_trap, 0);
    }
    filter[length++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    filter[length++] = (struct sock_filter)ANSWER(SECCOMP_RET_TRAP);
    struct sock_fprog program = {.len = length, .filter = filter};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    page = shared;
    if (sigaction(SIGSYS, &action, NULL)) return errno;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) return errno;
    return 0;
}

// The kernel sends this process SIGKILL after that time, whatever it is doing. 0, or the errno.
int injector_kill_in(int64_t nanoseconds) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec time = {.it_value = {nanoseconds / 1000000000, nanoseconds % 1000000000}};
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &time, NULL) ? errno : 0;
}
