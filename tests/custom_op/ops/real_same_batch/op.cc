#include <string>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace checks {

REGISTER_OP("SameBatchSize")
    .Input("x: types")
    .Attr("types: list(type)")
    .Attr("msg: string = ''")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs)
    .Doc("Fails unless all tensors have the same size in their first dimension.");

class SameBatchSizeOp : public OpKernel {
 public:
  explicit SameBatchSizeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("msg", &msg_));
  }

  void Compute(OpKernelContext* ctx) override {
    if (ctx->num_inputs() < 1) return;
    OP_REQUIRES(ctx, !TensorShapeUtils::IsScalar(ctx->input(0).shape()),
                errors::InvalidArgument(msg_, ": input 0 is a scalar."));
    const int64_t dim0 = ctx->input(0).dim_size(0);
    for (int i = 1; i < ctx->num_inputs(); ++i) {
      OP_REQUIRES(ctx, !TensorShapeUtils::IsScalar(ctx->input(i).shape()),
                  errors::InvalidArgument(msg_, ": input ", i, " is a scalar."));
      OP_REQUIRES(ctx, dim0 == ctx->input(i).dim_size(0),
                  errors::InvalidArgument(msg_, ": input ", i, " has ", ctx->input(i).dim_size(0), " rows, not ", dim0));
    }
  }

 private:
  std::string msg_;
};

REGISTER_KERNEL_BUILDER(Name("SameBatchSize").Device(DEVICE_CPU), SameBatchSizeOp);

REGISTER_OP("GuardedIdentity")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Attr("max_elements: int")
    .SetShapeFn(shape_inference::UnchangedShape);

class GuardedIdentityOp : public OpKernel {
 public:
  explicit GuardedIdentityOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("max_elements", &max_elements_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, x.NumElements() <= max_elements_,
                errors::OutOfRange("the tensor has ", x.NumElements(), " elements, not at most ", max_elements_));
    // The buffer is shared, nothing is copied.
    ctx->set_output(0, x);
  }

  bool IsExpensive() override { return false; }

 private:
  int64_t max_elements_;
};

REGISTER_KERNEL_BUILDER(Name("GuardedIdentity").Device(DEVICE_CPU), GuardedIdentityOp);

}  // namespace checks
}  // namespace tensorflow
