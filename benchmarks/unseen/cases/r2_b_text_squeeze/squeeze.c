#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

static PyObject *squeeze(PyObject *self, PyObject *args) {
  const char *text;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &text, &size)) return NULL;
  char *out = PyMem_Malloc(size + 1);
  Py_ssize_t n = 0;
  for (Py_ssize_t i = 0; i < size; i++)
    if (text[i] != ' ' || (n && out[n - 1] != ' ')) out[n++] = text[i];
  PyObject *result = PyBytes_FromStringAndSize(out, n);
  free(out);
  return result;
}

static PyMethodDef methods[] = {{"squeeze", squeeze, METH_VARARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "squeeze", NULL, -1, methods};
PyMODINIT_FUNC PyInit_squeeze(void) { return PyModule_Create(&module); }
