#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

using ::tensorflow::DEVICE_CPU;
using ::tensorflow::OpKernel;
using ::tensorflow::OpKernelConstruction;
using ::tensorflow::OpKernelContext;
using ::tensorflow::Tensor;
using ::tensorflow::TensorShape;
using ::tensorflow::shape_inference::InferenceContext;
using ::tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("OuterTable")
    .Input("a: float")
    .Input("b: float")
    .Output("table: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle a, b;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &a));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &b));
      c->set_output(0, c->Matrix(c->Dim(a, 0), c->Dim(b, 0)));
      return absl::OkStatus();
    });

class OuterTableOp : public OpKernel {
 public:
  explicit OuterTableOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& a = ctx->input(0);
    const Tensor& b = ctx->input(1);
    OP_REQUIRES(ctx, a.dims() == 1 && b.dims() == 1,
                tensorflow::errors::InvalidArgument("a and b must be vectors"));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, shape.AddDimWithStatus(a.NumElements()));
    OP_REQUIRES_OK(ctx, shape.AddDimWithStatus(b.NumElements()));
    Tensor* table = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &table));

    auto left = a.vec<float>();
    auto right = b.vec<float>();
    auto out = table->matrix<float>();
    for (int64_t i = 0; i < left.size(); ++i) {
      for (int64_t j = 0; j < right.size(); ++j) {
        out(i, j) = left(i) * right(j);
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("OuterTable").Device(DEVICE_CPU), OuterTableOp);

}  // namespace
