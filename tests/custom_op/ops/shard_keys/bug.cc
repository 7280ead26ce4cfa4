#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#define CHECK_ARGUMENT(condition, text) OP_REQUIRES(ctx, condition, ::tensorflow::errors::InvalidArgument(text))

namespace tensorflow {

REGISTER_OP("ShardKeys")
    .Input("keys: int64")
    .Input("shards: int64")
    .Output("owners: int64")
    .Output("loads: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle keys, shards;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &keys));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &shards));
      shape_inference::DimensionHandle count;
      TF_RETURN_IF_ERROR(c->MakeDimForScalarInput(1, &count));
      c->set_output(0, keys);
      c->set_output(1, c->Vector(count));
      return absl::OkStatus();
    });

// Which shard owns a key, and how many keys each shard got.
class ShardKeysOp : public OpKernel {
 public:
  explicit ShardKeysOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}
  ~ShardKeysOp() override = default;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& keys_t = ctx->input(0);
    const Tensor& shards_t = ctx->input(1);
    CHECK_ARGUMENT(keys_t.dims() == 1, "keys must be a vector");
    CHECK_ARGUMENT(shards_t.dims() == 0, "shards must be a scalar");
    const int64_t shards = shards_t.scalar<int64_t>()();
    CHECK_ARGUMENT(shards >= 0, "shards must not be negative");
    CHECK_ARGUMENT(shards <= 1 << 20, "more shards than anybody has");

    Tensor* owners_t = nullptr;
    Tensor* loads_t = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, keys_t.shape(), &owners_t));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(1, TensorShape({shards}), &loads_t));
    auto keys = keys_t.vec<int64_t>();
    auto owners = owners_t->vec<int64_t>();
    auto loads = loads_t->vec<int64_t>();
    loads.setZero();
    for (int64_t i = 0; i < keys.size(); ++i) {
      int64_t owner = keys(i) % shards;
      if (owner < 0) owner += shards;
      owners(i) = owner;
      ++loads(owner);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("ShardKeys").Device(DEVICE_CPU), ShardKeysOp);

}  // namespace tensorflow

#undef CHECK_ARGUMENT
