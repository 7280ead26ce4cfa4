#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("PoolVectors")
    .Input("table: float")
    .Input("ids: int64")
    .Output("pooled: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Matrix(c->Dim(c->input(1), 0), c->Dim(c->input(0), 1)));
      return absl::OkStatus();
    });

class PoolVectorsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    auto table = ctx->input(0).matrix<float>();
    auto ids = ctx->input(1).matrix<int64_t>();
    const int64_t width = table.dimension(1);
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({ids.dimension(0), width}), &out));
    auto pooled = out->matrix<float>();
    for (int64_t r = 0; r < ids.dimension(0); ++r)
      for (int64_t k = 0; k < width; ++k) {
        float sum = 0;
        for (int64_t i = 0; i < ids.dimension(1); ++i) sum += table(ids(r, i), k);
        pooled(r, k) = sum / ids.dimension(1);
      }
  }
};

REGISTER_KERNEL_BUILDER(Name("PoolVectors").Device(DEVICE_CPU), PoolVectorsOp);
