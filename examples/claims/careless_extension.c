/* An extension that goes on although NumPy could not be imported for it: its table of NumPy functions is empty. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

PyObject *make_array(void) {
  npy_intp count = 3;
  return PyArray_SimpleNew(1, &count, NPY_FLOAT);
}
