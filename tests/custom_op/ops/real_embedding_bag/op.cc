#define EIGEN_USE_THREADS

#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace layers {

typedef Eigen::ThreadPoolDevice CPUDevice;

enum class Combiner { kSum, kMean };

REGISTER_OP("BagOfEmbeddings")
    .Input("indices: Tindices")
    .Input("params: T")
    .Input("weights: T")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tindices: {int32, int64}")
    .Attr("combiner: {'SUM', 'MEAN'} = 'SUM'")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle indices, params, weights, unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &indices));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &params));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 2, &weights));
      TF_RETURN_IF_ERROR(c->Merge(indices, weights, &unused));
      c->set_output(0, c->Matrix(c->Dim(indices, 0), c->Dim(params, 1)));
      return absl::OkStatus();
    });

namespace functor {

template <typename Device, typename T, typename Tindices>
struct EmbeddingBagFunctor;

template <typename T, typename Tindices>
struct EmbeddingBagFunctor<CPUDevice, T, Tindices> {
  static constexpr int64_t kPacketSize = Eigen::internal::packet_traits<T>::size;
  using VectorMap = Eigen::Map<Eigen::Vector<T, Eigen::Dynamic>>;
  using ConstVectorMap = Eigen::Map<const Eigen::Vector<T, Eigen::Dynamic>>;

  void operator()(const CPUDevice& device, typename TTypes<Tindices, 2>::ConstTensor indices,
                  typename TTypes<T, 2>::ConstTensor params, typename TTypes<T, 2>::ConstTensor weights,
                  typename TTypes<T, 2>::Tensor output, Combiner combiner) {
    const Eigen::Index bags = indices.dimension(0);
    const Eigen::Index sequence_length = indices.dimension(1);
    const Eigen::Index output_dim = params.dimension(1);

    const auto work = [&](Eigen::Index start, Eigen::Index end) {
      for (Eigen::Index bag = start; bag < end; ++bag) {
        VectorMap output_slice(&output(bag, 0), output_dim);
        output_slice.setZero();
        for (Eigen::Index seq = 0; seq < sequence_length; ++seq) {
          const ConstVectorMap params_slice(&params(indices(bag, seq), 0), output_dim);
          output_slice += params_slice * weights(bag, seq);
        }
        if (combiner == Combiner::kMean) output_slice /= static_cast<T>(sequence_length);
      }
    };

    const double bytes_loaded = sequence_length * (sizeof(Tindices) + sizeof(T) + output_dim * sizeof(T));
    const double bytes_stored = output_dim * sizeof(T);
    const double compute_cycles = (sequence_length * output_dim) *
                                  (Eigen::TensorOpCost::AddCost<T>() + Eigen::TensorOpCost::MulCost<T>());
    const Eigen::TensorOpCost cost(bytes_loaded, bytes_stored, compute_cycles, /*vectorized=*/true, kPacketSize);
    device.parallelFor(bags, cost, work);
  }
};

}  // namespace functor

template <typename Device, typename T, typename Tindices>
class BagOfEmbeddingsOp : public OpKernel {
 public:
  explicit BagOfEmbeddingsOp(OpKernelConstruction* context) : OpKernel(context) {
    std::string combiner;
    OP_REQUIRES_OK(context, context->GetAttr("combiner", &combiner));
    OP_REQUIRES(context, combiner == "SUM" || combiner == "MEAN",
                errors::InvalidArgument("Only support 'SUM' and 'MEAN' combiner."));
    combiner_ = combiner == "SUM" ? Combiner::kSum : Combiner::kMean;
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& indices = context->input(0);
    const Tensor& params = context->input(1);
    const Tensor& weights = context->input(2);
    const TensorShape& indices_shape = indices.shape();
    const TensorShape& params_shape = params.shape();
    OP_REQUIRES(context, TensorShapeUtils::IsMatrix(indices_shape),
                errors::InvalidArgument("indices shape should be 2-D."));
    OP_REQUIRES(context, indices_shape == weights.shape(),
                errors::InvalidArgument("Shape of indices and weights should be equal."));
    OP_REQUIRES(context, TensorShapeUtils::IsMatrix(params_shape),
                errors::InvalidArgument("params shape should be 2-D."));
    OP_REQUIRES(context, indices_shape.dim_size(1) > 0, errors::InvalidArgument("bags must not be empty."));

    const auto flat = indices.flat<Tindices>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      OP_REQUIRES(context, flat(i) >= 0 && flat(i) < params_shape.dim_size(0),
                  errors::InvalidArgument("indices(", i, ") = ", flat(i), " is not a row of params."));
    }

    TensorShape output_shape;
    OP_REQUIRES_OK(context, TensorShape::BuildTensorShape({indices_shape.dim_size(0), params_shape.dim_size(1)},
                                                          &output_shape));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, output_shape, &output));
    if (output->NumElements() == 0) return;
    functor::EmbeddingBagFunctor<Device, T, Tindices>()(context->eigen_device<Device>(),
                                                        indices.tensor<Tindices, 2>(), params.tensor<T, 2>(),
                                                        weights.tensor<T, 2>(), output->tensor<T, 2>(), combiner_);
  }

 private:
  Combiner combiner_;
};

#define REGISTER_CPU_KERNEL(T)                                                                                   \
  REGISTER_KERNEL_BUILDER(                                                                                       \
      Name("BagOfEmbeddings").Device(DEVICE_CPU).TypeConstraint<T>("T").TypeConstraint<int32>("Tindices"),     \
      BagOfEmbeddingsOp<CPUDevice, T, int32>);                                                                   \
  REGISTER_KERNEL_BUILDER(                                                                                       \
      Name("BagOfEmbeddings").Device(DEVICE_CPU).TypeConstraint<T>("T").TypeConstraint<int64_t>("Tindices"),   \
      BagOfEmbeddingsOp<CPUDevice, T, int64_t>);
REGISTER_CPU_KERNEL(float);
REGISTER_CPU_KERNEL(double);
#undef REGISTER_CPU_KERNEL

}  // namespace layers
}  // namespace tensorflow
