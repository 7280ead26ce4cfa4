#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("SlidingMax")
    .Input("x: float")
    .Attr("window: int >= 1")
    .Attr("stride: int >= 1 = 1")
    .Output("peaks: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &x));
      int64_t window, stride;
      TF_RETURN_IF_ERROR(c->GetAttr("window", &window));
      TF_RETURN_IF_ERROR(c->GetAttr("stride", &stride));
      const DimensionHandle length = c->Dim(x, 0);
      if (!c->ValueKnown(length)) {
        c->set_output(0, c->Vector(c->UnknownDim()));
        return absl::OkStatus();
      }
      if (c->Value(length) < window) return errors::InvalidArgument("x is shorter than the window");
      c->set_output(0, c->Vector((c->Value(length) - window) / stride + 1));
      return absl::OkStatus();
    });

class SlidingMaxOp : public OpKernel {
 public:
  explicit SlidingMaxOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("window", &window_));
    OP_REQUIRES_OK(context, context->GetAttr("stride", &stride_));
    OP_REQUIRES(context, window_ >= 1 && stride_ >= 1,
                errors::InvalidArgument("window and stride must be positive"));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    OP_REQUIRES(context, x.dims() == 1, errors::InvalidArgument("x must be a vector"));
    const int64_t length = x.dim_size(0);
    OP_REQUIRES(context, length >= window_, errors::InvalidArgument("x is shorter than the window"));
    const int64_t count = (length - window_) / stride_ + 1;

    Tensor* peaks = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({count}), &peaks));
    const float* in = x.vec<float>().data();
    auto out = peaks->vec<float>();
    for (int64_t i = 0; i < count; ++i) {
      const float* first = in + i * stride_;
      out(i) = *std::max_element(first, first + window_);
    }
  }

 private:
  int64_t window_;
  int64_t stride_;
};

REGISTER_KERNEL_BUILDER(Name("SlidingMax").Device(DEVICE_CPU), SlidingMaxOp);
