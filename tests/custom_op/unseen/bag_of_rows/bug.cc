#include "tensorflow/core/framework/bounds_check.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("BagOfRows")
    .Input("table: float")
    .Input("ids: int32")
    .Output("bags: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle table, ids;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &table));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &ids));
      c->set_output(0, c->Matrix(c->Dim(ids, 0), c->Dim(table, 1)));
      return absl::OkStatus();
    })
    .Doc("Sums the rows of a table that each bag of ids names.");

class BagOfRowsOp : public OpKernel {
 public:
  explicit BagOfRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& table = ctx->input(0);
    const Tensor& ids = ctx->input(1);
    OP_REQUIRES(ctx, table.dims() == 2, errors::InvalidArgument("table must be a matrix"));
    OP_REQUIRES(ctx, ids.dims() == 2, errors::InvalidArgument("ids must be a matrix"));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({ids.dim_size(0), table.dim_size(1)}, &shape));
    Tensor* bags = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &bags));

    auto out = bags->matrix<float>();
    out.setZero();
    const auto rows = table.matrix<float>();
    const auto picks = ids.matrix<int32>();
    for (int64_t i = 0; i < ids.dim_size(0); ++i) {
      for (int64_t k = 0; k < ids.dim_size(1); ++k) {
        const int32 id = internal::SubtleMustCopy(picks(i, k));
        for (int64_t d = 0; d < table.dim_size(1); ++d) {
          out(i, d) += rows(id, d);
        }
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("BagOfRows").Device(DEVICE_CPU), BagOfRowsOp);
