#include <random>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/mutex.h"

using namespace tensorflow;

REGISTER_OP("DropoutMask")
    .Input("shape: int32")
    .Output("mask: bool")
    .Attr("rate: float")
    .Attr("seed: int = 0")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(0, &shape));
      c->set_output(0, shape);
      return absl::OkStatus();
    });

class DropoutMaskOp : public OpKernel {
 public:
  explicit DropoutMaskOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("rate", &rate_));
    OP_REQUIRES(ctx, rate_ >= 0.0f && rate_ <= 1.0f, errors::InvalidArgument("rate must be in [0, 1]"));
    int64_t seed;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("seed", &seed));
    random_.seed(static_cast<uint64_t>(seed));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& dims = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(dims.shape()), errors::InvalidArgument("shape must be a vector"));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShapeUtils::MakeShape(dims.vec<int32>(), &shape));
    OP_REQUIRES(ctx, shape.num_elements() <= kMost, errors::InvalidArgument("the mask would be too large"));
    Tensor* mask = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &mask));
    auto out = mask->flat<bool>();
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    mutex_lock lock(mu_);
    for (int64_t i = 0; i < out.size(); ++i) out(i) = uniform(random_) >= rate_;
  }

 private:
  static constexpr int64_t kMost = 1 << 26;
  float rate_;
  mutex mu_;
  std::mt19937_64 random_ TF_GUARDED_BY(mu_);
};

REGISTER_KERNEL_BUILDER(Name("DropoutMask").Device(DEVICE_CPU), DropoutMaskOp);
