// Small graphs of operations, timed beside the limits of the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/options.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {

/// Rates that copying and multiplying reached, in the same minutes as the measurements.
struct MachineLimits {
  Percentiles copy_bytes;          ///< bytes a second, read and written
  std::string_view copy_form;      ///< see CopyProbe
  std::size_t copy_footprint = 0;  ///< bytes of its buffers
  Percentiles multiply_adds;       ///< floating-point operations a second on registers
  std::string_view multiply_add_instructions;
  Percentiles gemm;  ///< floating-point operations a second of a product of 1024 x 1024 matrices; 0: not needed
};

struct OpResult {
  std::string name;
  std::string kernel_choice;  ///< name of the kernel that is measured among several; empty: that of the rules
  Shape shape;
  Percentiles seconds;        ///< time of one run of the graph
  double bytes = 0;           ///< bytes that the graph must read and write
  double flops = 0;           ///< floating-point operations of its matrix work
  bool memory_bound = false;  ///< true: copying is its limit; false: multiplying
  Percentiles fraction;       ///< share of that limit, which was measured right before
  std::size_t instructions = 0;
  std::size_t sets = 0;
  std::size_t footprint = 0;
};

struct OpTable {
  MachineLimits limits;
  std::vector<OpResult> results;
};

/// Measures every graph of the options in turn with the probes. Errors: those of OpProgram::Make, with the graph's name
/// and shape.
absl::StatusOr<OpTable> MeasureOps(const OpOptions& options);

}  // namespace mpc::tools
