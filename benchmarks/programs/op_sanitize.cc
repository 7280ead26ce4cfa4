// Two ops that double their input; the second one goes one element too far.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

static absl::Status SameShape(shape_inference::InferenceContext* c) {
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}

REGISTER_OP("TwiceRight").Input("x: float").Output("y: float").SetShapeFn(SameShape);
REGISTER_OP("TwiceTooFar").Input("x: float").Output("y: float").SetShapeFn(SameShape);

class TwiceRightOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    auto in = x.flat<float>();
    auto out = y->flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) out(i) = 2 * in(i);
  }
};

class TwiceTooFarOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    const int64_t count = x.NumElements();
    const float* in = x.flat<float>().data();
    float* out = y->flat<float>().data();
    for (int64_t i = 0; i <= count; ++i) {
      out[i] = i < count ? 2 * in[i] : 0;  // guilty line
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("TwiceRight").Device(DEVICE_CPU), TwiceRightOp);
REGISTER_KERNEL_BUILDER(Name("TwiceTooFar").Device(DEVICE_CPU), TwiceTooFarOp);
