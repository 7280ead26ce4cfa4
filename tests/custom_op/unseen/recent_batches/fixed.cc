#include <algorithm>
#include <deque>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

using namespace tensorflow;

REGISTER_OP("RecentBatches")
    .Input("batch: float")
    .Attr("depth: int >= 1")
    .Output("mean: float")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc("Mean of the means of the last batches.");

class RecentBatchesOp : public OpKernel {
 public:
  explicit RecentBatchesOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("depth", &depth_));
    OP_REQUIRES(ctx, depth_ >= 1 && depth_ <= 64, errors::InvalidArgument("depth must be in [1, 64]"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& batch = ctx->input(0);
    OP_REQUIRES(ctx, batch.NumElements() > 0, errors::InvalidArgument("batch is empty"));
    Tensor* mean = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &mean));

    mutex_lock lock(mu_);
    history_.push_back(batch);
    if (static_cast<int64_t>(history_.size()) > depth_) history_.pop_front();
    double sum = 0;
    for (const Tensor& kept : history_) sum += MeanOf(kept);
    mean->scalar<float>()() = static_cast<float>(sum / history_.size());
  }

 private:
  static double MeanOf(const Tensor& tensor) {
    const auto values = tensor.flat<float>();
    double sum = 0;
    for (int64_t i = 0; i < values.size(); ++i) sum += values(i);
    return sum / values.size();
  }

  int64_t depth_;
  mutex mu_;
  std::deque<Tensor> history_ TF_GUARDED_BY(mu_);
};

REGISTER_KERNEL_BUILDER(Name("RecentBatches").Device(DEVICE_CPU), RecentBatchesOp);
