/* Puts Python code of ours (the folder inside/) into a Python program that imports TensorFlow or Keras.
 *
 * Nothing in the environment, sys.path or sys.argv tells Python to do so: the import system opens the package's
 * __init__ file, and that call passes through the agent. (A hook for Python's audit events would be the official
 * entry, but makes every id() and sys._getframe() of every program slower.) At that moment the thread has given up
 * the GIL, takes it back for us, runs our code, and only then reads the file. Programs that import neither package are
 * never touched.
 *
 * Python's functions are looked up by name: one agent serves all versions, and programs that are not Python.
 */
#define _GNU_SOURCE
#include "inside.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct object PyObject;

/* PyMethodDef, whose layout is part of Python's stable ABI. */
struct method {
    const char *name;
    void *function;
    int flags;
    const char *doc;
};
#define METH_VARARGS 1
#define METH_KEYWORDS 2
#define METH_NOARGS 4
#define METH_O 8
#define PyBUF_WRITE 0x200
#define Py_file_input 257

#define PYTHON(X)                                                                                      \
    X(int, Py_IsInitialized, (void))                                                                   \
    X(void *, PyGILState_GetThisThreadState, (void))                                                   \
    X(int, PyGILState_Ensure, (void))                                                                  \
    X(void, PyGILState_Release, (int))                                                                 \
    X(void *, PyInterpreterState_Get, (void))                                                          \
    X(void *, PyInterpreterState_Main, (void))                                                         \
    X(void *, PyThreadState_Get, (void))                                                               \
    X(PyObject *, PyThreadState_GetFrame, (void *))                                                    \
    X(PyObject *, PyFrame_GetBack, (PyObject *))                                                       \
    X(PyObject *, PyFrame_GetCode, (PyObject *))                                                       \
    X(PyObject *, PyEval_GetBuiltins, (void))                                                          \
    X(PyObject *, PyRun_StringFlags, (const char *, int, PyObject *, PyObject *, void *))              \
    X(PyObject *, PyDict_New, (void))                                                                  \
    X(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *))                               \
    X(PyObject *, PyDict_GetItemWithError, (PyObject *, PyObject *))                                   \
    X(int, PyList_Append, (PyObject *, PyObject *))                                                    \
    X(PyObject *, PyTuple_GetItem, (PyObject *, ssize_t))                                              \
    X(PyObject *, PyTuple_Pack, (ssize_t, ...))                                                        \
    X(PyObject *, PyLong_FromVoidPtr, (void *))                                                        \
    X(PyObject *, PyLong_FromLong, (long))                                                             \
    X(long, PyLong_AsLong, (PyObject *))                                                               \
    X(PyObject *, PyUnicode_InternFromString, (const char *))                                          \
    X(PyObject *, PyObject_GetAttr, (PyObject *, PyObject *))                                          \
    X(int, PyFrame_GetLineNumber, (PyObject *))                                                        \
    X(PyObject *, PyUnicode_DecodeFSDefault, (const char *))                                           \
    X(PyObject *, PyMemoryView_FromMemory, (char *, ssize_t, int))                                     \
    X(PyObject *, PyCFunction_NewEx, (struct method *, PyObject *, PyObject *))                        \
    X(PyObject *, PyInstanceMethod_New, (PyObject *))                                                  \
    X(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *))                                 \
    X(PyObject *, PyObject_CallFunctionObjArgs, (PyObject *, ...))                                     \
    X(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                                      \
    X(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                                       \
    X(int, PyErr_ExceptionMatches, (PyObject *))                                                       \
    X(void, PyErr_SetInterrupt, (void))                                                                \
    X(void, PyErr_Clear, (void))                                                                       \
    X(int, Py_AddPendingCall, (int (*)(void *), void *))                                               \
    X(void, Py_IncRef, (PyObject *))                                                                   \
    X(void, Py_DecRef, (PyObject *))

static struct {
#define DECLARE(type, name, arguments) type(*name) arguments;
    PYTHON(DECLARE)
    int (*PyFrame_GetLasti)(PyObject *); /* since 3.11, where finding the line takes longer */
    PyObject *none, **keyboard_interrupt;
} python;

/* False where this is not Python, or one too old (before 3.9). */
static bool find_python(void) {
    if (python.none) return true;
#define LOOK_UP(type, name, arguments) \
    if (!(python.name = (type(*) arguments)dlsym(RTLD_DEFAULT, #name))) return false;
    PYTHON(LOOK_UP)
    python.PyFrame_GetLasti = (int (*)(PyObject *))dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
    python.keyboard_interrupt = dlsym(RTLD_DEFAULT, "PyExc_KeyboardInterrupt");
    return python.keyboard_interrupt && (python.none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
}

/* ----------------------------------------------------------------------------- what our Python code needs */

static struct fl_area *own_area; /* NULL in programs that load the agent by themselves */

static bool look_now(struct fl_area *area);
static bool take_request(struct fl_area *area);

/* chain(original, before, after) is a function that calls all three. Being made in C, it leaves no frame in the
 * program's tracebacks. before() gets the arguments; after(result, arguments) the tuple of positional ones, and None
 * for the result if an exception was raised. An exception of theirs is let out: theirs catch their own, so it comes
 * from a signal handler of the program. */
static PyObject *call_chained(PyObject *parts, PyObject *arguments, PyObject *keywords) {
    PyObject *original = python.PyTuple_GetItem(parts, 0);
    PyObject *before = python.PyTuple_GetItem(parts, 1), *after = python.PyTuple_GetItem(parts, 2);
    if (own_area && take_request(own_area) && !look_now(own_area)) return NULL;
    if (before != python.none) {
        PyObject *ignored = python.PyObject_Call(before, arguments, keywords);
        if (!ignored) return NULL;
        python.Py_DecRef(ignored);
    }
    PyObject *result = python.PyObject_Call(original, arguments, keywords);
    if (after == python.none) return result;
    PyObject *type, *value, *traceback;
    python.PyErr_Fetch(&type, &value, &traceback);
    PyObject *ignored =
        python.PyObject_CallFunctionObjArgs(after, result ? result : python.none, arguments, (PyObject *)NULL);
    if (ignored) {
        python.Py_DecRef(ignored);
        python.PyErr_Restore(type, value, traceback);
        return result;
    }
    python.Py_DecRef(type); /* these may be NULL */
    python.Py_DecRef(value);
    python.Py_DecRef(traceback);
    python.Py_DecRef(result);
    return NULL;
}

static struct method chained = {"chained", (void *)call_chained, METH_VARARGS | METH_KEYWORDS, NULL};

/* Whose a piece of code is: decided once for each, in Python. */
enum owner {
    LIBRARY = 0,
    USER = 1,
    NOT_ASKED = 2, /* what it makes is of no interest, whoever called for it */
};

#define CODES 8192
#define MAX_PROBES 16
struct known_code {
    PyObject *code; /* a reference: its address is not used again */
    long owner;
};
static struct known_code *codes; /* mapped when Python code of ours asks first: other programs have no need of it */

static void map_codes(void) {
    void *memory = mmap(NULL, CODES * sizeof *codes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) codes = memory;
}

static long ask_owner(PyObject *code, PyObject *decide) {
    PyObject *answer = python.PyObject_CallFunctionObjArgs(decide, code, (PyObject *)NULL);
    long owner = answer ? python.PyLong_AsLong(answer) : LIBRARY;
    python.PyErr_Clear();
    python.Py_DecRef(answer);
    return owner;
}

static long owner_of(PyObject *code, PyObject *decide) {
    if (!codes) map_codes();
    if (!codes) return ask_owner(code, decide);
    size_t start = ((uintptr_t)code >> 4) % CODES, at = start;
    for (size_t probe = 0; probe < MAX_PROBES; probe++) {
        at = (start + probe) % CODES;
        if (codes[at].code == code) return codes[at].owner;
        if (!codes[at].code) break;
    }
    long owner = ask_owner(code, decide);
    PyObject *before = codes[at].code;
    python.Py_IncRef(code);
    codes[at].code = code;
    codes[at].owner = owner;
    python.Py_DecRef(before);
    return owner;
}

#define MAX_FRAMES 1000

/* The innermost frame of the user's own code on the stack of this thread; NULL: none. */
static PyObject *find_user_frame(PyObject *decide) {
    PyObject *frame = python.PyThreadState_GetFrame(python.PyThreadState_Get());
    for (int depth = 0; frame && depth < MAX_FRAMES; depth++) {
        PyObject *code = python.PyFrame_GetCode(frame);
        long owner = owner_of(code, decide);
        python.Py_DecRef(code);
        if (owner == USER) return frame;
        PyObject *outer = owner == LIBRARY ? python.PyFrame_GetBack(frame) : NULL;
        python.Py_DecRef(frame);
        frame = outer;
    }
    python.Py_DecRef(frame);
    return NULL;
}

static PyObject *user_frame(PyObject *decide, PyObject *ignored) {
    (void)ignored;
    PyObject *frame = find_user_frame(decide);
    if (frame) return frame;
    python.Py_IncRef(python.none);
    return python.none;
}

static struct method user_frame_method = {"user_frame", (void *)user_frame, METH_NOARGS, NULL};

/* frame_finder(decide) is a function that gives the innermost frame of the user's, or None; decide(code) gives an
 * enum owner. */
static PyObject *frame_finder(PyObject *self, PyObject *decide) {
    (void)self;
    return python.PyCFunction_NewEx(&user_frame_method, decide, NULL);
}

/* The list of the nodes that this instruction has made in the graph: a borrowed reference, NULL if there is none. */
static PyObject *known_nodes(PyObject *graph, PyObject *frame) {
    static PyObject *attribute;
    if (!attribute) attribute = python.PyUnicode_InternFromString("_faultlens_nodes");
    PyObject *by_place = python.PyObject_GetAttr(graph, attribute);
    if (!by_place) return NULL;
    PyObject *code = python.PyFrame_GetCode(frame);
    int at = python.PyFrame_GetLasti ? python.PyFrame_GetLasti(frame) : python.PyFrame_GetLineNumber(frame);
    PyObject *address = python.PyLong_FromVoidPtr(code), *position = python.PyLong_FromLong(at);
    PyObject *place = address && position ? python.PyTuple_Pack(2, address, position) : NULL;
    PyObject *nodes = place ? python.PyDict_GetItemWithError(by_place, place) : NULL;
    python.Py_DecRef(place);
    python.Py_DecRef(position);
    python.Py_DecRef(address);
    python.Py_DecRef(code);
    python.Py_DecRef(by_place); /* the graph has it */
    return nodes;
}

static bool add_name(PyObject *nodes, PyObject *op) {
    static PyObject *attribute;
    if (!attribute) attribute = python.PyUnicode_InternFromString("name");
    PyObject *name = python.PyObject_GetAttr(op, attribute);
    bool added = name && python.PyList_Append(nodes, name) == 0;
    python.Py_DecRef(name);
    return added;
}

/* Stands in for a method of graphs that gets every node: called for thousands of them while a function is traced. The
 * parts: what it stands in for; decide(); and unknown(graph, node, frame), for the first node of an instruction. */
static PyObject *record_node(PyObject *parts, PyObject *arguments, PyObject *keywords) {
    PyObject *result = python.PyObject_Call(python.PyTuple_GetItem(parts, 0), arguments, keywords);
    PyObject *graph = result ? python.PyTuple_GetItem(arguments, 0) : NULL;
    PyObject *op = graph ? python.PyTuple_GetItem(arguments, 1) : NULL;
    if (!result) return NULL;
    PyObject *frame = op ? find_user_frame(python.PyTuple_GetItem(parts, 1)) : NULL;
    PyObject *nodes = frame ? known_nodes(graph, frame) : NULL;
    if (!nodes || !add_name(nodes, op)) {
        python.PyErr_Clear();
        PyObject *unknown = python.PyTuple_GetItem(parts, 2);
        PyObject *done = frame ? python.PyObject_CallFunctionObjArgs(unknown, graph, op, frame, (PyObject *)NULL) : NULL;
        if (frame && !done) { /* an exception of a signal handler, as above */
            python.Py_DecRef(result);
            result = NULL;
        }
        python.Py_DecRef(done);
    }
    python.Py_DecRef(frame);
    return result;
}

static struct method record_node_method = {"record_node", (void *)record_node, METH_VARARGS | METH_KEYWORDS, NULL};

static PyObject *method_of(struct method *definition, PyObject *parts) {
    PyObject *function = python.PyCFunction_NewEx(definition, parts, NULL);
    PyObject *method = function ? python.PyInstanceMethod_New(function) : NULL; /* becomes a method in a class */
    python.Py_DecRef(function);
    return method;
}

static PyObject *chain(PyObject *self, PyObject *parts) {
    (void)self;
    return method_of(&chained, parts);
}

static PyObject *node_recorder(PyObject *self, PyObject *parts) {
    (void)self;
    return method_of(&record_node_method, parts);
}

static struct method chain_method = {"chain", (void *)chain, METH_VARARGS, NULL};
static struct method frame_finder_method = {"frame_finder", (void *)frame_finder, METH_O, NULL};
static struct method node_recorder_method = {"node_recorder", (void *)node_recorder, METH_VARARGS, NULL};

static void put(PyObject *dictionary, const char *name, PyObject *value) {
    if (value) python.PyDict_SetItemString(dictionary, name, value);
    python.Py_DecRef(value);
}

/* For programs that load the agent by themselves (faultlens.install()); the caller holds the GIL. */
EXPORT PyObject *faultlens_tools(void) {
    PyObject *tools = find_python() ? python.PyDict_New() : NULL;
    if (!tools) return NULL;
    put(tools, "chain", python.PyCFunction_NewEx(&chain_method, NULL, NULL));
    put(tools, "frame_finder", python.PyCFunction_NewEx(&frame_finder_method, NULL, NULL));
    put(tools, "node_recorder", python.PyCFunction_NewEx(&node_recorder_method, NULL, NULL));
    return tools;
}

/* ------------------------------------------------------------------------------- the page for its progress */

static void *progress_page; /* where our Python code writes; what lies behind it changes with a fork */

static struct fl_progress *claim_progress(struct fl_area *area) {
    int32_t self = getpid();
    for (int taking_over = 0; taking_over < 2; taking_over++)
        for (int i = 0; i < FL_PROGRESS; i++) {
            struct fl_progress *progress = &area->progress[i];
            int32_t owner = __atomic_load_n(&progress->pid, __ATOMIC_ACQUIRE);
            bool free = taking_over ? !owner || (kill(owner, 0) && errno == ESRCH) : owner == self;
            if (free && __atomic_compare_exchange_n(&progress->pid, &owner, self, false, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_RELAXED)) {
                memset(progress->data, 0, sizeof progress->data);
                return progress;
            }
        }
    return NULL;
}

/* Shared memory is mapped a second time by "moving" none of its bytes: mremap(2). */
static PyObject *own_progress(struct fl_area *area) {
    if (!progress_page) {
        struct fl_progress *progress = claim_progress(area);
        void *page = progress ? mremap(progress, 0, sizeof *progress, MREMAP_MAYMOVE) : MAP_FAILED;
        if (page == MAP_FAILED) return NULL;
        progress_page = page;
    }
    return python.PyMemoryView_FromMemory(progress_page, FL_PROGRESS_BYTES, PyBUF_WRITE);
}

void take_own_progress(struct fl_area *area) {
    if (!progress_page) return;
    struct fl_progress *progress = claim_progress(area);
    if (progress && mremap(progress, 0, sizeof *progress, MREMAP_MAYMOVE | MREMAP_FIXED, progress_page) != MAP_FAILED)
        return;
    mmap(progress_page, FL_PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* --------------------------------------------------------------------------------------------- the way in */

static const char *const packages[] = {"tensorflow", "keras", "tf_keras"};

/* The package whose __init__ file this is, source or compiled; NULL for any other file. */
static const char *package_of(const char *path) {
    const char *file = strrchr(path, '/');
    if (!file || strncmp(file, "/__init__.", 10)) return NULL;
    static const char cache[] = "/__pycache__";
    if ((size_t)(file - path) >= sizeof cache - 1 && !strncmp(file - (sizeof cache - 1), cache, sizeof cache - 1))
        file -= sizeof cache - 1;
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++) {
        size_t length = strlen(packages[i]);
        const char *start = file - length;
        if (start >= path && !strncmp(start, packages[i], length) && (start == path || start[-1] == '/'))
            return packages[i];
    }
    return NULL;
}

#define LOAD                                                                                              \
    "import sys\n"                                                                                        \
    "module = sys.modules.get('_faultlens_inside')\n"                                                     \
    "if module is None:\n"                                                                                \
    "    from importlib.util import module_from_spec, spec_from_file_location\n"                          \
    "    spec = spec_from_file_location(\n"                                                               \
    "        '_faultlens_inside', folder + '/__init__.py', submodule_search_locations=[folder])\n"        \
    "    module = sys.modules[spec.name] = module_from_spec(spec)\n"                                      \
    "    spec.loader.exec_module(module)\n"

static const char bootstrap[] = LOAD
    "if not module.started():\n"
    "    module.start(chain, frame_finder, node_recorder, notes, progress)\n"
    "module.importing(package)\n";

/* Its failures are forgotten; an interrupt is not ours. */
static bool run_ours(const char *code, PyObject *names) {
    PyObject *done = python.PyRun_StringFlags(code, Py_file_input, names, names, NULL);
    if (!done && python.PyErr_ExceptionMatches(*python.keyboard_interrupt)) python.PyErr_SetInterrupt();
    if (!done) python.PyErr_Clear();
    python.Py_DecRef(done);
    return done != NULL;
}

static void run_bootstrap(struct fl_area *area, const char *package) {
    PyObject *names = faultlens_tools();
    if (!names) return;
    own_area = area;
    python.PyDict_SetItemString(names, "__builtins__", python.PyEval_GetBuiltins());
    put(names, "folder", python.PyUnicode_DecodeFSDefault(area->inside));
    put(names, "notes", python.PyUnicode_DecodeFSDefault(area->notes));
    put(names, "package", python.PyUnicode_DecodeFSDefault(package));
    PyObject *page = own_progress(area);
    python.PyDict_SetItemString(names, "progress", page ? page : python.none);
    python.Py_DecRef(page);
    run_ours(bootstrap, names);
    python.Py_DecRef(names);
}

void after_open(struct fl_area *area, const char *path) {
    const char *package = path && *area->inside ? package_of(path) : NULL;
    if (!package) return;
    int saved_errno = errno;
    /* Only on Python's own threads: somebody who holds the GIL may be waiting for another one. */
    if (find_python() && python.Py_IsInitialized() && python.PyGILState_GetThisThreadState()) {
        int state = python.PyGILState_Ensure();
        if (python.PyInterpreterState_Get() == python.PyInterpreterState_Main()) {
            PyObject *type, *value, *traceback;
            python.PyErr_Fetch(&type, &value, &traceback);
            run_bootstrap(area, package);
            python.PyErr_Restore(type, value, traceback); /* and ours, if any, is forgotten */
        }
        python.PyGILState_Release(state);
    }
    errno = saved_errno;
}

/* ------------------------------------------------------------------------------- a look at its own memory */

/* The caller holds the GIL. Programs without TensorFlow meet our code here for the first time. False: an exception is
 * set, which is not ours: a signal handler of the program raised it meanwhile. */
static bool look_now(struct fl_area *area) {
    PyObject *names = python.PyDict_New();
    if (!names) {
        python.PyErr_Clear();
        return true;
    }
    python.PyDict_SetItemString(names, "__builtins__", python.PyEval_GetBuiltins());
    put(names, "folder", python.PyUnicode_DecodeFSDefault(area->inside));
    put(names, "notes", python.PyUnicode_DecodeFSDefault(area->notes));
    bool well = true;
    if (run_ours(LOAD, names)) {
        PyObject *done = python.PyRun_StringFlags("module.look(notes)\n", Py_file_input, names, names, NULL);
        well = done != NULL;
        python.Py_DecRef(done);
    }
    python.Py_DecRef(names);
    return well;
}

static int look_pending(void *area) { return look_now(area) ? 0 : -1; }

/* Whoever takes it answers it: once. */
static bool take_request(struct fl_area *area) {
    int32_t asked = __atomic_load_n(&area->look_at, __ATOMIC_RELAXED);
    return asked && asked == getpid() &&
           __atomic_compare_exchange_n(&area->look_at, &asked, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* On any thread, with or without the GIL: Python's main thread does it between two instructions, as it runs handlers
 * of signals. */
void look_soon(struct fl_area *area) {
    int saved_errno = errno;
    if (*area->inside && take_request(area) && find_python() && python.Py_IsInitialized())
        python.Py_AddPendingCall(look_pending, area);
    errno = saved_errno;
}
