#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

using shape_inference::DimensionHandle;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

absl::Status FramesShape(InferenceContext* c) {
  ShapeHandle samples;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &samples));
  int64_t length, hop;
  TF_RETURN_IF_ERROR(c->GetAttr("length", &length));
  TF_RETURN_IF_ERROR(c->GetAttr("hop", &hop));
  if (length < 1 || hop < 1) return errors::InvalidArgument("length and hop must be positive");
  DimensionHandle frames = c->UnknownDim();
  if (c->ValueKnown(c->Dim(samples, 0))) {
    const int64_t known = c->Value(c->Dim(samples, 0));
    frames = c->MakeDim(known / hop);
  }
  c->set_output(0, c->Matrix(frames, length));
  return absl::OkStatus();
}

REGISTER_OP("AudioFrames")
    .Input("samples: float")
    .Output("frames: float")
    .Attr("length: int >= 1")
    .Attr("hop: int >= 1")
    .SetShapeFn(FramesShape);

// Cuts a signal into overlapping frames; a tail that fills no frame is dropped.
class AudioFramesOp : public OpKernel {
 public:
  explicit AudioFramesOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("length", &length_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("hop", &hop_));
    OP_REQUIRES(ctx, length_ >= 1 && hop_ >= 1, errors::InvalidArgument("length and hop must be positive"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& samples = ctx->input(0);
    OP_REQUIRES(ctx, samples.dims() == 1, errors::InvalidArgument("samples must be one channel"));
    const int64_t available = samples.dim_size(0);
    const int64_t count = available < length_ ? 0 : 1 + (available - length_) / hop_;

    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({count, length_}, &shape));
    OP_REQUIRES(ctx, shape.num_elements() <= kMostSamples,
                errors::InvalidArgument("the frames would overlap too much: ", shape.DebugString()));
    Tensor* frames = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &frames));
    const float* in = samples.flat<float>().data();
    float* out = frames->flat<float>().data();
    for (int64_t frame = 0; frame < count; ++frame) {
      const float* start = in + frame * hop_;
      out = std::copy(start, start + length_, out);
    }
  }

 private:
  static constexpr int64_t kMostSamples = int64_t{1} << 27;
  int64_t length_;
  int64_t hop_;
};

REGISTER_KERNEL_BUILDER(Name("AudioFrames").Device(DEVICE_CPU), AudioFramesOp);

}  // namespace tensorflow
