// What mpc-train is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/amp/level.h"
#include "frontend/amp/loss_scale.h"

namespace mpc::tools {

struct TrainOptions {
  std::string model;
  std::string amp_level = "O0";
  std::optional<DType> dtype;               ///< left out: f16 at O2 and O3
  std::optional<bool> keep_batchnorm_fp32;  ///< left out: the level's default
  std::string loss_scale;                   ///< "dynamic", "none", a number; empty: the level's default
  std::string data = "digits";              ///< digits, mnist
  std::string data_directory;               ///< empty: where mpc looks by itself
  std::int64_t epochs = 0;                  ///< 0: evaluates only
  std::int64_t batch_size = 32;
  std::int64_t shift = 0;              ///< training images move by up to so many pixels
  std::string optimizer = "momentum";  ///< momentum, sgd, adam, adamw
  double learning_rate = 0;
  double momentum = 0.9;  ///< of momentum and sgd
  double weight_decay = 0;
  std::string schedule = "cosine";  ///< cosine, constant
  std::int64_t seed = 1;
  /// One by default: these networks are small, more threads gain little on an idle machine and wait for each other on a
  /// busy one. 0: OMP_NUM_THREADS, else one a core.
  std::int64_t threads = 1;
  std::string device = "cpu";
  std::string save_path;
  std::string load_path;
  std::string summary_path;
  bool timing = false;
  bool report = false;
  bool quiet = false;

  amp::Precision precision;                          ///< level, dtype and batch norm, checked
  std::optional<LossScaleConfig> loss_scale_config;  ///< empty: the level's default
};

struct CommandLine {
  TrainOptions options;
  std::string help;  ///< not empty: print it and end
};

/// Reads the command line and fills in the defaults of the data set and the optimizer. Everything is checked that needs
/// no file: errors are bad usage.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace mpc::tools
