#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace features {

using namespace ::tensorflow;

namespace {

uint64 Hash(absl::string_view text) {
  uint64 state = 0x9e3779b97f4a7c15ull;
  for (const char character : text) {
    state ^= static_cast<unsigned char>(character);
    state *= 0xff51afd7ed558ccdull;
    state ^= state >> 32;
  }
  return state;
}

}  // namespace

REGISTER_OP("HashedCross")
    .Input("left: string")
    .Input("right: string")
    .Output("crossed: int64")
    .Attr("buckets: int >= 1")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle both;
      TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &both));
      c->set_output(0, both);
      return absl::OkStatus();
    });

class HashedCrossOp : public OpKernel {
 public:
  explicit HashedCrossOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    int64_t buckets;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("buckets", &buckets));
    OP_REQUIRES(ctx, buckets > 0, errors::InvalidArgument("buckets must be positive, not ", buckets));
    buckets_ = static_cast<uint64>(buckets);
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& left = ctx->input(0);
    const Tensor& right = ctx->input(1);
    OP_REQUIRES(ctx, left.shape() == right.shape(),
                errors::InvalidArgument("left ", left.shape().DebugString(), " and right ",
                                        right.shape().DebugString(), " must have the same shape"));
    Tensor* crossed = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, left.shape(), &crossed));
    const auto lefts = left.flat<tstring>();
    const auto rights = right.flat<tstring>();
    auto ids = crossed->flat<int64_t>();
    for (int64_t i = 0; i < lefts.size(); ++i) {
      const std::string key = absl::StrCat(absl::string_view(lefts(i)), "_X_", absl::string_view(rights(i)));
      ids(i) = static_cast<int64_t>(Hash(key) % buckets_);
    }
  }

 private:
  uint64 buckets_;
};

REGISTER_KERNEL_BUILDER(Name("HashedCross").Device(DEVICE_CPU), HashedCrossOp);

}  // namespace features
