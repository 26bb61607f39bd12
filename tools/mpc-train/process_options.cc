#include "tools/mpc-train/process_options.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/launch_environment.h"

namespace mpc::tools {

void AddProcessFlags(FlagSet& flags, TrainOptions& options) {
  flags.Switch(
      "distributed",
      "Trains with the other processes that mpirun, torchrun or srun has started: each takes every N-th batch.",
      &options.distributed);
  flags.Choice("transport", {"shared", "mpi", "nccl"},
               "What carries numbers between these processes. shared: memory of one machine; mpi: Open MPI, whose\n"
               "mpirun has started them; nccl: GPUs, with the default beside it for all else. Default: shared on one\n"
               "machine, else mpi.",
               &options.transport);
  flags.Choice(
      "loss-weight", {"rows", "elements"},
      "What a batch counts in a step. elements: as many of them as its loss does not leave out. Default: rows.",
      &options.loss_weight);
  flags.Choice("communication-dtype", {"f32", "f16", "bf16"},
               "The type in which processes add gradients; f16 needs a loss scale. Default: f32.",
               &options.communication_dtype);
  flags.Choice("reduction", {"ordered", "fast"},
               "ordered: any number of processes adds gradients in one order; fast: the transport's own. Default: "
               "ordered.",
               &options.reduction);
  flags.Integer("bucket-mib", 0, 1 << 20,
                "MiB of gradients that travel as one message; 0: each is a message of its own.", &options.bucket_mib);
}

absl::Status CheckProcessFlags(const FlagSet& flags, const TrainOptions& options) {
  if (options.distributed) return absl::OkStatus();
  // One process that accumulates follows some of them, with --distributed.
  constexpr absl::string_view kSendsNothing = "one process alone sends nothing";
  constexpr absl::string_view kAccumulatesPlainly =
      "without it micro-batches have equal weights, and f32 adds their gradients; one process may have it";
  const std::tuple<const char*, std::string, absl::string_view> given[] = {
      {"transport", options.transport, kSendsNothing},
      {"loss-weight", options.loss_weight, kAccumulatesPlainly},
      {"communication-dtype", options.communication_dtype, kAccumulatesPlainly},
      {"reduction", options.reduction, kSendsNothing},
      {"bucket-mib", absl::StrCat(options.bucket_mib), kSendsNothing}};
  for (const auto& [flag, value, reason] : given) {
    if (!flags.Given(flag)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, " needs --distributed: ", reason));
  }
  return absl::OkStatus();
}

std::string NoteOfProcessesAlone(const TrainOptions& options) {
  if (options.distributed) return "";
  // Variables that a launcher cannot have set are no matter of a process that does not join others.
  const absl::StatusOr<runtime::LaunchEnvironment> launched = runtime::ReadLaunchEnvironment();
  if (!launched.ok() || launched->size == 1 || launched->rank > 0) return "";
  return absl::StrCat(launched->launcher, " has started ", launched->size,
                      " processes. Without --distributed each trains alone and writes the files that its flags name");
}

distributed::Transport TransportOf(const TrainOptions& options) {
  if (options.transport == "shared") return distributed::Transport::kShared;
  if (options.transport == "nccl") return distributed::Transport::kNccl;
  return options.transport == "mpi" ? distributed::Transport::kMpi : distributed::Transport::kAuto;
}

AutoParallelOptions ParallelOptionsOf(const TrainOptions& options) {
  const bool low = options.communication_dtype != "f32";
  const DType low_type = options.communication_dtype == "f16" ? DType::kF16 : DType::kBF16;
  return {.parallel_mode = ParallelMode::kDataParallel,
          .communication_dtype = low ? low_type : DType::kF32,
          .reduction = options.reduction == "fast" ? GradientReduction::kFast : GradientReduction::kOrdered,
          .loss_weight = options.loss_weight == "elements" ? LossWeight::kElements : LossWeight::kRows,
          .bucket_mib = options.bucket_mib};
}

}  // namespace mpc::tools
