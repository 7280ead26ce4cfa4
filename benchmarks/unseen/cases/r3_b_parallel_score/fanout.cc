#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <thread>
#include <vector>

// Calls fn(item) for each item of a list, in several threads, and returns the results.
static PyObject *map(PyObject *, PyObject *args) {
  PyObject *fn, *items;
  int workers;
  if (!PyArg_ParseTuple(args, "OO!i", &fn, &PyList_Type, &items, &workers)) return nullptr;
  const Py_ssize_t count = PyList_GET_SIZE(items);
  std::vector<PyObject *> results(count, nullptr);
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      for (Py_ssize_t i = w; i < count; i += workers) {
        PyGILState_STATE state = PyGILState_Ensure();
        results[i] = PyObject_CallOneArg(fn, PyList_GET_ITEM(items, i));
        PyGILState_Release(state);
      }
    });
  for (auto &t : threads) t.join();
  PyObject *out = PyList_New(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!results[i]) {
      Py_INCREF(Py_None);
      results[i] = Py_None;
    }
    PyList_SET_ITEM(out, i, results[i]);
  }
  return out;
}

static PyMethodDef methods[] = {{"map", map, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "fanout", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_fanout() { return PyModule_Create(&module); }
