// What kernels ask of the processes that train together: sums and copies over all of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/dtype.h"

namespace mpc {

/// How elements of several processes become one.
///
/// kSum adds in a balanced binary tree over ranks: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)). Every addition rounds to
/// the element type. f16 and bf16 are added in f32 and rounded once for each addition, to nearest even. A NaN or an
/// infinity of any rank reaches the sum. kMax and kMin are for whole numbers.
enum class Reduction : std::uint8_t { kSum, kMax, kMin };

/// One operand of a reduction. `input` and `output` are equal or do not overlap.
struct ReducedPart {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t elements = 0;
  DType dtype = DType::kF32;  ///< kSum: f32, f16, bf16, i32 or i64; kMax, kMin: i32 or i64
  Reduction reduction = Reduction::kSum;
};

/// A group of processes, each with a rank from 0 to size() - 1.
///
/// Every process calls the same functions in the same order with the same sizes and types. A function returns when the
/// process has what it asked for; memory is on the host. Results are the same bits in all processes, and the same with
/// every transport. Not thread-safe.
///
/// Errors stay: after one, every call returns it at once. INVALID_ARGUMENT: an unknown type or reduction, an operand
/// that is null, ranks that call different functions or sizes (where the transport sees it). UNAVAILABLE: a process
/// has died or left; the message names its rank where that is known. DEADLINE_EXCEEDED: a process has not come within
/// the time limit of the group; the message says who was waited for, in what, and how long.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// "shared", "mpi".
  virtual std::string_view transport() const = 0;
  virtual int rank() const = 0;
  /// A power of two where kSum is asked for; other sizes are an error of AllReduce and ReduceScatter by name.
  virtual int size() const = 0;
  /// The first error, which every later call returns. A step of a Program ends at the instruction that met it.
  virtual absl::Status status() const = 0;
  /// How long a function waits for another process.
  virtual std::chrono::milliseconds time_limit() const { return std::chrono::seconds(60); }
  /// Looks, without waiting, whether a process has died, left or failed, as far as the transport sees that. A GPU's
  /// step asks while the host waits for it. Errors: UNAVAILABLE, and status().
  virtual absl::Status LookForLoss() { return status(); }
  /// Whether AllReduce is AllReduceInAnyOrder. What a GPU exchanges for this group then has its transport's order, too.
  virtual bool adds_in_any_order() const { return false; }

  /// Reduces all of `parts` as one message. Parts may have several types.
  virtual absl::Status AllReduce(absl::Span<const ReducedPart> parts) = 0;
  /// AllReduce, but with the transport's own order of additions. Each addition rounds as it does in AllReduce, and all
  /// processes have the same bits. Another number of processes or another transport may have others. A transport
  /// without an order of its own has that of AllReduce.
  virtual absl::Status AllReduceInAnyOrder(absl::Span<const ReducedPart> parts) { return AllReduce(parts); }
  /// Reduces `part`, of which rank r keeps elements [r * n, (r + 1) * n) with n = elements / size(), which divides.
  /// `output` has n elements.
  virtual absl::Status ReduceScatter(const ReducedPart& part) = 0;
  /// `output` becomes the `bytes` of every rank's `input`, in the order of ranks: size() * bytes.
  virtual absl::Status AllGather(const void* input, void* output, std::size_t bytes) = 0;
  /// `data` of every process becomes that of `root`.
  virtual absl::Status Broadcast(void* data, std::size_t bytes, int root) = 0;
  /// Returns when every process has called it.
  virtual absl::Status Barrier() = 0;
};

}  // namespace mpc
