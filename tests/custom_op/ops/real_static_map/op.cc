#include <unordered_map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tensorflow {
namespace speech {
namespace {

REGISTER_OP("FixedMapStringInt")
    .Input("x: string")
    .Output("y: int32")
    .Attr("keys: list(string) = []")
    .Attr("vals: list(int) = []")
    .Attr("unk: int = -1")
    .SetShapeFn(shape_inference::UnchangedShape);

REGISTER_OP("FixedMapIntInt")
    .Input("x: int32")
    .Output("y: int32")
    .Attr("keys: list(int) = []")
    .Attr("vals: list(int) = []")
    .Attr("unk: int = -1")
    .SetShapeFn(shape_inference::UnchangedShape);

REGISTER_OP("FixedMapIntString")
    .Input("x: int32")
    .Output("y: string")
    .Attr("keys: list(int) = []")
    .Attr("vals: list(string) = []")
    .Attr("unk: string = ''")
    .SetShapeFn(shape_inference::UnchangedShape);

struct HashOf {
  size_t operator()(const tstring& text) const { return std::hash<std::string>()(std::string(text)); }
  size_t operator()(int32_t number) const { return std::hash<int32_t>()(number); }
};

template <typename K, typename V>
class FixedMapOp : public OpKernel {
 public:
  explicit FixedMapOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    std::vector<K> keys;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("keys", &keys));
    std::vector<V> vals;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("vals", &vals));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("unk", &unk_));
    OP_REQUIRES(ctx, keys.size() == vals.size(),
                errors::InvalidArgument("keys and vals are different sizes: ", keys.size(), " / ", vals.size()));
    for (size_t i = 0; i < keys.size(); ++i) {
      OP_REQUIRES(ctx, dict_.insert({keys[i], vals[i]}).second,
                  errors::InvalidArgument("keys have duplicates: ", keys[i]));
    }
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    Tensor* y;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));

    auto tx = x.flat<K>();
    auto ty = y->flat<V>();
    const int64_t total = tx.size();
    auto workers = ctx->device()->tensorflow_cpu_worker_threads();
    Shard(workers->num_threads, workers->workers, total, 250, [this, &tx, &ty](int64_t start, int64_t limit) {
      for (int64_t i = start; i < limit; ++i) {
        auto it = dict_.find(tx(i));
        ty(i) = it != dict_.end() ? it->second : unk_;
      }
    });
  }

 protected:
  std::unordered_map<K, V, HashOf> dict_;
  V unk_;
};

REGISTER_KERNEL_BUILDER(Name("FixedMapStringInt").Device(DEVICE_CPU), FixedMapOp<tstring, int32_t>);
REGISTER_KERNEL_BUILDER(Name("FixedMapIntInt").Device(DEVICE_CPU), FixedMapOp<int32_t, int32_t>);
REGISTER_KERNEL_BUILDER(Name("FixedMapIntString").Device(DEVICE_CPU), FixedMapOp<int32_t, tstring>);

}  // namespace
}  // namespace speech
}  // namespace tensorflow
