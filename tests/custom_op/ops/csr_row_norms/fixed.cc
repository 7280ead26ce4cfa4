#include <cmath>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace sparse_rows {

REGISTER_OP("CsrRowNorms")
    .Input("values: float")
    .Input("row_splits: int64")
    .Output("norms: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle values, splits;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &values));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &splits));
      shape_inference::DimensionHandle rows;
      TF_RETURN_IF_ERROR(c->Subtract(c->Dim(splits, 0), 1, &rows));
      c->set_output(0, c->Vector(rows));
      return OkStatus();
    });

class CsrRowNormsOp : public OpKernel {
 public:
  explicit CsrRowNormsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& values_in = ctx->input(0);
    const Tensor& splits_in = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(values_in.shape()), errors::InvalidArgument("values: a vector"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(splits_in.shape()), errors::InvalidArgument("row_splits: a vector"));
    OP_REQUIRES(ctx, splits_in.dim_size(0) >= 1, errors::InvalidArgument("row_splits must not be empty"));
    const auto values = values_in.vec<float>();
    const auto splits = splits_in.vec<int64_t>();
    const int64_t rows = splits.size() - 1;
    OP_REQUIRES(ctx, splits(0) == 0, errors::InvalidArgument("row_splits must begin with 0"));
    OP_REQUIRES(ctx, splits(rows) == values.size(), errors::InvalidArgument("row_splits must end with the number of values"));
    for (int64_t r = 0; r < rows; ++r) {
      OP_REQUIRES(ctx, splits(r) <= splits(r + 1), errors::InvalidArgument("row_splits must not fall"));
    }

    Tensor* norms_out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({rows}), &norms_out));
    auto norms = norms_out->vec<float>();
    for (int64_t r = 0; r < rows; ++r) {
      float squares = 0;
      for (int64_t i = splits(r); i < splits(r + 1); ++i) squares += values(i) * values(i);
      norms(r) = std::sqrt(squares);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("CsrRowNorms").Device(DEVICE_CPU), CsrRowNormsOp);

}  // namespace sparse_rows
}  // namespace tensorflow
