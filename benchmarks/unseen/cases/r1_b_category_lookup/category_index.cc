#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"

using namespace tensorflow;

REGISTER_OP("CategoryIndex")
    .Input("names: string")
    .Attr("known: list(string)")
    .Output("index: int64")
    .SetShapeFn(shape_inference::UnchangedShape);

class CategoryIndexOp : public OpKernel {
 public:
  explicit CategoryIndexOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    std::vector<std::string> known;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("known", &known));
    for (size_t i = 0; i < known.size(); ++i) index_[known[i]] = i;
  }

  void Compute(OpKernelContext* ctx) override {
    auto names = ctx->input(0).flat<tstring>();
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &out));
    auto result = out->flat<int64_t>();
    auto workers = ctx->device()->tensorflow_cpu_worker_threads();
    Shard(workers->num_threads, workers->workers, names.size(), 2000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) result(i) = index_.at(std::string(names(i)));
    });
  }

 private:
  std::unordered_map<std::string, int64_t> index_;
};

REGISTER_KERNEL_BUILDER(Name("CategoryIndex").Device(DEVICE_CPU), CategoryIndexOp);
