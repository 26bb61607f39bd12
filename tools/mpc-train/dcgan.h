// `mpc-train dcgan`: two networks that learn from each other.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/program_file.h"
#include "tools/mpc-train/options.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// What the discriminator makes of images after an epoch.
struct DcganEpoch {
  double discriminator_loss = 0;  ///< mean over the steps; 2 ln 2 where it cannot tell
  double real_taken = 0;          ///< share of test images judged real
  double generated_taken = 0;     ///< share of generated images judged real
  double seconds = 0;
};

struct DcganResult {
  std::vector<DcganEpoch> epochs;
  std::int64_t steps = 0;
  double seconds = 0;
  int signal = 0;                   ///< signal that stopped the run at the end of a step; 0: none did
  std::int64_t skipped = 0;         ///< losses whose update was skipped
  std::vector<double> loss_scales;  ///< scales of the losses: on real images, on generated ones, of the generator

  Json Summary(const TrainOptions& options) const;
};

/// Trains the DCGAN of models/ on 16x16 digits, with progress on `progress` (null: none). Errors: the data, the
/// checkpoint, what amp::Initialize refuses.
absl::StatusOr<DcganResult> TrainDcgan(const TrainOptions& options, std::ostream* progress);

/// The training step of the DCGAN for batches of `options.batch_size`: images f32 [batch, 1, 16, 16] in [-1, 1] and
/// noise f32 [batch, latent size]. Seed and context are set. Errors: what amp::Initialize refuses, what compiling
/// reports.
absl::StatusOr<runtime::Package> PackageDcgan(const TrainOptions& options);

}  // namespace mpc::tools
