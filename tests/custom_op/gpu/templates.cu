// A healthy library that leans on CUDA's own templates: what the checkers think of those is not its fault.

#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#define EXPORT extern "C" __attribute__((visibility("default")))

constexpr int kThreads = 128;

__global__ void SumsOfBlocks(const float* values, int count, float* sums) {
  using Reduce = cub::BlockReduce<float, kThreads>;
  using Scan = cub::BlockScan<float, kThreads>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
  } shared;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = i < count ? values[i] : 0.0f;
  const float sum = Reduce(shared.reduce).Sum(value);
  __syncthreads();
  float before;
  Scan(shared.scan).ExclusiveSum(value, before);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum + before;
}

EXPORT int sums_and_sorts() {
  const int count = 100000, blocks = (count + kThreads - 1) / kThreads;
  thrust::device_vector<float> values(count, 1.0f), sums(blocks);
  SumsOfBlocks<<<blocks, kThreads>>>(thrust::raw_pointer_cast(values.data()), count,
                                     thrust::raw_pointer_cast(sums.data()));
  thrust::inclusive_scan(values.begin(), values.end(), values.begin());
  thrust::sort(values.begin(), values.end());
  const float last = values.back(), first = sums.front();
  return static_cast<int>(cudaDeviceSynchronize()) + (last == count ? 0 : 1000) + (first == kThreads ? 0 : 2000);
}
