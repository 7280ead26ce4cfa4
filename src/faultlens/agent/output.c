/* The tail of what the program prints, remembered inside of it: its streams are the very ones it would have had. */
#define _GNU_SOURCE
#include "inside.h"
#include "parts.h"

static void put_bytes(uint64_t position, const void *bytes, size_t size) {
    size_t at = position % FL_OUTPUT_BYTES, first = FL_OUTPUT_BYTES - at;
    if (first > size) first = size;
    memcpy(area->output + at, bytes, first);
    memcpy(area->output, (const char *)bytes + first, size - first);
}

static void remember_output(int descriptor, const void *bytes, ssize_t size) {
    if (!area || size <= 0) return;
    if (size > FL_OUTPUT_MAX) {
        bytes = (const char *)bytes + (size - FL_OUTPUT_MAX);
        size = FL_OUTPUT_MAX;
    }
    struct fl_output header = {own_pid, (int16_t)descriptor, FL_OUTPUT_MAGIC, (uint32_t)size, 0};
    uint64_t room = (sizeof header + (uint64_t)size + 7) & ~7ull;
    uint64_t position = __atomic_fetch_add(&area->output_head, room, __ATOMIC_RELAXED);
    put_bytes(position, &header, sizeof header);
    put_bytes(position + sizeof header, bytes, (size_t)size);
}

static bool is_output(int descriptor) { return descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO; }

EXPORT ssize_t write(int descriptor, const void *bytes, size_t size) {
    ssize_t written = NEXT(write)(descriptor, bytes, size);
    if (is_output(descriptor)) remember_output(descriptor, bytes, written);
    look_if_asked(area);
    keep_own_stack();
    return written;
}

EXPORT ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    ssize_t written = NEXT(writev)(descriptor, parts, count), left = written;
    if (is_output(descriptor))
        for (int i = 0; i < count && left > 0; left -= (ssize_t)parts[i++].iov_len)
            remember_output(descriptor, parts[i].iov_base,
                            left < (ssize_t)parts[i].iov_len ? left : (ssize_t)parts[i].iov_len);
    return written;
}

/* abseil, and with it TensorFlow, writes its fatal messages through syscall(). Everything else goes on as it came: some
 * calls return twice, on a stack that must not hold a frame of ours. */
__asm__(
    ".text\n"
    ".globl syscall\n"
    ".type syscall, @function\n"
    "syscall:\n"
    ".cfi_startproc\n"
    "cmpq $1, %rdi\n" /* SYS_write */
    "je 1f\n"
    "cmpq $317, %rdi\n" /* SYS_seccomp */
    "je 1f\n"
    "movq fl_next_syscall(%rip), %rax\n"
    "testq %rax, %rax\n"
    "je 1f\n"
    "jmp *%rax\n"
    "1:\n"
    "jmp fl_syscall\n"
    ".cfi_endproc\n"
    ".size syscall, . - syscall\n");

__attribute__((visibility("hidden"))) void *fl_next_syscall;

__attribute__((used, visibility("hidden"))) long fl_syscall(long number, long a, long b, long c, long d, long e,
                                                            long f) {
    if (!fl_next_syscall) fl_next_syscall = (void *)NEXT(syscall);
    if (number == SYS_seccomp) return seccomp_call(a, b, c);
    long result = NEXT(syscall)(number, a, b, c, d, e, f);
    if (number == SYS_write && is_output((int)a)) remember_output((int)a, (const void *)b, result);
    look_if_asked(area);
    return result;
}

/* stdio calls the kernel from inside the C library, where nothing can be put in between. */
EXPORT size_t fwrite(const void *bytes, size_t size, size_t count, FILE *stream) {
    size_t written = NEXT(fwrite)(bytes, size, count, stream);
    if (stream == stderr) remember_output(STDERR_FILENO, bytes, (ssize_t)(size * written));
    return written;
}

EXPORT int fputs(const char *text, FILE *stream) {
    int result = NEXT(fputs)(text, stream);
    if (stream == stderr && result >= 0) remember_output(STDERR_FILENO, text, (ssize_t)strlen(text));
    return result;
}

static int put_character(int result, int character, FILE *stream) {
    char byte = (char)character;
    if (stream == stderr && result != EOF) remember_output(STDERR_FILENO, &byte, 1);
    return result;
}

EXPORT int fputc(int character, FILE *stream) {
    return put_character(NEXT(fputc)(character, stream), character, stream);
}

EXPORT int putc(int character, FILE *stream) {
    return put_character(NEXT(putc)(character, stream), character, stream);
}

static void remember_formatted(FILE *stream, const char *format, va_list arguments) {
    if (!area || stream != stderr) return;
    char text[1024];
    int size = vsnprintf(text, sizeof text, format, arguments);
    remember_output(STDERR_FILENO, text, size < (int)sizeof text ? size : (int)sizeof text - 1);
}

EXPORT int vfprintf(FILE *stream, const char *format, va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    remember_formatted(stream, format, copy);
    va_end(copy);
    return NEXT(vfprintf)(stream, format, arguments);
}

EXPORT int fprintf(FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(stream, format, arguments);
    va_end(arguments);
    return result;
}

EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    remember_formatted(stream, format, copy);
    va_end(copy);
    return NEXT(__vfprintf_chk)(stream, flag, format, arguments);
}

EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = __vfprintf_chk(stream, flag, format, arguments);
    va_end(arguments);
    return result;
}
