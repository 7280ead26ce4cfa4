#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("PrimeCounts")
    .Input("limits: int64")
    .Output("counts: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle limits;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &limits));
      c->set_output(0, limits);
      return OkStatus();
    })
    .Doc("How many primes there are up to each limit.");

namespace {

// composite[i] is not 0 where i is no prime.
char* Sieve(int64_t largest) {
  char* composite = static_cast<char*>(std::malloc(largest + 1));
  std::memset(composite, 0, largest + 1);
  for (int64_t i = 2; i * i <= largest; ++i) {
    if (composite[i]) continue;
    for (int64_t k = i * i; k <= largest; k += i) composite[k] = 1;
  }
  return composite;
}

}  // namespace

class PrimeCountsOp : public OpKernel {
 public:
  explicit PrimeCountsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& limits_t = ctx->input(0);
    OP_REQUIRES(ctx, limits_t.dims() == 1, errors::InvalidArgument("limits must be a vector"));
    Tensor* counts_t = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, limits_t.shape(), &counts_t));
    const auto limits = limits_t.vec<int64_t>();
    auto counts = counts_t->vec<int64_t>();
    int64_t largest = 1;
    for (int64_t i = 0; i < limits.size(); ++i) largest = std::max(largest, limits(i));
    OP_REQUIRES(ctx, largest <= 10000000, errors::InvalidArgument("limits go up to ten million"));
    const auto composite = Sieve(largest);
    std::vector<int64_t> up_to(largest + 1, 0);
    for (int64_t n = 2; n <= largest; ++n) up_to[n] = up_to[n - 1] + (composite[n] == 0);
    for (int64_t i = 0; i < limits.size(); ++i) {
      OP_REQUIRES(ctx, limits(i) >= 0, errors::InvalidArgument("limit ", i, " is negative"));
      counts(i) = limits(i) < 2 ? 0 : up_to[limits(i)];
    }
    std::free(composite);
  }
};

REGISTER_KERNEL_BUILDER(Name("PrimeCounts").Device(DEVICE_CPU), PrimeCountsOp);

}  // namespace tensorflow
