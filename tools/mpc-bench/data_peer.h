// torchvision's side of --data, in processes of its own.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/options.h"

namespace mpc::tools {

/// One run of the peer.
struct PeerReading {
  double rate = 0;       ///< pictures a second
  std::string version;   ///< "torchvision 0.29.2, PyTorch 2.15.0, Pillow 13.0.0"
  std::string settings;  ///< "2 workers"
};

/// How far the peer's pixels are from mpc's, in levels of u8.
struct PixelDifference {
  std::int64_t pictures = 0;
  double largest = 0;
  double mean = 0;
};

/// Whether `options.python` can import torch, torchvision and Pillow and the script is there. Errors: which of them is
/// missing and how to name another.
absl::Status CheckTorchvision(const DataOptions& options);

/// Reads the pictures of `folder` by torchvision's DataLoader with `workers` processes, as MeasureReading does.
absl::StatusOr<PeerReading> MeasureTorchvision(const DataOptions& options, const std::string& folder,
                                               std::int64_t workers);

/// Compares the peer's pixels with those of the file of WritePixels.
absl::StatusOr<PixelDifference> ComparePixels(const DataOptions& options, const std::string& folder,
                                              const std::string& pixels);

}  // namespace mpc::tools
