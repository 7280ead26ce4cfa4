#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

static PyObject *parse(PyObject *self, PyObject *args) {
  const char *text;
  if (!PyArg_ParseTuple(args, "s", &text)) return NULL;
  char *end;
  double value = strtod(text, &end);
  if (end == text) return NULL;
  return PyFloat_FromDouble(value);
}

static PyMethodDef methods[] = {{"parse", parse, METH_VARARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pricing", NULL, -1, methods};
PyMODINIT_FUNC PyInit_pricing(void) { return PyModule_Create(&module); }
