// The precision of a step as a lock file holds it: small, sorted, independent of the batch size. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/report/cast_statistics.h"
#include "compiler/report/precision_table.h"

namespace mpc::compiler {

/// Bytes as a function of the samples of a batch.
struct SampleBytes {
  std::int64_t fixed = 0;
  std::int64_t a_sample = 0;
  bool linear = true; ///< false: they grow otherwise, and both numbers are 0

  friend bool operator==(const SampleBytes &, const SampleBytes &) = default;
};

/// The casts of one kind between two types, of what an operation made.
struct LockedCast {
  CastKind kind = CastKind::Other;
  std::string from;
  std::string to;
  std::int64_t count = 0;
  SampleBytes bytes; ///< read and written

  friend bool operator==(const LockedCast &, const LockedCast &) = default;
};

/// The operations of one name and direction in one Cell. An argument of the step that is cast stands here, too: its
/// `operation` is its role, `count` is 0, and `types` and `reason` are "-".
struct LockedOperation {
  std::string cell;      ///< "lenet5/conv1"; "-" outside Cells. For an argument its name, "-" for inputs
  std::string operation; ///< "conv2d"
  std::string direction; ///< "forward", "backward" or "update"
  std::int64_t count = 0;
  std::string types; ///< "f16 -> f16"; where they differ "2 x f16 -> f16 / 1 x f32 -> f32"
  SampleBytes bytes; ///< bytes of operands and results
  std::vector<LockedCast> casts;
  std::string reason; ///< as in PrecisionRow, "-" for none; written as `types` are where they differ

  friend bool operator==(const LockedOperation &, const LockedOperation &) = default;
};

/// What a lock is of. Two locks are comparable where all of it is equal.
struct LockSubject {
  std::string network;         ///< type of the network's Cell: "LeNet5"
  std::string step;            ///< "train_step", "predict"
  std::string device = "cpu";  ///< "cpu", "cuda"
  std::string level;           ///< "O2"
  std::string low;             ///< the low type as it was asked for: "f16", "bf16", "auto"; "-" at O0
  std::string loss_scale;      ///< "none", "static", "dynamic"
  std::int64_t parameters = 0; ///< tensors
  std::int64_t elements = 0;   ///< elements of all parameters

  friend bool operator==(const LockSubject &, const LockSubject &) = default;
};

struct PrecisionLock {
  LockSubject subject;
  std::vector<LockedOperation> operations; ///< in the order of ComesBefore, each Cell, operation and direction once

  SampleBytes bytes() const;     ///< bytes that operations read and write
  SampleBytes castBytes() const; ///< bytes that casts read and write
  std::int64_t casts() const;    ///< number of casts
};

/// The sum. It is not linear where one of both is not.
SampleBytes operator+(const SampleBytes &a, const SampleBytes &b);

/// The order of lines: by Cell, operation, direction. Numbers in Cell paths count as numbers: blocks/2 comes before
/// blocks/10.
bool ComesBefore(const LockedOperation &a, const LockedOperation &b);

/// A step on a number of samples.
struct SampledTable {
  const PrecisionTable *table = nullptr;
  std::int64_t samples = 0;
};

/// The operations of one step, which \p first and \p second have on different numbers of samples. Reasons are those of
/// \p first. Errors (FAILED_PRECONDITION): an operation or a cast that only one of both has, or that has other types.
absl::StatusOr<std::vector<LockedOperation>> LockOperations(const SampledTable &first, const SampledTable &second);

} // namespace mpc::compiler
