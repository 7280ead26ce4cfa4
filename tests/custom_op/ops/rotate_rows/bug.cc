#include <cstring>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/types.h"

using namespace tensorflow;

REGISTER_OP("RotateRows")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Attr("by: int")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 1, &x));
      c->set_output(0, x);
      return absl::OkStatus();
    });

class RotateRowsOp : public OpKernel {
 public:
  explicit RotateRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) { OP_REQUIRES_OK(ctx, ctx->GetAttr("by", &by_)); }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVectorOrHigher(x.shape()), errors::InvalidArgument("x must have rows"));
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
    if (x.NumElements() == 0) return;
    const int64_t rows = x.dim_size(0);
    const size_t row_bytes = x.tensor_data().size() / rows;
    const char* from = x.tensor_data().data();
    char* to = const_cast<char*>(y->tensor_data().data());
    const int64_t shift = (by_ % rows + rows) % rows;
    std::memcpy(to + shift * row_bytes, from, (rows - shift) * row_bytes);
    if (shift > 0) std::memcpy(to, from + (rows - shift) * row_bytes, shift * row_bytes);
  }

 private:
  int64_t by_;
};

REGISTER_KERNEL_BUILDER(Name("RotateRows").Device(DEVICE_CPU), RotateRowsOp);
