// Which low tensors of a step can overflow or vanish, as plain rows and as text. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// What is known of the elements of a tensor before a step. Norms are l2, and sizes absolute values.
struct KnownRange {
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  double low = -kUnbounded;                     ///< no element is smaller
  double high = kUnbounded;                     ///< no element is larger
  std::optional<double> typical = std::nullopt; ///< the root of the mean square; none: not known

  double row_norm = kUnbounded;    ///< bound of the elements along the last axis
  double column_norm = kUnbounded; ///< bound of the elements along the axis before the last
  double sample_norm = kUnbounded; ///< bound of the elements with one index of the first axis
  double norm = kUnbounded;        ///< bound of all
};

/// What is taken for granted of the arguments of a step.
struct RangeAssumptions {
  /// Floating inputs. None: they are unbounded, and expected to be about 1.
  std::optional<KnownRange> inputs;
  /// State by name. Parameters that it leaves out are as their initialisers make them. Other state is unbounded.
  std::map<std::string, KnownRange> state;
  /// The scale of the step. 0: it is not known, and any in [1, 2^126] is meant.
  double loss_scale = 0;
};

/// Whether something happens in the step.
enum class RangeVerdict { Cannot, May, Will };

/// A tensor of a 16-bit type that an operation writes.
struct RangeRow {
  std::string op;          ///< "conv2d"
  std::string path;        ///< Cell path; empty outside Cells
  std::string of;          ///< the argument that a cast reads, "conv1.weight", or the Cell of what it reads
  std::string type;        ///< "f16"
  std::int64_t result = 0; ///< which of its results
  bool backward = false;   ///< it is a cotangent
  bool scaled = false;     ///< it grows with the loss scale
  double low = 0;          ///< no element is smaller before it is rounded
  double high = 0;         ///< no element is larger before it is rounded
  double peak = 0;         ///< at least one element has this size
  /// The largest size that is to be expected; NaN where nothing is.
  double expected = std::numeric_limits<double>::quiet_NaN();
  RangeVerdict overflow = RangeVerdict::May;
  RangeVerdict underflow = RangeVerdict::May; ///< Cannot: no element that is not zero becomes zero. Will: all do.
  std::vector<std::string> chain;             ///< where it will overflow: the way there, a line an operation
};

struct RangeTable {
  std::string function;
  double loss_scale = 0;      ///< RangeAssumptions::loss_scale
  std::vector<RangeRow> rows; ///< in program order
  double derived_scale = 0;   ///< 0: none follows
  std::string derived_from;   ///< the operation whose result is expected to reach furthest: "conv2d in lenet5/conv1"
  double derived_peak = 0;    ///< the largest size that is expected of it at scale 1
  std::int64_t unknown = 0;   ///< low tensors that grow with the scale, of which nothing is expected
  std::vector<std::string> unbounded; ///< operations of the function without a transfer function
};

/// The table of `function`, which has been through autodiff. Errors: NOT_FOUND for a function that the module does not
/// have; FAILED_PRECONDITION for one with requests for gradients, with control flow or without a body.
absl::StatusOr<RangeTable> TabulateRanges(const Module &module, const std::string &function,
                                          const RangeAssumptions &assumptions);

/// The table as text: a row a tensor, the counts of each verdict, the chains, and the derived scale.
std::string PrintRanges(const RangeTable &table, const RangeAssumptions &assumptions);

/// A line for each tensor that will overflow, with the way there indented below it.
std::vector<std::string> OverflowWarnings(const RangeTable &table);

} // namespace mpc::compiler
