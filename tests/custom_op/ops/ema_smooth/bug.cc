#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/platform/mutex.h"

using namespace tensorflow;

REGISTER_OP("EmaSmooth")
    .Input("values: float")
    .Attr("decay: float = 0.9")
    .Output("smoothed: float")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnchangedShape)
    .Doc("Exponential moving average over the calls. Another shape than last time starts anew.");

class EmaSmoothOp : public OpKernel {
 public:
  explicit EmaSmoothOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("decay", &decay_));
    OP_REQUIRES(ctx, decay_ >= 0 && decay_ <= 1, errors::InvalidArgument("decay must be in [0, 1]"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& values = ctx->input(0);
    Tensor* smoothed = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, values.shape(), &smoothed));
    auto now = values.flat<float>();
    auto out = smoothed->flat<float>();

    mutex_lock lock(mu_);
    if (history_.empty() || history_.back().shape() != values.shape()) {
      out = now;
    } else {
      out = history_.back().flat<float>() * decay_ + now * (1.0f - decay_);
    }
    history_.push_back(*smoothed);
  }

 private:
  float decay_;
  mutex mu_;
  std::vector<Tensor> history_ TF_GUARDED_BY(mu_);
};

REGISTER_KERNEL_BUILDER(Name("EmaSmooth").Device(DEVICE_CPU), EmaSmoothOp);
