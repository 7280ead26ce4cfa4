#include <cmath>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

using namespace tensorflow;

REGISTER_OP("Drift")
    .Input("batch: float")
    .Attr("expected: int = 3000000")
    .Output("drift: float")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Scalar());
      return absl::OkStatus();
    });

// Keeps all values seen so far and compares each batch with the one before.
class DriftOp : public OpKernel {
 public:
  explicit DriftOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    int64_t expected;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("expected", &expected));
    seen_.reserve(expected);
  }

  void Compute(OpKernelContext* ctx) override {
    mutex_lock lock(mu_);
    auto batch = ctx->input(0).flat<float>();
    const size_t before = std::min<size_t>(seen_.size(), batch.size());
    const float* last = seen_.data() + seen_.size() - before;
    seen_.insert(seen_.end(), batch.data(), batch.data() + batch.size());
    double sum = 0;
    for (size_t i = 0; i < before; ++i) sum += std::fabs(batch(i) - last[i]);
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &out));
    out->scalar<float>()() = before ? sum / before : 0;
  }

 private:
  mutex mu_;
  std::vector<float> seen_;
};

REGISTER_KERNEL_BUILDER(Name("Drift").Device(DEVICE_CPU), DriftOp);
