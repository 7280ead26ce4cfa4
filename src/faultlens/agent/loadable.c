/* Can the agent be loaded into a program? Where it cannot, the loader prints errors, or the program does not start:
 * another C library (musl), another architecture, another root, and sanitizers whose runtime must come first.
 *
 * Called between vfork and exec: nothing is allocated, nothing of the program changed. */
#define _GNU_SOURCE
#include "parts.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#define MAX_HEADERS 24
#define MAX_SCRIPTS 4 /* as many interpreters of interpreters as the kernel follows */

static struct stat own_loader; /* the dynamic loader that we were loaded by; st_ino 0: not known */

static bool look_at(const char *path, struct stat *state) {
    return kernel(SYS_newfstatat, AT_FDCWD, (long)path, (long)state, 0, 0, 0) == 0;
}

void remember_own_loader(void) {
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    uintptr_t base = 0;
    for (size_t i = 0; headers && i < count; i++)
        if (headers[i].p_type == PT_PHDR) base = (uintptr_t)headers - headers[i].p_vaddr;
    for (size_t i = 0; headers && i < count; i++)
        if (headers[i].p_type == PT_INTERP) look_at((const char *)(base + headers[i].p_vaddr), &own_loader);
}

static bool read_at(int file, uint64_t offset, void *to, size_t size) {
    return kernel(SYS_pread64, file, (long)to, (long)size, (long)offset, 0, 0) == (long)size;
}

static bool has_our_loader(int file, const ElfW(Phdr) * interpreter) {
    char path[256] = "";
    struct stat loader;
    if (interpreter->p_filesz >= sizeof path || !read_at(file, interpreter->p_offset, path, interpreter->p_filesz))
        return false;
    return look_at(path, &loader) && loader.st_dev == own_loader.st_dev && loader.st_ino == own_loader.st_ino;
}

/* Of files the addresses are those of memory. */
static uint64_t offset_of(const ElfW(Phdr) * headers, size_t count, uint64_t address) {
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_LOAD && address >= headers[i].p_vaddr &&
            address < headers[i].p_vaddr + headers[i].p_filesz)
            return headers[i].p_offset + (address - headers[i].p_vaddr);
    return 0;
}

static bool is_first_runtime(const char *library) {
    static const char *const names[] = {"libasan.", "libtsan.", "liblsan.", "libhwasan.", "libclang_rt."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(library, names[i], strlen(names[i]))) return true;
    return false;
}

static bool read_entry(int file, const ElfW(Phdr) * dynamic, size_t index, ElfW(Dyn) * entry) {
    return index < dynamic->p_filesz / sizeof *entry &&
           read_at(file, dynamic->p_offset + index * sizeof *entry, entry, sizeof *entry) && entry->d_tag != DT_NULL;
}

static bool needs_to_be_alone(int file, const ElfW(Phdr) * headers, size_t count, const ElfW(Phdr) * dynamic) {
    uint64_t strings = 0;
    ElfW(Dyn) entry;
    for (size_t i = 0; read_entry(file, dynamic, i, &entry); i++)
        if (entry.d_tag == DT_STRTAB) strings = offset_of(headers, count, entry.d_un.d_ptr);
    for (size_t i = 0; strings && read_entry(file, dynamic, i, &entry); i++) {
        char library[16] = "";
        if (entry.d_tag == DT_NEEDED) read_at(file, strings + entry.d_un.d_val, library, sizeof library - 1);
        if (is_first_runtime(library)) return true;
    }
    return false;
}

static enum fl_loadable judge_file(int file) {
    ElfW(Ehdr) header;
    ElfW(Phdr) headers[MAX_HEADERS];
    if (!read_at(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG)) return FL_LOADABLE;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) return FL_FOREIGN;
    size_t count = header.e_phnum < MAX_HEADERS ? header.e_phnum : MAX_HEADERS;
    if (!read_at(file, header.e_phoff, headers, count * sizeof *headers)) return FL_LOADABLE;
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_INTERP && own_loader.st_ino && !has_our_loader(file, &headers[i])) return FL_FOREIGN;
        if (headers[i].p_type == PT_DYNAMIC && needs_to_be_alone(file, headers, count, &headers[i])) return FL_SANITIZED;
    }
    return FL_LOADABLE;
}

/* The program that runs a script, behind "#!". */
static bool read_interpreter(int file, char *path, size_t size) {
    char line[256] = "";
    long got = kernel(SYS_pread64, file, (long)line, sizeof line - 1, 0, 0, 0);
    if (got < 3 || line[0] != '#' || line[1] != '!') return false;
    const char *start = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(start, " \t\n");
    if (!length || length >= size) return false;
    memcpy(path, start, length);
    path[length] = 0;
    return true;
}

enum fl_loadable loadable_into(const char *path) {
    char interpreter[256];
    for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
        int file = (int)kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
        if (file < 0) break; /* not ours to say */
        bool is_script = read_interpreter(file, interpreter, sizeof interpreter);
        enum fl_loadable verdict = is_script ? FL_LOADABLE : judge_file(file);
        kernel(SYS_close, file, 0, 0, 0, 0, 0);
        if (!is_script) return verdict;
        path = interpreter;
    }
    return FL_LOADABLE;
}

/* Asked by the supervisor, before the program starts. */
EXPORT int faultlens_loadable(const char *path) {
    remember_own_loader();
    return loadable_into(path);
}
