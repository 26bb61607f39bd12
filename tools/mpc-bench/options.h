// What mpc-bench is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace mpc::tools {

struct BenchOptions {
  std::string model;
  std::int64_t batch = 32;
  std::string amp_level = "O0";
  std::string dtype;  ///< "f16", "bf16"; empty: f16 at O2 and O3
  std::int64_t threads = 2;
  std::int64_t warmup = 50;  ///< steps of a run that are not measured
  std::int64_t steps = 200;  ///< measured steps of a run
  std::int64_t runs = 5;     ///< each in a process of its own
  std::string json_path;
  std::string peer;  ///< "torch"; empty: none
  std::string python = "python3";
  std::string peer_script;  ///< empty: torch_lenet5.py where mpc's tools are
  bool single = false;      ///< measure one run in this process and print its samples as JSON

  std::optional<DType> low_type() const { return ParseDType(dtype); }
};

struct BenchCommandLine {
  BenchOptions options;
  std::string help;  ///< not empty: print it and end
};

/// Errors are bad usage.
absl::StatusOr<BenchCommandLine> ParseBenchCommandLine(int argc, const char* const* argv);

}  // namespace mpc::tools
