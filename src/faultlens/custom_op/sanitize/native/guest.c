/* Preloaded into the program: gives it the sanitized library in the place of its own, and notes the lines that Python
   is at whenever a sanitizer reports.

   FAULTLENS_SANITIZED    the sanitized library
   FAULTLENS_IN_PLACE_OF  the real path of the program's own one; or, where only the source is known,
   FAULTLENS_HAS          names of classes that its file contains, one per line; or
   FAULTLENS_DEFINES      names of functions that it defines: a plain name may stand in any file
   FAULTLENS_SANITIZE_LOG folder for what is noted: PID.loaded, PID.python, PID.asan
   FAULTLENS_OUTPUTS      the library that looks at outputs (outputs.cc), if they are looked at */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTED_BY (SIGRTMIN + 9)
#define LARGEST (128 << 20) /* bytes of a library that is looked into */

static int python_log = -1;
static void (*dump_python)(int);

static int log_file(const char *kind) {
  const char *folder = getenv("FAULTLENS_SANITIZE_LOG");
  char path[PATH_MAX];
  if (!folder) return -1;
  snprintf(path, sizeof path, "%s/%d.%s", folder, getpid(), kind);
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* faulthandler's handler writes all Python stacks, without the interpreter lock, from any thread. It is called as a
   function: signals inside of a report confuse the sanitizers. */
static void let_python_tell(void) {
  int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
  void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
  int (*is_there)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  int (*execute)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
  char code[200];
  if (python_log >= 0 || !ensure || !release || !is_there || !execute || !is_there()) return;
  int file = log_file("python");
  if (file < 0) return;
  snprintf(code, sizeof code, "__import__('faulthandler').register(%d, file=%d, all_threads=True)", NOTED_BY, file);
  int state = ensure();
  struct sigaction registered;
  stack_t roomy;
  sigaltstack(NULL, &roomy); /* faulthandler's own is too small for a report of a stack overflow */
  if (execute(code) == 0 && sigaction(NOTED_BY, NULL, &registered) == 0) {
    dump_python = registered.sa_handler;
    python_log = file;
  }
  sigaltstack(&roomy, NULL);
  release(state);
}

/* Everybody's way to say: something is reported just now. */
void faultlens_note_python(const char *kind) {
  if (python_log < 0) return;
  dprintf(python_log, "@%s %#lx\n", kind, (unsigned long)pthread_self());
  dump_python(NOTED_BY);
}

/* Whether it is a library that defines the function for others. */
static int defines(const char *content, size_t size, const char *name) {
  const ElfW(Ehdr) *head = (const void *)content;
  if (size < sizeof *head || memcmp(content, ELFMAG, SELFMAG) || head->e_shentsize != sizeof(ElfW(Shdr))) return 0;
  if (head->e_shoff > size || (size - head->e_shoff) / sizeof(ElfW(Shdr)) < head->e_shnum) return 0;
  const ElfW(Shdr) *sections = (const void *)(content + head->e_shoff);
  for (int i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= head->e_shnum) continue;
    const ElfW(Shdr) *table = &sections[i], *texts = &sections[table->sh_link];
    if (table->sh_offset > size || table->sh_size > size - table->sh_offset) return 0;
    if (texts->sh_offset > size || texts->sh_size > size - texts->sh_offset) return 0;
    const ElfW(Sym) *symbols = (const void *)(content + table->sh_offset);
    size_t length = strlen(name) + 1;
    for (size_t k = 0; k < table->sh_size / sizeof *symbols; k++) {
      if (symbols[k].st_shndx == SHN_UNDEF || symbols[k].st_name > texts->sh_size) continue;
      if (length > texts->sh_size - symbols[k].st_name) continue;
      if (!memcmp(content + texts->sh_offset + symbols[k].st_name, name, length)) return 1;
    }
  }
  return 0;
}

static int contains(const char *content, size_t size, const char *name) {
  return memmem(content, size, name, strlen(name) + 1) != NULL; /* up to its end */
}

/* All of the names, one per line. */
static int has_all(const char *path, const char *names, int (*has)(const char *, size_t, const char *)) {
  int file = open(path, O_RDONLY | O_CLOEXEC), all = 0;
  struct stat about;
  if (file < 0) return 0;
  if (fstat(file, &about) == 0 && about.st_size > 0 && about.st_size <= LARGEST) {
    char *content = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    all = content != MAP_FAILED && *names;
    while (all && *names) {
      size_t length = strcspn(names, "\n");
      char name[1024];
      snprintf(name, sizeof name, "%.*s", (int)length, names);
      all = has(content, about.st_size, name);
      names += length + (names[length] == '\n');
    }
    if (content != MAP_FAILED) munmap(content, about.st_size);
  }
  close(file);
  return all;
}

