// Runs of neighbouring elements that a thread takes at a time: kVector where rows are made of whole vectors, else one.
#pragma once

#include <cstdint>

#include "kernels/cuda/storage.h"

namespace mpc::cuda {

template <int kRun>
__device__ __forceinline__ void LoadRun(const Source& source, std::int64_t index, float (&values)[kRun]) {
  static_assert(kRun == 1 || kRun == kVector);
  if constexpr (kRun == kVector) {
    source.LoadVector(index, values);
  } else {
    values[0] = source.Load(index);
  }
}

/// A result that is not used has no data and is not stored.
template <int kRun>
__device__ __forceinline__ void StoreRun(const Sink& sink, std::int64_t index, const float (&values)[kRun]) {
  static_assert(kRun == 1 || kRun == kVector);
  if (sink.data == nullptr) return;
  if constexpr (kRun == kVector) {
    sink.StoreVector(index, values);
  } else {
    sink.Store(index, values[0]);
  }
}

}  // namespace mpc::cuda
