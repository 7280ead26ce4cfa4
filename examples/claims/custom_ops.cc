// Four custom ops with one classic bug each, written against TensorFlow's C interface, which compiles in a second.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_tensor.h"

namespace {

struct Status {
  TF_Status* self = TF_NewStatus();
  ~Status() { TF_DeleteStatus(self); }
  operator TF_Status*() { return self; }
};

struct Tensor {
  TF_Tensor* self = nullptr;
  ~Tensor() { if (self) TF_DeleteTensor(self); }
  float* data() { return static_cast<float*>(TF_TensorData(self)); }
  int64_t size() { return TF_TensorElementCount(self); }
};

void input_of(TF_OpKernelContext* ctx, Tensor& x) {
  Status status;
  TF_GetInput(ctx, 0, &x.self, status);
}

void output_like(TF_OpKernelContext* ctx, Tensor& x, Tensor& y) {
  Status status;
  int64_t dims[] = {x.size()};
  y.self = TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, 1, x.size() * sizeof(float), status);
}

void overflow(void*, TF_OpKernelContext* ctx) {  // writes 64 numbers more than there is room for
  Tensor x, y;
  input_of(ctx, x);
  output_like(ctx, x, y);
  float* out = y.data();
  for (int64_t i = 0, room = x.size(); i < room + 64; ++i) out[i] = 1e30f;
  std::fprintf(stderr, "the op has done its work\n");
}

void exception(void*, TF_OpKernelContext* ctx) {  // looks up what is not there
  Tensor x, y;
  input_of(ctx, x);
  output_like(ctx, x, y);
  std::vector<float> table = {1, 2, 3};
  for (int64_t i = 0; i < x.size(); ++i) y.data()[i] = table.at(i);
}

void use_after_free(void*, TF_OpKernelContext* ctx) {  // remembers the previous batch by its address
  static float* previous = nullptr;
  Tensor x, y;
  input_of(ctx, x);
  output_like(ctx, x, y);
  if (previous) std::memcpy(y.data(), previous, x.size() * sizeof(float));
  previous = x.data();
}

void no_output(void*, TF_OpKernelContext*) {}  // forgets its output

void add(const char* name, void (*compute)(void*, TF_OpKernelContext*)) {
  Status status;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, [](TF_ShapeInferenceContext*, TF_Status*) {});
  TF_RegisterOpDefinition(op, status);
  TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", nullptr, compute, nullptr), status);
}

__attribute__((constructor)) void register_all() {
  add("BugOverflow", overflow);
  add("BugException", exception);
  add("BugUseAfterFree", use_after_free);
  add("BugNoOutput", no_output);
}

}  // namespace
