#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

using namespace tensorflow;

REGISTER_OP("BucketizeIds")
    .Input("ids: int64")
    .Input("buckets: int64")
    .Output("bucket: int64")
    .SetShapeFn(shape_inference::UnchangedShape);

class BucketizeIdsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    auto ids = ctx->input(0).flat<int64_t>();
    const int64_t buckets = ctx->input(1).scalar<int64_t>()();
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &out));
    auto bucket = out->flat<int64_t>();
    for (int64_t i = 0; i < ids.size(); ++i) {
      const uint64_t mixed = static_cast<uint64_t>(ids(i)) * 0x9E3779B97F4A7C15ull;
      bucket(i) = static_cast<int64_t>((mixed >> 33) % static_cast<uint64_t>(buckets));
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("BucketizeIds").Device(DEVICE_CPU), BucketizeIdsOp);
