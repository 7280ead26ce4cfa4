#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <map>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("DropRare")
    .Input("ids: int64")
    .Input("least: int64")
    .Output("kept: int64")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &unused));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &unused));
      c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    });

// The ids that occur at least so often, in order.
class DropRareOp : public OpKernel {
 public:
  explicit DropRareOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& ids = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(ids.shape()),
                errors::InvalidArgument("ids must be a vector"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(ctx->input(1).shape()),
                errors::InvalidArgument("least must be a scalar"));
    const int64_t least = ctx->input(1).scalar<int64_t>()();
    std::map<int64_t, int64_t> counts;
    auto in = ids.vec<int64_t>();
    for (int64_t i = 0; i < in.size(); ++i) {
      ++counts[in(i)];
    }
    for (auto it = counts.begin(); it != counts.end();) {
      if (it->second < least) {
        it = counts.erase(it);
      } else {
        ++it;
      }
    }
    Tensor* kept = nullptr;
    const int64_t number = counts.size();
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({number}), &kept));
    int64_t* out = kept->flat<int64_t>().data();
    for (const auto& entry : counts) {
      *out++ = entry.first;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("DropRare").Device(DEVICE_CPU), DropRareOp);

}  // namespace
