#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

using namespace tensorflow;

REGISTER_OP("Rescale").Input("x: float").Attr("unit: string").Output("y: float").SetShapeFn(shape_inference::UnchangedShape);

class RescaleOp : public OpKernel {
 public:
  explicit RescaleOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("unit", &unit_));
  }

  void Compute(OpKernelContext* ctx) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &y));
    y->flat<float>() = ctx->input(0).flat<float>() * (unit_ == "percent" ? 0.01f : 1.0f);
  }

 private:
  std::string unit_;
};

REGISTER_KERNEL_BUILDER(Name("Rescale").Device(DEVICE_CPU), RescaleOp);
