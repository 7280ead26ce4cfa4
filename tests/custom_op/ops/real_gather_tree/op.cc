#define EIGEN_USE_THREADS

#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace tensorflow {
namespace beams {

typedef Eigen::ThreadPoolDevice CPUDevice;

using ::tensorflow::shape_inference::DimensionHandle;
using ::tensorflow::shape_inference::InferenceContext;
using ::tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("BeamGatherTree")
    .Input("step_ids: T")
    .Input("parent_ids: T")
    .Input("max_sequence_lengths: int32")
    .Input("end_token: T")
    .Output("beams: T")
    .Attr("T: {int32}")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle step_ids, parent_ids, lengths, end_token;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &step_ids));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 3, &parent_ids));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 1, &lengths));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(3), 0, &end_token));
      TF_RETURN_IF_ERROR(c->Merge(step_ids, parent_ids, &step_ids));
      DimensionHandle batch;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(step_ids, 1), c->Dim(lengths, 0), &batch));
      c->set_output(0, step_ids);
      return OkStatus();
    })
    .Doc("Follows the beams of a beam search back from their last step.");

namespace functor {

template <typename Device, typename T>
struct GatherTree;

template <>
struct GatherTree<CPUDevice, int32> {
  void operator()(OpKernelContext* ctx, TTypes<int32, 3>::ConstTensor step_ids,
                  TTypes<int32, 3>::ConstTensor parent_ids, TTypes<int32>::ConstVec max_sequence_lengths,
                  const int32 end_token, TTypes<int32, 3>::Tensor beams) {
    const int64_t max_time = parent_ids.dimension(0);
    const int64_t batch_size = parent_ids.dimension(1);
    const int64_t beam_width = parent_ids.dimension(2);
    beams.setConstant(end_token);
    if (max_time == 0 || batch_size == 0 || beam_width == 0) return;

    auto DoWork = [&, ctx, end_token](int64_t start, int64_t limit) {
      for (int64_t i = start; i < limit; ++i) {
        const int64_t batch = i / beam_width;
        const int64_t beam = i % beam_width;
        const int64_t length = std::min<int64_t>(max_time, max_sequence_lengths(batch));
        if (length <= 0) continue;
        beams(length - 1, batch, beam) = step_ids(length - 1, batch, beam);
        int32 parent = parent_ids(length - 1, batch, beam);
        for (int64_t level = length - 2; level >= 0; --level) {
          if (parent < 0 || parent >= beam_width) {
            ctx->SetStatus(errors::InvalidArgument("Saw invalid parent id ", parent, " at (batch, time, beam) == (",
                                                   batch, ", ", level, ", ", beam, ")"));
            return;
          }
          beams(level, batch, beam) = step_ids(level, batch, parent);
          parent = parent_ids(level, batch, parent);
        }
        bool finished = false;
        for (int64_t time = 0; time < length; ++time) {
          if (finished) {
            beams(time, batch, beam) = end_token;
          } else if (beams(time, batch, beam) == end_token) {
            finished = true;
          }
        }
      }
    };
    const int64_t cost = 10 * max_time + 10;
    auto thread_pool = ctx->device()->tensorflow_cpu_worker_threads()->workers;
    thread_pool->ParallelFor(batch_size * beam_width, cost, DoWork);
  }
};

}  // namespace functor

template <typename Device, typename T>
class BeamGatherTreeOp : public OpKernel {
 public:
  explicit BeamGatherTreeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& step_ids = ctx->input(0);
    const Tensor& parent_ids = ctx->input(1);
    const Tensor& max_sequence_lengths = ctx->input(2);
    const Tensor& end_token = ctx->input(3);
    const TensorShape& step_ids_shape = step_ids.shape();
    OP_REQUIRES(ctx, step_ids_shape.dims() == 3,
                errors::InvalidArgument("step_ids must be a 3-tensor, saw shape: ", step_ids_shape.DebugString()));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(max_sequence_lengths.shape()),
                errors::InvalidArgument("max_sequence_lengths must be a vector, saw shape: ",
                                        max_sequence_lengths.shape().DebugString()));
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(end_token.shape()),
                errors::InvalidArgument("end_token must be a scalar, saw shape: ", end_token.shape().DebugString()));
    OP_REQUIRES(ctx, step_ids_shape == parent_ids.shape(),
                errors::InvalidArgument("step_ids and parent_ids differ in shape"));
    OP_REQUIRES(ctx, step_ids_shape.dim_size(1) == max_sequence_lengths.shape().dim_size(0),
                errors::InvalidArgument("there must be one maximal length per batch entry"));
    Tensor* beams;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, step_ids_shape, &beams));
    typename TTypes<T, 3>::ConstTensor step_ids_t(step_ids.tensor<T, 3>());
    typename TTypes<T, 3>::ConstTensor parent_ids_t(parent_ids.tensor<T, 3>());
    typename TTypes<int32>::ConstVec max_seq_lens_t = max_sequence_lengths.vec<int32>();
    typename TTypes<T, 3>::Tensor beams_t(beams->tensor<T, 3>());
    functor::GatherTree<Device, T>()(ctx, step_ids_t, parent_ids_t, max_seq_lens_t, end_token.scalar<T>()(), beams_t);
  }
};

#define REGISTER_KERNEL(T) \
  REGISTER_KERNEL_BUILDER(Name("BeamGatherTree").Device(DEVICE_CPU).TypeConstraint<T>("T"), BeamGatherTreeOp<CPUDevice, T>);
REGISTER_KERNEL(int32);
#undef REGISTER_KERNEL

}  // namespace beams
}  // namespace tensorflow
