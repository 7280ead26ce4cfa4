#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace ensemble {

using namespace tensorflow;  // NOLINT(build/namespaces)

REGISTER_OP("SoftVotes")
    .Input("owners: int32")
    .Input("votes: float")
    .Attr("candidates: int >= 1")
    .Output("share: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle owners, votes;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &owners));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &votes));
      shape_inference::DimensionHandle voters;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(owners, 0), c->Dim(votes, 0), &voters));
      int64_t candidates;
      TF_RETURN_IF_ERROR(c->GetAttr("candidates", &candidates));
      c->set_output(0, c->Matrix(candidates, c->Dim(votes, 1)));
      return absl::OkStatus();
    });

class SoftVotesOp : public OpKernel {
 public:
  explicit SoftVotesOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("candidates", &candidates_));
    OP_REQUIRES(ctx, 1 <= candidates_ && candidates_ <= 4096, errors::InvalidArgument("1 to 4096 candidates"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& owners = ctx->input(0);
    const Tensor& votes = ctx->input(1);
    OP_REQUIRES(ctx, owners.dims() == 1 && votes.dims() == 2 && votes.dim_size(0) == owners.dim_size(0),
                errors::InvalidArgument("owners must be [n] and votes [n, m]"));
    OP_REQUIRES(ctx, votes.NumElements() > 0, errors::InvalidArgument("nobody voted"));

    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({candidates_, votes.dim_size(1)}, &shape));
    Tensor sums;
    Tensor* share = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, shape, &sums));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &share));
    auto sum = sums.matrix<float>();
    const auto vote = votes.matrix<float>();
    for (int64_t i = 0; i < owners.dim_size(0); ++i) {
      const int32 owner = owners.vec<int32>()(i);
      OP_REQUIRES(ctx, owner >= 0 && owner < candidates_, errors::OutOfRange("voter ", i, " voted for nobody we know"));
      for (int64_t j = 0; j < vote.dimension(1); ++j) sum(owner, j) += vote(i, j);
    }
    share->matrix<float>() = sum / static_cast<float>(owners.dim_size(0));
  }

 private:
  int64_t candidates_;
};

REGISTER_KERNEL_BUILDER(Name("SoftVotes").Device(DEVICE_CPU), SoftVotesOp);

}  // namespace ensemble
