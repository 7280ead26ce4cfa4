#include <algorithm>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

using namespace tensorflow;

REGISTER_OP("ClipToRange")
    .Attr("T: {float, double}")
    .Attr("lo: float")
    .Attr("hi: float")
    .Input("x: T")
    .Output("y: T")
    .SetShapeFn(shape_inference::UnchangedShape);

class ClipToRangeOp : public OpKernel {
 public:
  explicit ClipToRangeOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("lo", &lo_));
    OP_REQUIRES_OK(context, context->GetAttr("hi", &hi_));
    OP_REQUIRES(context, lo_ <= hi_, errors::InvalidArgument("lo must not be above hi"));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    auto in = x.flat<float>();
    auto out = y->flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) out(i) = std::min(std::max(in(i), lo_), hi_);
  }

 private:
  float lo_;
  float hi_;
};

REGISTER_KERNEL_BUILDER(Name("ClipToRange").Device(DEVICE_CPU), ClipToRangeOp);
