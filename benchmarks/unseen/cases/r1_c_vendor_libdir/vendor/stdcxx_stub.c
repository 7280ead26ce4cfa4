/* camera SDK runtime, reduced C++ support for its own firmware loader */
const char *sdk_runtime_version(void) { return "2.1"; }
void *_Znwm(unsigned long n) { return __builtin_malloc(n); }
void _ZdlPv(void *p) { __builtin_free(p); }
