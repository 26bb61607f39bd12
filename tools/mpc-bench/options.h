// What mpc-bench is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tools/support/device_flags.h"

namespace mpc::tools {

/// One row of a benchmark: a network, a batch size, a precision.
struct BenchOptions : DeviceOptions {
  std::string model;
  std::int64_t batch = 32;
  std::string amp_level = "O0";
  std::string dtype;            ///< "f16", "bf16"; empty: f16 at O2 and O3
  std::int64_t image_size = 0;  ///< of photographs; 0: the network's
  std::int64_t tokens = 0;      ///< of a row of text; 0: the network's
  std::int64_t threads = 2;
  std::int64_t warmup = 50;  ///< steps of a run that are not measured
  std::int64_t steps = 200;  ///< measured steps of a run
  std::int64_t runs = 5;     ///< each in a process of its own
  std::string json_path;
  std::string peer;                 ///< "torch"; empty: none
  std::string peer_mode = "eager";  ///< eager, graph, compile, max-autotune
  std::string python = "python3";
  std::string peer_script;   ///< empty: that of the network, where mpc's tools are
  std::string weights_path;  ///< where a run writes its initial weights for the peer; empty: nowhere
  bool single = false;       ///< measure one run in this process and print its samples as JSON

  std::optional<DType> low_type() const { return ParseDType(dtype); }
};

struct BenchCommandLine {
  std::vector<BenchOptions> rows;  ///< every network with every batch size and every level; at least one
  std::string help;                ///< not empty: print it and end
};

/// Errors are bad usage.
absl::StatusOr<BenchCommandLine> ParseBenchCommandLine(int argc, const char* const* argv);

/// The network's peer script: "torch_lenet5.py"; empty where it has none.
std::string PeerScriptOf(const std::string& model);

}  // namespace mpc::tools
