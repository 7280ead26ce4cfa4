#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("LowerTriangle")
    .Input("x: T")
    .Output("lower: T")
    .Attr("T: {float, double}")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
      c->set_output(0, x);
      return absl::OkStatus();
    });

template <typename T>
class LowerTriangleOp : public OpKernel {
 public:
  explicit LowerTriangleOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    OP_REQUIRES(context, TensorShapeUtils::IsMatrix(x.shape()),
                errors::InvalidArgument("x must be a matrix, got ", x.shape().DebugString()));
    Tensor* lower = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &lower));

    auto in = x.matrix<T>();
    auto out = lower->matrix<T>();
    out.setZero();
    for (int64_t i = 0; i < in.dimension(0); ++i) {
      const int64_t last = std::min<int64_t>(i + 1, in.dimension(1));
      for (int64_t j = 0; j < last; ++j) {
        out(i, j) = in(i, j);
      }
    }
  }
};

#define REGISTER_LOWER(T) \
  REGISTER_KERNEL_BUILDER(Name("LowerTriangle").Device(DEVICE_CPU).TypeConstraint<T>("T"), LowerTriangleOp<T>);
REGISTER_LOWER(float)
REGISTER_LOWER(double)
#undef REGISTER_LOWER

}  // namespace tensorflow
