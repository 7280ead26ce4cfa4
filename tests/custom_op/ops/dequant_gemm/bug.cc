/* int8 matrix product for the phone models. */
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("DequantGemm")
    .Input("activations: uint8")
    .Input("weights: int8")
    .Input("scale: float")
    .Output("product: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle a, w, s;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &a));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &w));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 0, &s));
      shape_inference::DimensionHandle inner;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(a, 1), c->Dim(w, 0), &inner));
      c->set_output(0, c->Matrix(c->Dim(a, 0), c->Dim(w, 1)));
      return OkStatus();
    });

class DequantGemmOp : public OpKernel {
 public:
  explicit DequantGemmOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& a = ctx->input(0);
    const Tensor& w = ctx->input(1);
    const Tensor& s = ctx->input(2);
    OP_REQUIRES(ctx, a.dims() == 2 && w.dims() == 2, errors::InvalidArgument("two matrices are needed"));
    OP_REQUIRES(ctx, s.dims() == 0, errors::InvalidArgument("scale must be a scalar"));
    OP_REQUIRES(ctx, a.dim_size(1) == w.dim_size(1),
                errors::InvalidArgument("inner sizes differ: ", a.shape().DebugString(), " x ",
                                        w.shape().DebugString()));
    const int64_t m = a.dim_size(0), k = w.dim_size(0), n = w.dim_size(1);
    OP_REQUIRES(ctx, k > 0 && k <= 1 << 16, errors::InvalidArgument("the inner size must be in [1, 65536]"));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({m, n}, &shape));
    Tensor* product = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &product));
    const uint8* left = a.flat<uint8>().data();
    const int8* right = w.flat<int8>().data();
    float* out = product->flat<float>().data();
    const float scale = s.scalar<float>()();
    if (shape.num_elements() == 0) return;

    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        int32 sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += int32{left[i * k + l]} * int32{right[l * n + j]};
        out[i * n + j] = scale * static_cast<float>(sum);
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("DequantGemm").Device(DEVICE_CPU), DequantGemmOp);

}  // namespace tensorflow
