#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

REGISTER_OP("RunningMean")
    .Input("x: float")
    .Output("mean: float")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc("Mean of all values that the op has seen so far.");

class RunningMeanOp : public OpKernel {
 public:
  explicit RunningMeanOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    const auto values = x.flat<float>();
    double sum = 0.0;
    for (int64_t i = 0; i < values.size(); ++i) sum += values(i);

    Tensor* mean = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &mean));

    mutex_lock lock(mu_);
    total_ += sum;
    seen_ += values.size();
    mean->scalar<float>()() = seen_ > 0 ? static_cast<float>(total_ / seen_) : 0.0f;
  }

 private:
  mutex mu_;
  double total_ TF_GUARDED_BY(mu_) = 0.0;
  int64_t seen_ TF_GUARDED_BY(mu_) = 0;
};

REGISTER_KERNEL_BUILDER(Name("RunningMean").Device(DEVICE_CPU), RunningMeanOp);

}  // namespace tensorflow
