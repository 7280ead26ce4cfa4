#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("TreeDepths")
    .Input("parents: int32")
    .Output("depths: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle parents;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &parents));
      c->set_output(0, parents);
      return absl::OkStatus();
    })
    .Doc("How deep each node is. parents: -1 is a root; a parent comes before its children.");

static int32 DepthOf(TTypes<int32>::ConstVec parents, TTypes<int32>::Vec depths, int64_t node) {
  return parents(node) < 0 ? 0 : 1 + depths(parents(node));
}

class TreeDepthsOp : public OpKernel {
 public:
  explicit TreeDepthsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& input = ctx->input(0);
    OP_REQUIRES(ctx, input.dims() == 1, errors::InvalidArgument("parents must be a vector"));
    OP_REQUIRES(ctx, input.dim_size(0) < kint32max, errors::InvalidArgument("too many nodes"));
    auto parents = input.vec<int32>();
    for (int64_t i = 0; i < parents.size(); ++i) {
      OP_REQUIRES(ctx, parents(i) >= -1 && parents(i) < i,
                  errors::InvalidArgument("node ", i, " has no such parent: ", parents(i)));
    }
    Tensor* output = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, input.shape(), &output));
    auto depths = output->vec<int32>();
    depths.setConstant(-1);
    for (int64_t i = 0; i < parents.size(); ++i) depths(i) = DepthOf(parents, depths, i);
  }
};

REGISTER_KERNEL_BUILDER(Name("TreeDepths").Device(DEVICE_CPU), TreeDepthsOp);

}  // namespace tensorflow
