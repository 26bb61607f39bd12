// What mpc's step is compared with: PyTorch's, or mpc's own in another precision. PyTorch is never needed by anything
// else.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/mpc-bench/measure.h"

namespace mpc::tools {

/// PyTorch's peers are "torch" (eager), "torch-compile" (torch.compile), "torch-max-autotune" (in that mode) and
/// "torch-graph" (the whole step captured by hand as one CUDA graph). "torch-ddp" is DistributedDataParallel over gloo,
/// in as many processes as the row has ranks. mpc's own are "mpc-f32" (at O0), "mpc-unscaled" (without loss scale,
/// overflow check and skip), "mpc-unfused" (a kernel for each operation) and "mpc-one-thread" (on one thread). Rows
/// with ranks have two others. "mpc-rank-alone" is one rank's rows in one process, on a rank's threads.
/// "mpc-one-process" is the batch in one process, on the threads of all ranks.
std::vector<std::string> PeerNames();

/// The own peers that a row with ranks is always compared with.
std::vector<std::string> RankPeerNames();

/// True if the peer begins from weights and batches that mpc writes (WriteStart).
bool IsTorch(const std::string& peer);

/// Errors: the network has no such peer, with what has it; the peer would measure the row's own step again. `scales`
/// says whether the row's step scales its loss.
absl::Status CheckPeer(const BenchOptions& row, const std::string& peer, bool scales);

/// The row that `peer`, one of mpc's own, measures.
BenchOptions OwnPeerRow(const BenchOptions& row, const std::string& peer);

/// The path of a script of tools/peers, beside an installed executable or in the source tree that mpc was built from. A
/// `given` path that is not empty takes its place. Errors (NOT_FOUND): it is missing, with where it was looked for.
absl::StatusOr<std::string> PeerScript(const std::string& script, const std::string& given);

/// Whether `python` can import `modules`, "torch, torchvision", which errors call `what`.
absl::Status CheckModules(const std::string& python, const std::string& modules, const std::string& what);

/// Whether `row.python` can import torch and the network's script is there. Errors: which of them is missing and how to
/// name another.
absl::Status CheckTorch(const BenchOptions& row);

/// Measures one run of `peer` in a process of its own, from the files of WriteStart in `row.start_folder`.
absl::StatusOr<RunResult> MeasureTorch(const BenchOptions& row, const std::string& peer);

/// Returns `row.peer_layout` if it names a layout or the network has no images. Otherwise returns the layout, "nchw" or
/// "nhwc", that took less time in a short run of `peer` with each.
absl::StatusOr<std::string> ChoosePeerLayout(const BenchOptions& row, const std::string& peer);

}  // namespace mpc::tools
