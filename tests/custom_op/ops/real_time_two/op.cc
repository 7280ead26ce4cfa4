#include <limits>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

typedef Eigen::ThreadPoolDevice CPUDevice;

REGISTER_OP("TimeTwo")
    .Attr("T: {int32, float}")
    .Input("in: T")
    .Output("out: T")
    .SetShapeFn([](::tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return OkStatus();
    });

namespace functor {

template <typename Device, typename T>
struct TimeTwoFunctor {
  void operator()(const Device& d, int size, const T* in, T* out);
};

// CPU specialization of actual computation.
template <typename T>
struct TimeTwoFunctor<CPUDevice, T> {
  void operator()(const CPUDevice& d, int size, const T* in, T* out) {
    for (int i = 0; i < size; ++i) {
      out[i] = Twice(in[i]);
    }
  }

 private:
  static float Twice(float x) { return 2 * x; }
  // Integers wrap around, as those of TensorFlow do.
  static int32 Twice(int32 x) { return static_cast<int32>(2u * static_cast<uint32>(x)); }
};

}  // namespace functor

// OpKernel definition.
// template parameter <T> is the datatype of the tensors.
template <typename Device, typename T>
class TimeTwoOp : public OpKernel {
 public:
  explicit TimeTwoOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& input_tensor = context->input(0);
    OP_REQUIRES(context, input_tensor.NumElements() <= std::numeric_limits<int32>::max(),
                errors::InvalidArgument("Too many elements in tensor"));

    Tensor* output_tensor = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, input_tensor.shape(), &output_tensor));

    functor::TimeTwoFunctor<Device, T>()(context->eigen_device<Device>(),
                                         static_cast<int>(input_tensor.NumElements()),
                                         input_tensor.flat<T>().data(), output_tensor->flat<T>().data());
  }
};

#define REGISTER_CPU(T) \
  REGISTER_KERNEL_BUILDER(Name("TimeTwo").Device(DEVICE_CPU).TypeConstraint<T>("T"), TimeTwoOp<CPUDevice, T>);
REGISTER_CPU(float);
REGISTER_CPU(int32);

#ifdef GOOGLE_CUDA
#define REGISTER_GPU(T)                                   \
  extern template struct functor::TimeTwoFunctor<GPUDevice, T>; \
  REGISTER_KERNEL_BUILDER(Name("TimeTwo").Device(DEVICE_GPU).TypeConstraint<T>("T"), TimeTwoOp<GPUDevice, T>);
REGISTER_GPU(float);
REGISTER_GPU(int32);
#endif  // GOOGLE_CUDA

}  // namespace tensorflow
