#include <algorithm>
#include <limits>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("RoiMaxPool")
    .Input("features: float")
    .Input("rois: int32")
    .Attr("pooled_size: int >= 1")
    .Output("pooled: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle features, rois;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &features));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &rois));
      DimensionHandle four;
      TF_RETURN_IF_ERROR(c->WithValue(c->Dim(rois, 1), 4, &four));
      int64_t size;
      TF_RETURN_IF_ERROR(c->GetAttr("pooled_size", &size));
      c->set_output(0, c->MakeShape({c->Dim(rois, 0), c->MakeDim(size), c->MakeDim(size), c->Dim(features, 2)}));
      return absl::OkStatus();
    })
    .Doc("Max-pools each region [y0, x0, y1, x1) of an image into a square of cells.");

class RoiMaxPoolOp : public OpKernel {
 public:
  explicit RoiMaxPoolOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("pooled_size", &size_));
    OP_REQUIRES(context, size_ >= 1 && size_ <= 256,
                errors::InvalidArgument("pooled_size must be in [1, 256], got ", size_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& features = context->input(0);
    const Tensor& rois = context->input(1);
    OP_REQUIRES(context, features.dims() == 3,
                errors::InvalidArgument("features must be [height, width, channels], got ",
                                        features.shape().DebugString()));
    OP_REQUIRES(context, rois.dims() == 2 && rois.dim_size(1) == 4,
                errors::InvalidArgument("rois must have four columns, got ", rois.shape().DebugString()));
    const int64_t height = features.dim_size(0);
    const int64_t width = features.dim_size(1);
    const int64_t channels = features.dim_size(2);
    const int64_t count = rois.dim_size(0);

    TensorShape shape;
    OP_REQUIRES_OK(context, TensorShape::BuildTensorShape({count, size_, size_, channels}, &shape));
    Tensor* pooled = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &pooled));
    if (shape.num_elements() == 0) return;

    const auto image = features.tensor<float, 3>();
    const auto boxes = rois.matrix<int32>();
    auto out = pooled->tensor<float, 4>();
    for (int64_t r = 0; r < count; ++r) {
      const int64_t y0 = boxes(r, 0), x0 = boxes(r, 1), y1 = boxes(r, 2), x1 = boxes(r, 3);
      OP_REQUIRES(context, 0 <= y0 && y0 < y1 && y1 <= height && 0 <= x0 && x0 < x1 && x1 <= width,
                  errors::InvalidArgument("region ", r, " is empty or leaves the image"));
      for (int64_t i = 0; i < size_; ++i) {
        const int64_t top = y0 + i * (y1 - y0) / size_;
        const int64_t bottom = std::max(top + 1, y0 + (i + 1) * (y1 - y0) / size_);
        for (int64_t j = 0; j < size_; ++j) {
          const int64_t left = x0 + j * (x1 - x0) / size_;
          const int64_t right = std::max(left + 1, x0 + (j + 1) * (x1 - x0) / size_);
          for (int64_t c = 0; c < channels; ++c) {
            float best = std::numeric_limits<float>::lowest();
            for (int64_t y = top; y < bottom; ++y)
              for (int64_t x = left; x < right; ++x) best = std::max(best, image(y, x, c));
            out(r, i, j, c) = best;
          }
        }
      }
    }
  }

 private:
  int64_t size_;
};

REGISTER_KERNEL_BUILDER(Name("RoiMaxPool").Device(DEVICE_CPU), RoiMaxPoolOp);
