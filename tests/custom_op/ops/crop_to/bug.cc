#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
namespace si = ::tensorflow::shape_inference;

static Status CropShape(si::InferenceContext* c) {
  si::ShapeHandle image;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &image));
  std::vector<int32> size;
  TF_RETURN_IF_ERROR(c->GetAttr("size", &size));
  if (size.size() != 2 || size[0] < 0 || size[1] < 0) return errors::InvalidArgument("size must be [height, width]");
  c->set_output(0, c->MakeShape({size[1], size[0], c->Dim(image, 2)}));
  return absl::OkStatus();
}

REGISTER_OP("CropTo").Input("image: float").Attr("size: list(int) >= 2").Output("crop: float").SetShapeFn(CropShape);

// The middle of a picture.
class CropToOp : public OpKernel {
 public:
  explicit CropToOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    std::vector<int32> size;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("size", &size));
    OP_REQUIRES(ctx, size.size() == 2, errors::InvalidArgument("size must be [height, width]"));
    height_ = size[0];
    width_ = size[1];
    OP_REQUIRES(ctx, height_ >= 0 && width_ >= 0, errors::InvalidArgument("size must not be negative"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& image = ctx->input(0);
    OP_REQUIRES(ctx, image.dims() == 3, errors::InvalidArgument("image must be [height, width, channels]"));
    OP_REQUIRES(ctx, height_ <= image.dim_size(0) && width_ <= image.dim_size(1),
                errors::InvalidArgument("the crop is larger than the image"));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({height_, width_, image.dim_size(2)}, &shape));
    Tensor* crop = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &crop));
    if (shape.num_elements() == 0) return;
    const Eigen::DSizes<Eigen::DenseIndex, 3> from((image.dim_size(0) - height_) / 2, (image.dim_size(1) - width_) / 2,
                                                   0);
    const Eigen::DSizes<Eigen::DenseIndex, 3> extent(height_, width_, image.dim_size(2));
    crop->tensor<float, 3>() = image.tensor<float, 3>().slice(from, extent);
  }

 private:
  int64_t height_ = 0;
  int64_t width_ = 0;
};
REGISTER_KERNEL_BUILDER(Name("CropTo").Device(DEVICE_CPU), CropToOp);
