#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

/* Ported from the C library of the search team. Gives -1 when there is no memory. */
static int64_t Distance(const char *a, size_t m, const char *b, size_t n)
{
    size_t i, j;
    int64_t answer;
    int64_t *previous = (int64_t *)calloc(n + 1, sizeof(int64_t));
    int64_t *current = (int64_t *)calloc(n + 1, sizeof(int64_t));

    if (previous == NULL || current == NULL) {
        free(previous);
        free(current);
        return -1;
    }
    if (m == n && memcmp(a, b, n) == 0) {
        free(previous);
        free(current);
        return 0;
    }
    for (j = 0; j <= n; j++) previous[j] = j;
    for (i = 1; i <= m; i++) {
        current[0] = i;
        for (j = 1; j <= n; j++) {
            int64_t replaced = previous[j - 1] + (a[i - 1] != b[j - 1]);
            current[j] = std::min(replaced, std::min(previous[j], current[j - 1]) + 1);
        }
        std::swap(previous, current);
    }
    answer = previous[n];
    free(previous);
    free(current);
    return answer;
}

REGISTER_OP("EditDistances")
    .Input("left: string")
    .Input("right: string")
    .Output("distances: int64")
    .SetShapeFn([](shape_inference::InferenceContext *c) {
      shape_inference::ShapeHandle both;
      TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &both));
      c->set_output(0, both);
      return absl::OkStatus();
    });

class EditDistancesOp : public OpKernel {
 public:
  explicit EditDistancesOp(OpKernelConstruction *context) : OpKernel(context) {}

  void Compute(OpKernelContext *context) override {
    const Tensor &left = context->input(0);
    const Tensor &right = context->input(1);
    OP_REQUIRES(context, left.shape() == right.shape(), errors::InvalidArgument("left and right differ in shape"));
    Tensor *distances = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, left.shape(), &distances));
    for (int64_t i = 0; i < left.NumElements(); i++) {
      const tstring &a = left.flat<tstring>()(i);
      const tstring &b = right.flat<tstring>()(i);
      const int64_t distance = Distance(a.data(), a.size(), b.data(), b.size());
      OP_REQUIRES(context, distance >= 0, errors::ResourceExhausted("no memory for a table of ", b.size()));
      distances->flat<int64_t>()(i) = distance;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("EditDistances").Device(DEVICE_CPU), EditDistancesOp);
