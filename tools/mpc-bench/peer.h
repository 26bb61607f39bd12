// What mpc's step is compared with: PyTorch's, or mpc's own in another precision. PyTorch is never needed by anything
// else.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/mpc-bench/measure.h"

namespace mpc::tools {

/// "torch": PyTorch, eager; "torch-compile": torch.compile; "torch-max-autotune": in that mode; "torch-graph": the
/// whole step captured by hand as one CUDA graph; "mpc-f32": mpc at O0; "mpc-unscaled": mpc without loss scale,
/// overflow check and skip; "mpc-unfused": mpc with a kernel for each operation; "mpc-one-thread": mpc on one thread.
std::vector<std::string> PeerNames();

/// True if the peer begins from weights and batches that mpc writes (WriteStart).
bool IsTorch(const std::string& peer);

/// Errors: the network has no such peer; what has. A peer that would take the row's own step: `scales` says whether the
/// row's step scales its loss.
absl::Status CheckPeer(const BenchOptions& row, const std::string& peer, bool scales);

/// The row that `peer`, one of mpc's own, measures.
BenchOptions OwnPeerRow(const BenchOptions& row, const std::string& peer);

/// Whether `row.python` can import torch and the network's script is there. Errors: which of them is missing and how to
/// name another.
absl::Status CheckTorch(const BenchOptions& row);

/// One run in a process of its own, from the start in `row.start_folder`.
absl::StatusOr<RunResult> MeasureTorch(const BenchOptions& row, const std::string& peer);

/// `row.peer_layout` where it says one or the network has no images; else the one that took less time in a short run of
/// `peer` with each: "nchw", "nhwc".
absl::StatusOr<std::string> ChoosePeerLayout(const BenchOptions& row, const std::string& peer);

}  // namespace mpc::tools
