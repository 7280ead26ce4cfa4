#include <algorithm>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using std::vector;

REGISTER_OP("SmallestOfRows")
    .Input("x: float")
    .Input("k: int32")
    .Output("smallest: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x, k;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &k));
      shape_inference::DimensionHandle kept;
      TF_RETURN_IF_ERROR(c->MakeDimForScalarInput(1, &kept));
      c->set_output(0, c->Matrix(c->Dim(x, 0), kept));
      return absl::OkStatus();
    });

class SmallestOfRowsOp : public OpKernel {
 public:
  explicit SmallestOfRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    auto& x = ctx->input(0);
    auto& k_tensor = ctx->input(1);
    OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("x must be a matrix"));
    OP_REQUIRES(ctx, k_tensor.dims() == 0, errors::InvalidArgument("k must be a scalar"));
    const int k = k_tensor.scalar<int>()();
    OP_REQUIRES(ctx, k > 0, errors::InvalidArgument("k must be positive, got ", k));

    Tensor* smallest = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, {x.dim_size(0), k}, &smallest));
    if (x.NumElements() == 0) return;
    auto rows = x.matrix<float>();
    auto out = smallest->matrix<float>();
    vector<float> row(x.dim_size(1));
    for (int64_t r = 0; r < rows.dimension(0); ++r) {
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] = rows(r, c);
        OP_REQUIRES(ctx, row[c] == row[c], errors::InvalidArgument("row ", r, " holds a NaN"));
      }
      std::partial_sort(row.begin(), row.begin() + k, row.end());
      std::copy(row.begin(), row.begin() + k, &out(r, 0));
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("SmallestOfRows").Device(DEVICE_CPU), SmallestOfRowsOp);
