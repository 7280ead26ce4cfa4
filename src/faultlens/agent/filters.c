/* Where a report would change how the program ends, there is none.
 *
 * A seccomp filter that the program sets for itself may forbid what a report needs, and end the program by SIGSYS
 * where it would have died of its fault. The filter is asked beforehand, by running it: it is a small program without
 * loops (classic BPF). Where it would not let us speak, we are silent. */
#define _GNU_SOURCE
#include "parts.h"

#include <asm/prctl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static const int needed[] = {
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_tgsigqueueinfo, SYS_tgkill,
    SYS_kill, SYS_getpid, SYS_gettid, SYS_futex, SYS_prctl, SYS_openat, SYS_getdents64, SYS_lseek, SYS_close,
    SYS_sched_yield, SYS_sigaltstack, SYS_arch_prctl, SYS_prlimit64, SYS_clock_gettime, SYS_pread64, SYS_newfstatat,
    SYS_faccessat,
};

#define MEMORY_WORDS BPF_MEMWORDS

static uint32_t run_filter(const struct sock_fprog *program, const struct seccomp_data *data) {
    uint32_t a = 0, x = 0, memory[MEMORY_WORDS] = {0};
    for (uint32_t at = 0; at < program->len; at++) {
        const struct sock_filter *step = &program->filter[at];
        uint32_t k = step->k, operand = BPF_SRC(step->code) == BPF_X ? x : k, truth;
        switch (BPF_CLASS(step->code)) {
        case BPF_LD:
            if (BPF_MODE(step->code) == BPF_ABS && k <= sizeof *data - 4) memcpy(&a, (const char *)data + k, 4);
            if (BPF_MODE(step->code) == BPF_IMM) a = k;
            if (BPF_MODE(step->code) == BPF_LEN) a = sizeof *data;
            if (BPF_MODE(step->code) == BPF_MEM) a = memory[k % MEMORY_WORDS];
            break;
        case BPF_LDX:
            if (BPF_MODE(step->code) == BPF_IMM) x = k;
            if (BPF_MODE(step->code) == BPF_LEN) x = sizeof *data;
            if (BPF_MODE(step->code) == BPF_MEM) x = memory[k % MEMORY_WORDS];
            break;
        case BPF_ST: memory[k % MEMORY_WORDS] = a; break;
        case BPF_STX: memory[k % MEMORY_WORDS] = x; break;
        case BPF_ALU:
            switch (BPF_OP(step->code)) {
            case BPF_ADD: a += operand; break;
            case BPF_SUB: a -= operand; break;
            case BPF_MUL: a *= operand; break;
            case BPF_DIV: a = operand ? a / operand : 0; break;
            case BPF_OR: a |= operand; break;
            case BPF_AND: a &= operand; break;
            case BPF_XOR: a ^= operand; break;
            case BPF_LSH: a <<= operand & 31; break;
            case BPF_RSH: a >>= operand & 31; break;
            case BPF_NEG: a = -a; break;
            }
            break;
        case BPF_JMP:
            if (BPF_OP(step->code) == BPF_JA) {
                at += k;
                break;
            }
            truth = BPF_OP(step->code) == BPF_JEQ   ? a == operand
                    : BPF_OP(step->code) == BPF_JGT ? a > operand
                    : BPF_OP(step->code) == BPF_JGE ? a >= operand
                                                    : (a & operand) != 0;
            at += truth ? step->jt : step->jf;
            break;
        case BPF_RET: return BPF_RVAL(step->code) == BPF_A ? a : k;
        case BPF_MISC:
            if (BPF_MISCOP(step->code) == BPF_TAX) x = a;
            if (BPF_MISCOP(step->code) == BPF_TXA) a = x;
            break;
        }
    }
    return SECCOMP_RET_ALLOW; /* not a filter: the kernel will say so */
}

static bool lets_us_speak(const struct sock_fprog *program) {
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        struct seccomp_data call = {.nr = needed[i], .arch = AUDIT_ARCH_X86_64};
        if (needed[i] == SYS_tgkill || needed[i] == SYS_rt_tgsigqueueinfo) call.args[0] = (uint64_t)process_id();
        uint32_t verdict = run_filter(program, &call) & SECCOMP_RET_ACTION_FULL;
        if (verdict != SECCOMP_RET_ALLOW && verdict != SECCOMP_RET_LOG) return false;
    }
    return true;
}

/* The program may hand over anything: what cannot be read is the kernel's to refuse. */
static bool can_be_run(const struct sock_fprog *program) {
    if (!is_readable(program) || !is_readable((const char *)(program + 1) - 1)) return false;
    for (size_t at = 0; at < program->len; at++)
        if (!is_readable(&program->filter[at])) return false;
    return program->len > 0;
}

/* The call puts the filter `program` into force (NULL: the strict mode). */
static long set_filter(long number, long a, long b, long c, long d, long e, const void *program) {
    bool stood_aside = stands_aside;
    if (!program || (can_be_run(program) && !lets_us_speak(program)))
        step_aside(); /* before, because afterwards it may not be allowed either */
    long result = kernel(number, a, b, c, d, e, 0);
    if (result >= 0) return result;
    if (!stood_aside && stands_aside) step_in_again();
    errno = (int)-result;
    return -1;
}

EXPORT int prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long), d = va_arg(list, long);
    va_end(list);
    if (area && option == PR_SET_SYSCALL_USER_DISPATCH) step_aside(); /* a call of ours would be dispatched too */
    if (!area || option != PR_SET_SECCOMP) return NEXT(prctl)(option, a, b, c, d);
    return (int)set_filter(SYS_prctl, option, a, b, c, d, a == SECCOMP_MODE_STRICT ? NULL : (const void *)b);
}

long seccomp_call(long operation, long flags, long program) {
    bool sets = operation == SECCOMP_SET_MODE_STRICT || operation == SECCOMP_SET_MODE_FILTER;
    if (!area || !sets) return NEXT(syscall)(SYS_seccomp, operation, flags, program);
    return set_filter(SYS_seccomp, operation, flags, program, 0, 0,
                      operation == SECCOMP_SET_MODE_STRICT ? NULL : (const void *)program);
}

/* Who is traced is seen to stop at every signal: a fault that happens again would be one too many. */
EXPORT long ptrace(enum __ptrace_request request, ...) {
    va_list list;
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    long result = NEXT(ptrace)(request, pid, address, data);
    if (area && request == PTRACE_TRACEME && result == 0) step_aside();
    return result;
}

bool is_traced(void) {
    char status[1024] = "";
    long file = kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/status", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0) return false;
    long size = kernel(SYS_read, file, (long)status, sizeof status - 1, 0, 0, 0);
    kernel(SYS_close, file, 0, 0, 0, 0, 0);
    const char *line = size > 0 ? strstr(status, "TracerPid:\t") : NULL;
    return line && line[strlen("TracerPid:\t")] != '0';
}

#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS 0x5005
#endif

/* The kernel keeps return addresses of handlers there, too, and ours is another one than it pushed. */
bool has_shadow_stack(void) {
    unsigned long features = 0;
    return kernel(SYS_arch_prctl, ARCH_SHSTK_STATUS, (long)&features, 0, 0, 0, 0) == 0 && features & 1;
}
