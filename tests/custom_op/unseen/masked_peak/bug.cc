#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::InferenceContext;

REGISTER_OP("MaskedPeak")
    .Input("x: float")
    .Attr("with_mask: bool = true")
    .Output("peak: float")
    .Output("mask: bool")
    .SetShapeFn([](InferenceContext* c) {
      bool with_mask;
      TF_RETURN_IF_ERROR(c->GetAttr("with_mask", &with_mask));
      c->set_output(0, c->Scalar());
      c->set_output(1, with_mask ? c->input(0) : c->Vector(static_cast<int64_t>(0)));
      return absl::OkStatus();
    });

class MaskedPeakOp : public OpKernel {
 public:
  explicit MaskedPeakOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("with_mask", &with_mask_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    OP_REQUIRES(context, x.NumElements() > 0, errors::InvalidArgument("x must not be empty"));
    const auto values = x.flat<float>();
    float highest = values(0);
    for (int64_t i = 1; i < values.size(); ++i) highest = std::max(highest, values(i));

    Tensor* peak = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &peak));
    peak->scalar<float>()() = highest;

    if (!with_mask_) return;
    Tensor* mask = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(1, x.shape(), &mask));
    auto out = mask->flat<bool>();
    for (int64_t i = 0; i < values.size(); ++i) out(i) = values(i) == highest;
  }

 private:
  bool with_mask_;
};

REGISTER_KERNEL_BUILDER(Name("MaskedPeak").Device(DEVICE_CPU), MaskedPeakOp);
