#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using ::tensorflow::DEVICE_CPU;
using ::tensorflow::OpKernel;
using ::tensorflow::OpKernelConstruction;
using ::tensorflow::OpKernelContext;
using ::tensorflow::Tensor;
using ::tensorflow::errors::InvalidArgument;
using ::tensorflow::shape_inference::InferenceContext;
using ::tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("BlendLayers")
    .Input("front: float")
    .Input("back: float")
    .Input("opacity: float")
    .Output("blended: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle same, scalar;
      TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &same));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 0, &scalar));
      c->set_output(0, same);
      return absl::OkStatus();
    });

class BlendLayersOp : public OpKernel {
 public:
  explicit BlendLayersOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& front = context->input(0);
    const Tensor& back = context->input(1);
    const Tensor& opacity = context->input(2);

    if (opacity.dims() != 0) {
      context->CtxFailure(InvalidArgument("opacity must be a scalar"));
      return;
    }
    if (front.shape() != back.shape()) {
      context->CtxFailure(InvalidArgument("the layers must have one shape, but they have ",
                                          front.shape().DebugString(), " and ", back.shape().DebugString()));
      return;
    }
    const float share = opacity.scalar<float>()();
    if (!(share >= 0.0f && share <= 1.0f)) {
      context->CtxFailure(InvalidArgument("opacity must be in [0, 1], is ", share));
      return;
    }

    Tensor* blended = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, front.shape(), &blended));
    const float* above = front.flat<float>().data();
    const float* below = back.flat<float>().data();
    float* result = blended->flat<float>().data();
    const int64_t pixels = front.NumElements();
    for (int64_t i = 0; i < pixels; ++i) {
      result[i] = share * above[i] + (1.0f - share) * below[i];
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("BlendLayers").Device(DEVICE_CPU), BlendLayersOp);
