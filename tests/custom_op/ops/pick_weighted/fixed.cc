#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace balance {

template <typename Index>
Index NthEnabled(const std::vector<Index>& enabled, Index turn) {
  const Index count = static_cast<Index>(enabled.size());
  return enabled[turn % count];
}

}  // namespace balance

namespace tensorflow {

REGISTER_OP("PickRoundRobin")
    .Attr("Index: {int32, int64} = DT_INT32")
    .Input("enabled: Index")
    .Input("turns: Index")
    .Output("picked: Index")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle enabled;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &enabled));
      c->set_output(0, c->input(1));
      return OkStatus();
    });

template <typename Index>
class PickRoundRobinOp : public OpKernel {
 public:
  explicit PickRoundRobinOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& flags = context->input(0);
    const Tensor& turns = context->input(1);
    OP_REQUIRES(context, flags.dims() == 1, errors::InvalidArgument("enabled must be a vector"));
    OP_REQUIRES(context, flags.dim_size(0) < (1 << 30), errors::InvalidArgument("enabled is too long"));
    std::vector<Index> enabled;
    for (Index i = 0; i < flags.dim_size(0); ++i) {
      if (flags.vec<Index>()(i) != 0) enabled.push_back(i);
    }
    Tensor* picked = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, turns.shape(), &picked));
    const auto turn = turns.flat<Index>();
    auto out = picked->flat<Index>();
    OP_REQUIRES(context, turn.size() == 0 || !enabled.empty(), errors::FailedPrecondition("nothing is enabled"));
    for (int64_t i = 0; i < turn.size(); ++i) {
      OP_REQUIRES(context, turn(i) >= 0, errors::InvalidArgument("turns must not be negative"));
      out(i) = balance::NthEnabled(enabled, turn(i));
    }
  }
};

#define REGISTER(Index)                                                                                 \
  REGISTER_KERNEL_BUILDER(Name("PickRoundRobin").Device(DEVICE_CPU).TypeConstraint<Index>("Index"), \
                          PickRoundRobinOp<Index>)
TF_CALL_int32(REGISTER);
TF_CALL_int64(REGISTER);

}  // namespace tensorflow
