#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("IslandSize")
    .Input("land: bool")
    .Input("start: int32")
    .Output("size: int64")
    .SetShapeFn(shape_inference::ScalarShape);

namespace {

struct Island {
  TTypes<bool>::ConstMatrix land;
  std::vector<bool> visited;
  int64_t size = 0;

  bool Enter(int64_t y, int64_t x) {
    if (y < 0 || y >= land.dimension(0) || x < 0 || x >= land.dimension(1)) return false;
    const int64_t cell = y * land.dimension(1) + x;
    if (!land(y, x) || visited[cell]) return false;
    visited[cell] = true;
    ++size;
    return true;
  }

  void Spread(int64_t y, int64_t x) {
    if (!Enter(y, x)) return;
    Spread(y + 1, x);
    Spread(y - 1, x);
    Spread(y, x + 1);
    Spread(y, x - 1);
  }
};

}  // namespace

class IslandSizeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& land = context->input(0);
    const Tensor& start = context->input(1);
    OP_REQUIRES(context, land.dims() == 2, errors::InvalidArgument("land must be a matrix"));
    OP_REQUIRES(context, start.dims() == 1 && start.NumElements() == 2,
                errors::InvalidArgument("start must be [y, x]"));
    Tensor* size = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &size));
    Island island{land.matrix<bool>(), std::vector<bool>(land.NumElements(), false)};
    island.Spread(start.vec<int32>()(0), start.vec<int32>()(1));
    size->scalar<int64_t>()() = island.size;
  }
};

REGISTER_KERNEL_BUILDER(Name("IslandSize").Device(DEVICE_CPU), IslandSizeOp);

}  // namespace tensorflow
