#include <cmath>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("ClipRows")
    .Input("rows: T")
    .Attr("T: {half, float, double}")
    .Attr("limit: float = 1.0")
    .Output("clipped: T")
    .SetShapeFn(shape_inference::UnchangedShape);

class ClipRowsOp : public OpKernel {
 public:
  explicit ClipRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("limit", &limit_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& in = ctx->input(0);
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, in.shape(), &out));
    auto rows = in.flat_inner_dims<float>();
    auto dst = out->flat_inner_dims<float>();
    for (int64_t r = 0; r < rows.dimension(0); ++r) {
      float norm = 0;
      for (int64_t c = 0; c < rows.dimension(1); ++c) norm += rows(r, c) * rows(r, c);
      const float scale = norm > limit_ * limit_ ? limit_ / std::sqrt(norm) : 1.0f;
      for (int64_t c = 0; c < rows.dimension(1); ++c) dst(r, c) = rows(r, c) * scale;
    }
  }

 private:
  float limit_;
};

REGISTER_KERNEL_BUILDER(Name("ClipRows").Device(DEVICE_CPU), ClipRowsOp);
