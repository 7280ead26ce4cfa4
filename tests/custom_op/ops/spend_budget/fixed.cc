#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

REGISTER_OP("SpendBudget")
    .Input("amount: float")
    .Output("left: float")
    .Attr("budget: float")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle scalar;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &scalar));
      c->set_output(0, c->Scalar());
      return absl::OkStatus();
    })
    .Doc("Takes an amount from a budget and says what is left of it. Fails when there is not enough.");

class SpendBudgetOp : public OpKernel {
 public:
  explicit SpendBudgetOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("budget", &left_));
    OP_REQUIRES(ctx, left_ >= 0, errors::InvalidArgument("budget must not be negative"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& amount_tensor = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(amount_tensor.shape()),
                errors::InvalidArgument("amount must be a scalar"));
    const float amount = amount_tensor.scalar<float>()();
    OP_REQUIRES(ctx, amount >= 0, errors::InvalidArgument("amount must not be negative"));
    Tensor* left_tensor = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &left_tensor));

    mutex_lock lock(mu_);
    OP_REQUIRES(ctx, amount <= left_, errors::ResourceExhausted("only ", left_, " is left, not ", amount));
    left_ -= amount;
    left_tensor->scalar<float>()() = left_;
  }

 private:
  mutex mu_;
  float left_;
};

REGISTER_KERNEL_BUILDER(Name("SpendBudget").Device(DEVICE_CPU), SpendBudgetOp);

}  // namespace tensorflow
