#define EIGEN_USE_THREADS

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

using CPUDevice = Eigen::ThreadPoolDevice;

REGISTER_OP("ClipRange")
    .Input("x: T")
    .Output("clipped: T")
    .Attr("T: {float, double}")
    .Attr("low: float")
    .Attr("high: float")
    .SetShapeFn(shape_inference::UnchangedShape);

template <typename T>
struct ClipFunctor {
  void operator()(const CPUDevice& device, typename TTypes<T>::ConstFlat in, T low, T high,
                  typename TTypes<T>::Flat out) {
    out.device(device) = in.cwiseMax(low).cwiseMin(high);
  }
};

template <typename T>
class ClipRangeOp : public OpKernel {
 public:
  explicit ClipRangeOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("low", &low_));
    OP_REQUIRES_OK(context, context->GetAttr("high", &high_));
    OP_REQUIRES(context, low_ <= high_, errors::InvalidArgument("low must not be above high"));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* clipped = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &clipped));
    if (x.NumElements() == 0) return;
    ClipFunctor<T>()(context->eigen_device<CPUDevice>(), x.flat<T>(), static_cast<T>(low_),
                     static_cast<T>(high_), clipped->flat<T>());
  }

 private:
  float low_;
  float high_;
};

REGISTER_KERNEL_BUILDER(Name("ClipRange").Device(DEVICE_CPU), ClipRangeOp<float>);

}  // namespace tensorflow
