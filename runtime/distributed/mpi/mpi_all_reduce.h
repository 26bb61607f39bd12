// Sums by MPI's own all-reduce, whose order of additions is MPI's.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"
#include "runtime/distributed/mpi/mpi_exchange.h"

namespace mpc::distributed {

/// MPI chooses which elements it adds first. Two elements are added as CombineElements adds them, so that f16 and bf16
/// round as with every transport. MPI promises the same bits in all processes.
class MpiAllReduce {
 public:
  /// `exchange` must outlive this.
  explicit MpiAllReduce(MpiExchange* exchange) : exchange_(*exchange) {}
  ~MpiAllReduce();
  MpiAllReduce(const MpiAllReduce&) = delete;
  MpiAllReduce& operator=(const MpiAllReduce&) = delete;

  /// Whether `parts` are sums of one floating type. Of whole numbers every order has the same bits.
  static bool Takes(absl::Span<const ReducedPart> parts);
  /// Reduces `parts`, which it takes. After an error MPI may still write to their memory and to that of this object.
  absl::Status Run(absl::Span<const ReducedPart> parts);

 private:
  std::byte* Pack(absl::Span<const ReducedPart> parts);
  void Unpack(absl::Span<const ReducedPart> parts) const;
  /// Sums elements of `dtype` in all processes. `input` and `output` are equal, or do not overlap.
  absl::Status Sum(DType dtype, const void* input, void* output, std::size_t elements);

  MpiExchange& exchange_;
  std::map<DType, MPI_Op> additions_;
  std::vector<std::byte> memory_;  ///< several parts, one behind the other
};

}  // namespace mpc::distributed
