// The CUDA kernel of ScaledRows.

#include <cuda_runtime.h>

#include <algorithm>

#include "scaled_rows_gpu.h"

namespace scaled_rows {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65535;

// A kernel cannot refuse its input: what is out of range gives zeros, and is never read.
template <typename T, typename Index>
__global__ void ScaledRowsOnGpu(const T* values, const Index* rows, T factor, T* picked, int64_t count,
                                int64_t height, int64_t width) {
  const int64_t stride = static_cast<int64_t>(blockDim.x) * gridDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count * width; i += stride) {
    const int64_t row = rows[i / width];
    picked[i] = row >= 0 && row < height ? factor * values[row * width + i % width] : T(0);
  }
}

}  // namespace

template <typename T, typename Index>
const char* LaunchScaledRows(void* stream, const T* values, const Index* rows, T factor, T* picked, int64_t count,
                             int64_t height, int64_t width) {
  const int64_t elements = count * width;
  if (elements == 0) return nullptr;  // a grid of no blocks is an error
  const int blocks = static_cast<int>(std::min((elements + kThreads - 1) / kThreads, kMaxBlocks));
  ScaledRowsOnGpu<T, Index><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(values, rows, factor, picked,
                                                                                       count, height, width);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

#define INSTANTIATE(T, INDEX)                                                                                     \
  template const char* LaunchScaledRows<T, INDEX>(void*, const T*, const INDEX*, T, T*, int64_t, int64_t, int64_t)
INSTANTIATE(float, int32_t);
INSTANTIATE(float, int64_t);
INSTANTIATE(double, int32_t);
INSTANTIATE(double, int64_t);

}  // namespace scaled_rows
