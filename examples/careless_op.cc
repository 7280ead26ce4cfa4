// An op with mistakes that crash programs: try `faultlens op check examples/careless_op.cc`.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("PickRows")
    .Input("table: float")
    .Input("rows: int32")
    .Output("picked: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Matrix(c->NumElements(c->input(1)), c->Dim(c->input(0), 1)));
      return absl::OkStatus();
    });

class PickRowsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    auto table = ctx->input(0).matrix<float>();
    auto rows = ctx->input(1).flat<int32>();
    Tensor* picked = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, {rows.size(), table.dimension(1)}, &picked));
    auto out = picked->matrix<float>();
    for (int64_t i = 0; i < rows.size(); ++i) {
      for (int64_t j = 0; j < table.dimension(1); ++j) out(i, j) = table(rows(i), j);
    }
    ++calls_;
  }

 private:
  int64_t calls_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("PickRows").Device(DEVICE_CPU), PickRowsOp);
