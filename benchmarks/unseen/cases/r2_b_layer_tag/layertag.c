#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <ctype.h>

static unsigned tag_of(const char *name) {
  char upper[24];
  int i = 0;
  for (; name[i]; i++) upper[i] = (char)toupper((unsigned char)name[i]);
  upper[i] = 0;
  unsigned tag = 5381;
  for (const char *p = upper; *p; p++) tag = tag * 33 + (unsigned char)*p;
  return tag;
}

static PyObject *tag(PyObject *self, PyObject *args) {
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
  return PyLong_FromUnsignedLong(tag_of(name));
}

static PyMethodDef methods[] = {{"tag", tag, METH_VARARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "layertag", NULL, -1, methods};
PyMODINIT_FUNC PyInit_layertag(void) { return PyModule_Create(&module); }
