// An extension that hands out DLPack capsules, views without an owner, and keeps what it is given.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } Type;
typedef struct { void *data; Device device; int32_t ndim; Type type; int64_t *shape, *strides; uint64_t offset; } Tensor;
typedef struct Managed { Tensor tensor; void *context; void (*deleter)(struct Managed *); } Managed;

static void release_tensor(Managed *m) { free(m->tensor.data); free(m->tensor.shape); free(m); }
static void capsule_gone(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  Managed *m = PyCapsule_GetPointer(capsule, "dltensor");
  m->deleter(m);
}
static PyObject *export_zeros(PyObject *self, PyObject *length) {
  long n = PyLong_AsLong(length);
  Managed *m = calloc(1, sizeof *m);
  m->tensor = (Tensor){.data = calloc(n, 4), .device = {1, 0}, .ndim = 1, .type = {2, 32, 1}, .shape = malloc(8)};
  m->tensor.shape[0] = n;
  m->deleter = release_tensor;
  return PyCapsule_New(m, "dltensor", capsule_gone);
}
static PyObject *total(PyObject *self, PyObject *capsule) {
  Managed *m = PyCapsule_GetPointer(capsule, "dltensor");
  if (!m) return NULL;
  double sum = 0;
  for (int64_t i = 0; i < m->tensor.shape[0]; i++) sum += ((float *)m->tensor.data)[i];
  m->deleter(m);  // consumed, but the capsule keeps its name
  return PyFloat_FromDouble(sum);
}

static const double *weights; static Py_ssize_t count;
static PyObject *set_weights(PyObject *self, PyObject *array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_SIMPLE)) return NULL;
  weights = buffer.buf; count = buffer.len / 8;
  PyBuffer_Release(&buffer);
  Py_RETURN_NONE;
}
static PyObject *score(PyObject *self, PyObject *nothing) {
  double sum = 0;
  for (Py_ssize_t i = 0; i < count; i++) sum += weights[i];
  return PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {{"export_zeros", export_zeros, METH_O, 0}, {"total", total, METH_O, 0},
                                {"set_weights", set_weights, METH_O, 0}, {"score", score, METH_NOARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "capsules", 0, -1, methods};
PyMODINIT_FUNC PyInit_capsules(void) { return PyModule_Create(&module); }
