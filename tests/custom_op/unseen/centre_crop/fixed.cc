#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("CentreCrop")
    .Input("image: float")
    .Input("size: int32")
    .Output("cropped: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle image, size;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &image));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &size));
      c->set_output(0, c->MakeShape({c->UnknownDim(), c->UnknownDim(), c->Dim(image, 2)}));
      return absl::OkStatus();
    });

class CentreCropOp : public OpKernel {
 public:
  explicit CentreCropOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& image = context->input(0);
    const Tensor& size = context->input(1);
    if (image.dims() != 3) {
      context->CtxFailure(errors::InvalidArgument("image must have rank 3, got ", image.dims()));
      return;
    }
    if (size.dims() != 1 || size.NumElements() != 2) {
      context->CtxFailure(errors::InvalidArgument("size must be [height, width]"));
      return;
    }
    const int64_t height = size.vec<int32>()(0);
    const int64_t width = size.vec<int32>()(1);
    if (height < 0 || height > image.dim_size(0) || width < 0 || width > image.dim_size(1)) {
      context->CtxFailure(errors::InvalidArgument("cannot crop ", height, "x", width, " out of ",
                                                  image.shape().DebugString()));
      return;
    }
    const int64_t channels = image.dim_size(2);

    Tensor* cropped = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({height, width, channels}), &cropped));
    const int64_t top = (image.dim_size(0) - height) / 2;
    const int64_t left = (image.dim_size(1) - width) / 2;
    auto in = image.tensor<float, 3>();
    auto out = cropped->tensor<float, 3>();
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t c = 0; c < channels; ++c) out(y, x, c) = in(top + y, left + x, c);
  }
};

REGISTER_KERNEL_BUILDER(Name("CentreCrop").Device(DEVICE_CPU), CentreCropOp);
