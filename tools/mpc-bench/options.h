// What mpc-bench is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "models/registry.h"
#include "tools/mpc-bench/rank_options.h"
#include "tools/support/device_flags.h"

namespace mpc::tools {

/// One row of a benchmark: a network, a batch size, a precision.
struct BenchOptions : DeviceOptions {
  std::string model;
  std::int64_t batch = 32;  ///< rows of a step, those of all ranks together
  std::string amp_level = "O0";
  std::string dtype;       ///< "f16", "bf16"; empty: f16 at O2 and O3
  std::string loss_scale;  ///< as amp::Options takes it; empty: the level's default
  models::WorkloadSizes sizes;
  std::int64_t ranks = 1;            ///< processes that train together; a power of two
  std::int64_t threads = 2;          ///< threads of each rank
  std::int64_t busy = 0;             ///< processes beside the runs that keep a processor each busy
  std::int64_t warmup = 50;          ///< steps of a run that are not measured
  std::int64_t steps = 200;          ///< measured steps of a run
  double seconds = 20;               ///< on the CPU: fewer steps where they take longer, but three; 0: no limit
  std::int64_t runs = 5;             ///< each in a process of its own
  std::vector<std::string> peers;    ///< names of PeerNames()
  std::string peer_layout = "auto";  ///< layout of images: nchw, nhwc; auto: the faster one
  std::string python = "python3";
  std::string peer_script;   ///< empty: that of the network, where mpc's tools are
  std::string start_folder;  ///< where the initial weights and the batches are written; empty: nowhere
  bool single = false;       ///< measure one run in this process and print its samples as JSON
  bool profile = false;      ///< time the instructions of steps in place of steps

  std::optional<DType> low_type() const { return ParseDType(dtype); }
  /// Seconds of measured steps at most; infinite where there is no limit.
  double seconds_limit() const;
};

/// Operations on their own; see op_graphs.h.
struct OpOptions {
  std::vector<std::string> names;   ///< names of OpGraphs(); empty: networks are measured
  std::vector<std::int64_t> shape;  ///< empty: each graph's default
  DType dtype = DType::kF32;
  std::int64_t buffers = 0;  ///< sets of tensors that are used in turn; 0: as many as no cache holds
  std::int64_t threads = 2;
  bool fusion = false;
  bool each_choice = false;  ///< every kernel that --tune chooses among is measured
  double seconds = 1;        ///< seconds of measuring, for each graph and kernel
};

/// How fast pictures are read; see data_contest.h.
struct DataOptions {
  bool measured = false;
  std::int64_t batch = 32;
  std::int64_t threads = 2;        ///< workers of mpc's Map, and threads of PyTorch's operations
  std::int64_t warmup = 50;        ///< batches of a run that are not measured
  std::int64_t steps = 200;        ///< measured batches of a run
  std::int64_t runs = 5;           ///< runs of each program, in turn
  std::vector<std::string> peers;  ///< empty, or "torchvision"
  std::string python = "python3";
  std::string peer_script;  ///< empty: torchvision's, where mpc's tools are
};

/// A size of networks and its flag.
struct SizeFlag {
  const char* name;
  const char* help;
  std::int64_t most;
  std::int64_t models::WorkloadSizes::*size;
};

const std::vector<SizeFlag>& SizeFlags();

struct BenchCommandLine {
  std::vector<BenchOptions> rows;  ///< every network with every batch size and every level; empty: see `ops`, `data`,
                                   ///< `reductions`
  OpOptions ops;
  DataOptions data;
  ReductionOptions reductions;
  std::string json_path;
  std::string svg_path;
  std::string help;  ///< not empty: print it and end
};

/// Errors are bad usage.
absl::StatusOr<BenchCommandLine> ParseBenchCommandLine(int argc, const char* const* argv);

}  // namespace mpc::tools
