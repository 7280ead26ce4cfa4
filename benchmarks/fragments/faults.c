/* Faults of the CPU whose handlers can mend them: every one knows where to go on. */
#include "fragments.h"

#include <immintrin.h>

__thread long resume_at, resume_stack;
__thread sigjmp_buf *landing;
static __thread char *page; /* the one whose rights or file are wanting */
static __thread int page_file = -1;

enum { PAGE = 4096, ALIGNMENT_CHECK = 1 << 18 };

/* The instruction, and how to go on behind it with the same stack pointer. */
#define FAULTING(instruction, ...)                                                                                \
    __asm__ volatile("lea 2f(%%rip), %%rax\nmov %%rax, %0\nmov %%rsp, %1\n" instruction "\n2:\n"                 \
                     : "=m"(resume_at), "=m"(resume_stack)                                                        \
                     : __VA_ARGS__                                                                                \
                     : "rax", "rcx", "rdx", "cc", "memory")

static void map_page(int rights) {
    page = mmap(NULL, PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void map_truncated(void) {
    page_file = memfd_create("truncated", MFD_CLOEXEC);
    if (ftruncate(page_file, PAGE)) _exit(80);
    page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, page_file, 0);
    if (ftruncate(page_file, 0)) _exit(81);
}

static __attribute__((noinline)) void perform(enum fault fault) {
    switch (fault) {
        case WRITE_NULL: FAULTING("movl $1, (%2)", "r"(8L)); break;
        case READ_NULL: FAULTING("movl (%2), %%eax", "r"(0x10L)); break;
        case CALL_NULL: FAULTING("call *%2", "r"(0L)); break;
        case READ_WILD: FAULTING("movl (%2), %%eax", "r"(0x4141414141414141L)); break;
        case WRITE_READ_ONLY:
            map_page(PROT_READ);
            FAULTING("movl $1, (%2)", "r"(page + 40));
            break;
        case READ_NO_ACCESS:
            map_page(PROT_NONE);
            FAULTING("movl (%2), %%eax", "r"(page + 44));
            break;
        case CALL_DATA:
            map_page(PROT_READ | PROT_WRITE);
            page[0] = (char)0xc3; /* ret */
            FAULTING("call *%2", "r"(page));
            break;
        case READ_TRUNCATED:
            map_truncated();
            FAULTING("movl (%2), %%eax", "r"(page + 48));
            break;
        case DIVIDE: FAULTING("xor %%edx, %%edx\nxor %%eax, %%eax\nidivl %2", "r"(0)); break;
        case DIVIDE_FLOAT: {
            unsigned masked = _mm_getcsr();
            _mm_setcsr(masked & ~0x200u);
            __m128 one = _mm_set1_ps(1), zero = _mm_setzero_ps();
            FAULTING("divps %3, %2", "x"(one), "x"(zero));
            _mm_setcsr(masked);
            break;
        }
        case ILLEGAL: FAULTING("ud2", "i"(0)); break;
        case BREAKPOINT: FAULTING("int3", "i"(0)); break;
        case PRIVILEGED: FAULTING("hlt", "i"(0)); break;
        case MISALIGNED_VECTOR: FAULTING("movaps 1(%2), %%xmm0", "r"(&resume_at)); break;
        case MISALIGNED_CHECKED:
            FAULTING("pushf\norl %3, (%%rsp)\npopf\nmovl 1(%2), %%ecx\npushf\nandl %4, (%%rsp)\npopf", "r"(&resume_at),
                     "i"(ALIGNMENT_CHECK), "i"(~ALIGNMENT_CHECK));
            break;
        case WITHOUT_STACK: FAULTING("mov $8, %%esp\nud2", "i"(0)); break;
    }
}

/* The signal whose handler jumped back, or 0. Registers must be the same behind a fault that was mended. */
int try_fault(enum fault fault) {
    sigjmp_buf here, *outer = landing;
    int number = sigsetjmp(here, 1);
    if (!number) {
        landing = &here;
        register long kept __asm__("r15") = 0x1507;
        __asm__ volatile("movq %0, %%xmm9" ::"r"(kept) : "xmm9");
        perform(fault);
        long vector;
        __asm__ volatile("movq %%xmm9, %0" : "=r"(vector));
        if (kept != 0x1507 || vector != 0x1507) say("registers %x %x", (unsigned long)kept, (unsigned long)vector);
    }
    clear_alignment_check();
    landing = outer;
    return number;
}

void cause(enum fault fault) {
    int number = try_fault(fault);
    if (number)
        say("jumped back after %d", number);
    else
        say("went on");
    say_mask(" there");
}

/* Gives the page what it wants, or skips the instruction. */
void mend(ucontext_t *context) {
    if (page_file >= 0) {
        if (ftruncate(page_file, PAGE)) _exit(82);
        close(page_file);
        page_file = -1;
        page = NULL;
    } else if (page) {
        mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        page = NULL;
    } else if (context && resume_at) {
        greg_t *registers = context->uc_mcontext.gregs;
        registers[REG_RIP] = resume_at;
        registers[REG_RSP] = resume_stack;
        registers[REG_EFL] &= ~ALIGNMENT_CHECK;
        resume_at = 0;
    }
}

int fault_number(enum fault fault) {
    switch (fault) {
        case READ_TRUNCATED:
        case MISALIGNED_CHECKED: return SIGBUS;
        case DIVIDE:
        case DIVIDE_FLOAT: return SIGFPE;
        case ILLEGAL:
        case WITHOUT_STACK: return SIGILL;
        case BREAKPOINT: return SIGTRAP;
        default: return SIGSEGV;
    }
}
