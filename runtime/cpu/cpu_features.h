// The features and caches of this processor, each asked for once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mpc::runtime {

/// The CPU kernels are compiled for x86-64-v3. Errors (UNAVAILABLE): the features of it that the processor lacks.
absl::Status CheckCpuBaseline();

/// True if the processor multiplies bf16 natively (AVX512_BF16).
bool HasAvx512Bf16();

/// Whether a feature that a Program requires is there. Known names: "avx2", "fma", "f16c", "avx512f", "avx512cd",
/// "avx512dq", "avx512bw", "avx512vl", "avx512_bf16"; an unknown name is absent.
bool HasCpuFeature(std::string_view name);

/// Bytes of the largest caches of `processors`, as Linux lists them below `folder`. A cache that several processors
/// share counts once. 0 where none is listed.
std::size_t ListedCacheBytes(const std::string& folder, absl::Span<const int> processors);

/// Bytes of the last-level caches of the processors that this process may run on, as the system lists them. Each cache
/// counts once. 32 MiB where the system lists none. A virtual machine may have only a share of them.
std::size_t LastLevelCacheBytes();

}  // namespace mpc::runtime
