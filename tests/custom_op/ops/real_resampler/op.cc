#include <cmath>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tensorflow {
namespace image {

using CPUDevice = Eigen::ThreadPoolDevice;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("BilinearResampler")
    .Input("data: T")
    .Input("warp: T")
    .Output("output: T")
    .Attr("T: {float, double}")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle data, warp, points, output;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 4, &data));
      TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(1), 2, &warp));
      TF_RETURN_IF_ERROR(c->Subshape(warp, 0, -1, &points));
      TF_RETURN_IF_ERROR(c->Concatenate(points, c->Vector(c->Dim(data, 3)), &output));
      c->set_output(0, output);
      return absl::OkStatus();
    })
    .Doc("Samples images at the points of warp, with zeros around the images.");

namespace functor {

template <typename Device, typename T>
struct Resampler2DFunctor;

template <typename T>
struct Resampler2DFunctor<CPUDevice, T> {
  void operator()(OpKernelContext* ctx, const T* __restrict__ data, const T* __restrict__ warp, T* __restrict__ output,
                  const int64_t batch_size, const int64_t height, const int64_t width, const int64_t channels,
                  const int64_t points) {
    const int64_t warp_stride = points * 2;
    const int64_t data_stride = height * width * channels;
    const int64_t output_stride = points * channels;
    const T zero = static_cast<T>(0.0);
    const T one = static_cast<T>(1.0);

    auto resample_batches = [&](const int64_t start, const int64_t limit) {
      for (int64_t batch = start; batch < limit; ++batch) {
        auto set_output = [&](const int64_t point, const int64_t channel, const T value) {
          output[batch * output_stride + point * channels + channel] = value;
        };
        auto get_data_point = [&](const int64_t x, const int64_t y, const int64_t channel) {
          const bool point_is_in_range = (x >= 0 && y >= 0 && x <= width - 1 && y <= height - 1);
          return point_is_in_range ? data[batch * data_stride + channels * (y * width + x) + channel] : zero;
        };

        for (int64_t point = 0; point < points; ++point) {
          const T x = warp[batch * warp_stride + point * 2];
          const T y = warp[batch * warp_stride + point * 2 + 1];
          if (x > static_cast<T>(-1.0) && y > static_cast<T>(-1.0) && x < static_cast<T>(width) &&
              y < static_cast<T>(height)) {
            const int64_t fx = static_cast<int64_t>(std::floor(x));
            const int64_t fy = static_cast<int64_t>(std::floor(y));
            const int64_t cx = fx + 1;
            const int64_t cy = fy + 1;
            const T dx = static_cast<T>(cx) - x;
            const T dy = static_cast<T>(cy) - y;
            for (int64_t channel = 0; channel < channels; ++channel) {
              const T upper = dx * get_data_point(fx, fy, channel) + (one - dx) * get_data_point(cx, fy, channel);
              const T lower = dx * get_data_point(fx, cy, channel) + (one - dx) * get_data_point(cx, cy, channel);
              set_output(point, channel, dy * upper + (one - dy) * lower);
            }
          } else {
            for (int64_t channel = 0; channel < channels; ++channel) set_output(point, channel, zero);
          }
        }
      }
    };
    // A guess: a nanosecond per value would be far too little.
    const int64_t cost = points * channels * 20;
    auto thread_pool = ctx->device()->tensorflow_cpu_worker_threads()->workers;
    thread_pool->ParallelFor(batch_size, cost, resample_batches);
  }
};

}  // namespace functor

template <typename Device, typename T>
class BilinearResamplerOp : public OpKernel {
 public:
  explicit BilinearResamplerOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& data = ctx->input(0);
    const Tensor& warp = ctx->input(1);
    const TensorShape& data_shape = data.shape();
    const TensorShape& warp_shape = warp.shape();
    OP_REQUIRES(ctx, data_shape.dims() == 4,
                errors::Unimplemented("data must be [batch, height, width, channels], but is: ",
                                      data_shape.DebugString()));
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrixOrHigher(warp_shape),
                errors::InvalidArgument("warp should be at least a matrix, got shape ", warp_shape.DebugString()));
    OP_REQUIRES(ctx, warp_shape.dim_size(warp_shape.dims() - 1) == 2,
                errors::Unimplemented("warping coordinates must be 2D, but warp is ", warp_shape.DebugString()));
    OP_REQUIRES(ctx, data_shape.dim_size(0) == warp_shape.dim_size(0),
                errors::InvalidArgument("data and warp differ in batch size: ", data_shape.DebugString(), ", ",
                                        warp_shape.DebugString()));
    OP_REQUIRES(ctx, data.NumElements() > 0 || warp.NumElements() == 0,
                errors::InvalidArgument("there is nothing to sample from"));
    TensorShape output_shape = warp_shape;
    OP_REQUIRES_OK(ctx, output_shape.SetDimWithStatus(output_shape.dims() - 1, data_shape.dim_size(3)));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, output_shape, &output));
    if (output->NumElements() == 0) return;

    const int64_t batch_size = data_shape.dim_size(0);
    const int64_t points = warp.NumElements() / batch_size / 2;
    functor::Resampler2DFunctor<Device, T>()(ctx, data.flat<T>().data(), warp.flat<T>().data(),
                                             output->flat<T>().data(), batch_size, data_shape.dim_size(1),
                                             data_shape.dim_size(2), data_shape.dim_size(3), points);
  }

 private:
  BilinearResamplerOp(const BilinearResamplerOp&) = delete;
  void operator=(const BilinearResamplerOp&) = delete;
};

#define REGISTER(TYPE)                                                                            \
  REGISTER_KERNEL_BUILDER(Name("BilinearResampler").Device(DEVICE_CPU).TypeConstraint<TYPE>("T"), \
                          BilinearResamplerOp<CPUDevice, TYPE>);
TF_CALL_float(REGISTER);
TF_CALL_double(REGISTER);
#undef REGISTER

}  // namespace image
}  // namespace tensorflow
