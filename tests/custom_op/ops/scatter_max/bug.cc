#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("ScatterMaxRows")
    .Input("base: T")
    .Input("indices: Tindex")
    .Input("updates: T")
    .Output("result: T")
    .Attr("T: {float, double, int32}")
    .Attr("Tindex: {int32, int64} = DT_INT32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle base, indices, updates;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &base));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &indices));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 2, &updates));
      shape_inference::DimensionHandle unused;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(indices, 0), c->Dim(updates, 0), &unused));
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(base, 1), c->Dim(updates, 1), &unused));
      c->set_output(0, base);
      return OkStatus();
    });

template <class T>
class ScatterMaxRowsOp : public OpKernel {
 public:
  explicit ScatterMaxRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& base = ctx->input(0);
    const Tensor& indices = ctx->input(1);
    const Tensor& updates = ctx->input(2);
    OP_REQUIRES(ctx, base.dims() == 2 && updates.dims() == 2 && indices.dims() == 1,
                errors::InvalidArgument("base and updates must be matrices, indices a vector"));
    OP_REQUIRES(ctx, base.dim_size(1) == updates.dim_size(1) && indices.dim_size(0) == updates.dim_size(0),
                errors::InvalidArgument("updates must be [indices, columns of base]"));
    Tensor* result = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, base.shape(), &result));
    auto out = result->matrix<T>();
    out = base.matrix<T>();
    const auto update = updates.matrix<T>();
    const auto index = indices.vec<int32>();
    for (int64_t i = 0; i < index.size(); ++i) {
      OP_REQUIRES(ctx, index(i) >= 0 && index(i) < out.dimension(0),
                  errors::InvalidArgument("index ", index(i), " is not a row of base"));
      for (int64_t j = 0; j < out.dimension(1); ++j) out(index(i), j) = std::max(out(index(i), j), update(i, j));
    }
  }
};

#define REGISTER_SCATTER_MAX(T) \
  REGISTER_KERNEL_BUILDER(Name("ScatterMaxRows").Device(DEVICE_CPU).TypeConstraint<T>("T"), ScatterMaxRowsOp<T>);
TF_CALL_float(REGISTER_SCATTER_MAX);
TF_CALL_double(REGISTER_SCATTER_MAX);
TF_CALL_int32(REGISTER_SCATTER_MAX);
#undef REGISTER_SCATTER_MAX

}  // namespace tensorflow
