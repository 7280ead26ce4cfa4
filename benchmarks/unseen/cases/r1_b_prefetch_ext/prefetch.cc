#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <chrono>
#include <thread>

static PyObject *start(PyObject *, PyObject *args) {
  PyObject *callback;
  int count;
  if (!PyArg_ParseTuple(args, "Oi", &callback, &count)) return nullptr;
  Py_INCREF(callback);
  std::thread([callback, count] {
    for (int i = 0; i < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      PyObject *r = PyObject_CallFunction(callback, "i", i);
      Py_XDECREF(r);
    }
  }).detach();
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"start", start, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "prefetch", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_prefetch() { return PyModule_Create(&module); }
