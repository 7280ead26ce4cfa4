#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

using namespace tensorflow;

REGISTER_OP("EpochCounter")
    .Input("batch: float")
    .Attr("examples_per_epoch: int >= 1")
    .Output("epoch: int64")
    .Output("examples: int64")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Scalar());
      c->set_output(1, c->Scalar());
      return absl::OkStatus();
    })
    .Doc("Counts examples and epochs as batches go by.");

class EpochCounterOp : public OpKernel {
 public:
  explicit EpochCounterOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("examples_per_epoch", &per_epoch_));
    OP_REQUIRES(ctx, per_epoch_ >= 1, errors::InvalidArgument("examples_per_epoch must be positive"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& batch = ctx->input(0);
    OP_REQUIRES(ctx, batch.dims() >= 1, errors::InvalidArgument("batch needs a batch dimension"));
    Tensor* epoch = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &epoch));
    Tensor* examples = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(1, TensorShape({}), &examples));

    mutex_lock lock(mu_);
    if (batch.dim_size(0) >= per_epoch_ - examples_) {
      StartEpoch();
    } else {
      examples_ += batch.dim_size(0);
    }
    epoch->scalar<int64_t>()() = epoch_;
    examples->scalar<int64_t>()() = examples_;
  }

 private:
  void StartEpoch() {
    mutex_lock lock(mu_);
    ++epoch_;
    examples_ = 0;
  }

  int64_t per_epoch_;
  mutex mu_;
  int64_t epoch_ TF_GUARDED_BY(mu_) = 0;
  int64_t examples_ TF_GUARDED_BY(mu_) = 0;
};

REGISTER_KERNEL_BUILDER(Name("EpochCounter").Device(DEVICE_CPU), EpochCounterOp);