static const char *sanitized_for(const char *file) {
  const char *sanitized = getenv("FAULTLENS_SANITIZED"), *own = getenv("FAULTLENS_IN_PLACE_OF");
  const char *classes = getenv("FAULTLENS_HAS"), *functions = getenv("FAULTLENS_DEFINES");
  char real[PATH_MAX];
  if (!sanitized || !file || !strchr(file, '/') || !realpath(file, real)) return NULL;
  if (own) return strcmp(own, real) ? NULL : sanitized;
  if (classes) return has_all(real, classes, contains) ? sanitized : NULL;
  return functions && has_all(real, functions, defines) ? sanitized : NULL;
}

/* ----------------------------------------------------------------- outputs that the op leaves unwritten: outputs.cc */

static void (*allocated)(const void *status, void *context, int index, void **output, void *caller);
static void (*computed)(void *context);

static void load_outputs(void *(*open_library)(const char *, int)) {
  const char *path = getenv("FAULTLENS_OUTPUTS");
  void *library = path && !computed ? open_library(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) return;
  allocated = (void (*)(const void *, void *, int, void **, void *))dlsym(library, "faultlens_allocated");
  computed = (void (*)(void *))dlsym(library, "faultlens_computed");
}

/* TensorFlow may not share its symbols (before 2.19): "the next one" would not be found. */
static void *of_tensorflow(const char *name) {
  void *library = dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);
  return library ? dlsym(library, name) : dlsym(RTLD_NEXT, name);
}

/* absl::Status OpKernelContext::allocate_output(int, const TensorShape&, Tensor**): returned through a pointer. */
#define ALLOCATE _ZN10tensorflow15OpKernelContext15allocate_outputEiRKNS_11TensorShapeEPPNS_6TensorE
#define COMPUTE _ZN10tensorflow16ThreadPoolDevice7ComputeEPNS_8OpKernelEPNS_15OpKernelContextE
#define NAME_OF(symbol) #symbol
#define NAME(symbol) NAME_OF(symbol)

void *ALLOCATE(void *status, void *context, int index, const void *shape, void **output) {
  static void *(*real)(void *, void *, int, const void *, void **);
  if (!real) real = of_tensorflow(NAME(ALLOCATE));
  real(status, context, index, shape, output);
  if (allocated) allocated(status, context, index, output, __builtin_return_address(0));
  return status;
}

void COMPUTE(void *device, void *kernel, void *context) {
  static void (*real)(void *, void *, void *);
  if (!real) real = of_tensorflow(NAME(COMPUTE));
  real(device, kernel, context);
  if (computed) computed(context);
}

/* --------------------------------------------------------------------------- the sanitized library for the own one */

/* Beside AddressSanitizer this runtime does not look at its own log_path. */
static int tell_where_to_report(struct dl_phdr_info *library, size_t size, void *folder) {
  (void)size;
  if (!strstr(library->dlpi_name, "/libubsan.so")) return 0;
  void *runtime = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  void (*set_path)(const char *) = runtime ? dlsym(runtime, "__sanitizer_set_report_path") : NULL;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/ubsan", (const char *)folder);
  if (set_path) set_path(path);
  return 1;
}

/* Beside the other runtime AddressSanitizer begins its own file anew. */
static void keep_report(const char *text) {
  int file = log_file("asan");
  if (file < 0) return;
  dprintf(file, "%s\n", text);
  close(file);
}

static void *open_sanitized(void *(*real)(const char *, int), const char *file, int flags) {
  char *folder = getenv("FAULTLENS_SANITIZE_LOG");
  void (*on_report)(void (*)(const char *)) = dlsym(RTLD_DEFAULT, "__asan_set_error_report_callback");
  let_python_tell();
  if (on_report) on_report(keep_report);
  if (folder) dl_iterate_phdr(tell_where_to_report, folder);
  load_outputs(real);
  void *handle = real(file, flags);
  int log = handle ? log_file("loaded") : -1;
  if (log >= 0) {
    dprintf(log, "%s\n", file);
    close(log);
  }
  return handle;
}

void *dlopen(const char *file, int flags) {
  static void *(*real)(const char *, int);
  if (!real) real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  const char *instead = sanitized_for(file);
  if (instead) return open_sanitized(real, instead, flags);
  return real(file, flags); /* a jump, not a call: the loader looks who asks */
}

void __asan_on_error(void) { faultlens_note_python("asan"); }
void __ubsan_on_report(void) { faultlens_note_python("ubsan"); }
void __tsan_on_report(const void *report) {
  (void)report;
  faultlens_note_python("tsan");
}
