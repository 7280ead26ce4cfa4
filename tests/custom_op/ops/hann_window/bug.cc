#include <cmath>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

using namespace tensorflow;

REGISTER_OP("HannWindow")
    .Input("frames: float")
    .Output("windowed: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle frames;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &frames));
      c->set_output(0, frames);
      return absl::OkStatus();
    });

class HannWindowOp : public OpKernel {
 public:
  explicit HannWindowOp(OpKernelConstruction* construction) : OpKernel(construction) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& frames_tensor = context->input(0);
    OP_REQUIRES(context, TensorShapeUtils::IsMatrix(frames_tensor.shape()),
                errors::InvalidArgument("frames must be [count, length]"));
    Tensor* windowed_tensor = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, frames_tensor.shape(), &windowed_tensor));
    if (frames_tensor.NumElements() == 0) return;

    auto frames = frames_tensor.matrix<float>();
    auto windowed = windowed_tensor->matrix<float>();
    const int64_t length = frames.dimension(1);
    if (static_cast<int64_t>(table_.size()) != length) {
      table_.assign(length, 0.0f);
      for (int64_t i = 0; i < length; ++i) {
        table_[i] = static_cast<float>(0.5 - 0.5 * std::cos(2.0 * M_PI * (i + 0.5) / length));
      }
    }
    for (int64_t f = 0; f < frames.dimension(0); ++f) {
      for (int64_t i = 0; i < length; ++i) windowed(f, i) = frames(f, i) * table_[i];
    }
  }

 private:
  std::vector<float> table_;  // of the last length seen
};

REGISTER_KERNEL_BUILDER(Name("HannWindow").Device(DEVICE_CPU), HannWindowOp);
