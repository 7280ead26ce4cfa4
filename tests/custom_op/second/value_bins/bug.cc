#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("ValueBins")
    .Input("values: float")
    .Output("bins: int64")
    .Attr("number: int >= 1 = 10")
    .SetShapeFn([](InferenceContext* c) {
      int64_t number;
      TF_RETURN_IF_ERROR(c->GetAttr("number", &number));
      c->set_output(0, c->Vector(number));
      return absl::OkStatus();
    });

// How many values, all of them between 0 and 1, lie in each of so many equal intervals.
class ValueBinsOp : public OpKernel {
 public:
  explicit ValueBinsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("number", &number_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& values = ctx->input(0);
    Tensor* bins = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({number_}), &bins));
    auto out = bins->vec<int64_t>();
    out.setZero();
    auto in = values.flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) {
      const float value = in(i);
      if (value < 0.0f || value >= 1.0f) {
        ctx->CtxFailure(errors::InvalidArgument("values must be in [0, 1)"));
        return;
      }
      const int64_t bin = static_cast<int64_t>(value * number_);
      ++out(std::min(bin, number_ - 1));
    }
  }

 private:
  int64_t number_;
};

REGISTER_KERNEL_BUILDER(Name("ValueBins").Device(DEVICE_CPU), ValueBinsOp);

}  // namespace
