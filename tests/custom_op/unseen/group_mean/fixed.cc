#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("GroupMean")
    .Input("x: float")
    .Attr("groups: int")
    .Output("means: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
      int64_t groups;
      TF_RETURN_IF_ERROR(c->GetAttr("groups", &groups));
      if (groups < 1) return errors::InvalidArgument("groups must be positive, got ", groups);
      c->set_output(0, c->Matrix(c->Dim(x, 0), groups));
      return absl::OkStatus();
    })
    .Doc("Splits the channels into equal groups and averages each.");

class GroupMeanOp : public OpKernel {
 public:
  explicit GroupMeanOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("groups", &groups_));
    OP_REQUIRES(ctx, groups_ >= 1, errors::InvalidArgument("groups must be positive, got ", groups_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("x must be [batch, channels]"));
    const int64_t channels = x.dim_size(1);
    OP_REQUIRES(ctx, channels > 0 && channels % groups_ == 0,
                errors::InvalidArgument(channels, " channels do not split into ", groups_, " groups"));
    const int64_t width = channels / groups_;

    Tensor* means = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({x.dim_size(0), groups_}), &means));
    const auto in = x.matrix<float>();
    auto out = means->matrix<float>();
    for (int64_t b = 0; b < x.dim_size(0); ++b) {
      for (int64_t g = 0; g < groups_; ++g) {
        float sum = 0;
        for (int64_t i = 0; i < width; ++i) sum += in(b, g * width + i);
        out(b, g) = sum / width;
      }
    }
  }

 private:
  int64_t groups_;
};

REGISTER_KERNEL_BUILDER(Name("GroupMean").Device(DEVICE_CPU), GroupMeanOp);
