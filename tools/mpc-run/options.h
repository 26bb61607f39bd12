// What mpc-run is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace mpc::tools {

struct RunOptions {
  std::string path;            ///< the .mpcx file; empty with `replay_path`
  std::string replay_path;     ///< the capsule of a step that is repeated, and nothing else is done; empty: none
  std::int64_t steps = 0;      ///< training steps
  std::int64_t warmup = 0;     ///< the first of them, which are not timed
  std::string data;            ///< digits, mnist, synthetic, text
  std::string data_directory;  ///< empty: where mpc looks by itself
  std::string text_path;       ///< file of text; empty: the text that comes with mpc
  std::optional<std::int64_t> shift;
  std::string device;                    ///< empty: the file's
  std::optional<bool> graph;             ///< cuda: record the step as a graph; left out: true
  std::int64_t steps_per_launch = 1;     ///< cuda
  std::optional<std::int64_t> branches;  ///< cuda: calls of a graph at once; left out: LoadOptions::branches
  bool tune = false;                     ///< choose kernels by timing them here
  std::string choice_cache;              ///< file of choices from earlier runs; empty: none
  bool allow_winograd = false;           ///< cpu: Winograd's algorithm for f32 convolutions; choose kernels anew
  std::optional<std::int64_t> seed;      ///< left out: the file's
  std::int64_t threads = 0;              ///< threads of the CPU; 0: OMP_NUM_THREADS, else usable processors
  std::int64_t print_every = 0;          ///< steps; 0: no losses are printed
  std::string load_state_path;
  std::string dump_state_path;
  bool predict = false;          ///< test after training
  std::string predictions_path;  ///< empty: predictions are not written
  std::string json_path;
  std::string times_path;  ///< run what is timed instruction by instruction, and write how long each took
  bool describe = false;
  bool load_only = false;  ///< load the training step and end

  /// Whether steps, predictions, a load or the initial state are asked for.
  bool runs() const { return steps > 0 || predict || load_only || !dump_state_path.empty(); }
};

struct RunCommandLine {
  RunOptions options;
  std::string help;  ///< not empty: print it and end
};

/// Reads the command line. Everything is checked that needs no file: errors are bad usage. That there is nothing to do
/// is no error yet: a file that is missing comes first.
absl::StatusOr<RunCommandLine> ParseRunCommandLine(int argc, const char* const* argv);

}  // namespace mpc::tools
