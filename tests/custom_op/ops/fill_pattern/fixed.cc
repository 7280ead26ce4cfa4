#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace fill {

namespace tf = ::tensorflow;

REGISTER_OP("FillPattern")
    .Input("pattern: float")
    .Input("dims: int32")
    .Output("filled: float")
    .SetShapeFn([](tf::shape_inference::InferenceContext* c) {
      tf::shape_inference::ShapeHandle pattern, filled;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &pattern));
      TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(1, &filled));
      c->set_output(0, filled);
      return absl::OkStatus();
    });

class FillPatternOp : public tf::OpKernel {
 public:
  explicit FillPatternOp(tf::OpKernelConstruction* ctx) : tf::OpKernel(ctx) {}

  void Compute(tf::OpKernelContext* ctx) override {
    const tf::Tensor& pattern = ctx->input(0);
    const tf::Tensor& dims = ctx->input(1);
    OP_REQUIRES(ctx, pattern.dims() == 1 && pattern.NumElements() > 0,
                absl::InvalidArgumentError("pattern must be a vector that is not empty"));
    OP_REQUIRES(ctx, dims.dims() == 1, absl::InvalidArgumentError("dims must be a vector"));

    tf::TensorShape shape;
    OP_REQUIRES_OK(ctx, tf::TensorShapeUtils::MakeShape(dims.vec<tf::int32>(), &shape));
    OP_REQUIRES(ctx, shape.num_elements() <= kMostElements, absl::InvalidArgumentError("the output is too large"));
    tf::Tensor* filled = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &filled));
    const float* from = pattern.flat<float>().data();
    float* to = filled->flat<float>().data();
    for (int64_t i = 0; i < shape.num_elements(); ++i) to[i] = from[i % pattern.NumElements()];
  }

 private:
  static constexpr int64_t kMostElements = int64_t{1} << 26;
};

REGISTER_KERNEL_BUILDER(Name("FillPattern").Device(tf::DEVICE_CPU), FillPatternOp);

}  // namespace fill
