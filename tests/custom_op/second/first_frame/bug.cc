#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <vector>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("FirstFrame")
    .Input("frame: float")
    .Output("change: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle frame;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &frame));
      c->set_output(0, frame);
      return absl::OkStatus();
    });

// What has changed since the first frame, which is kept.
class FirstFrameOp : public OpKernel {
 public:
  explicit FirstFrameOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& frame = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrix(frame.shape()),
                errors::InvalidArgument("frame must be a matrix"));
    Tensor* change = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, frame.shape(), &change));
    const float* pixels = frame.flat<float>().data();
    float* out = change->flat<float>().data();
    const int64_t size = frame.NumElements();
    mutex_lock lock(mutex_);
    if (!has_first_) {
      first_ = std::vector<float>(pixels, pixels + size);
      has_first_ = true;
    }
    for (int64_t i = 0; i < size; ++i) {
      out[i] = pixels[i] - first_[i];
    }
  }

 private:
  mutex mutex_;
  bool has_first_ TF_GUARDED_BY(mutex_) = false;
  std::vector<float> first_ TF_GUARDED_BY(mutex_);
};

REGISTER_KERNEL_BUILDER(Name("FirstFrame").Device(DEVICE_CPU), FirstFrameOp);

}  // namespace
