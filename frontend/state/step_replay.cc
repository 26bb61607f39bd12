// Repeats the step of a capsule.
#include <memory>

#include "absl/strings/str_cat.h"
#include "frontend/state/capsule_layout.h"
#include "frontend/state/step_capsule.h"
#include "frontend/state/tensor_difference.h"
#include "runtime/distributed/rank_turns.h"

namespace mpc {
namespace {

using runtime::Executable;

absl::Status RunOnce(Executable& step, const StepCapsule& capsule, std::int64_t run, const ReplayObserver& observe) {
  const std::vector<absl::Span<const std::uint8_t>> inputs = InputsOfRun(capsule, run);
  if (!observe) {
    const absl::Status status = step.Run(inputs);
    return status.ok() ? step.Wait() : status;
  }
  auto* const observable = dynamic_cast<runtime::ObservableStep*>(&step);
  if (observable != nullptr) {
    return observable->RunObserved(inputs, [&](const runtime::ObservedResult& seen) { observe(run, seen); });
  }
  return absl::UnimplementedError(absl::StrCat("device \"", step.program().device,
                                               "\" does not show the results of single operations; \"cpu\" and "
                                               "\"cuda\" do"));
}

/// The Programs of a capsule on their device.
class LoadablePrograms {
 public:
  static absl::StatusOr<LoadablePrograms> Make(const StepCapsule& capsule) {
    const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(capsule.program.device);
    if (!device.ok()) return device.status();
    if (capsule.ranks > 1 && (*device)->backend() != "cpu") {
      return absl::UnimplementedError(absl::StrCat("the step of ", capsule.ranks, " ranks is of device \"",
                                                   capsule.program.device,
                                                   "\"; one process runs several ranks on \"cpu\" alone"));
    }
    LoadablePrograms programs;
    programs.device_ = *device;
    programs.last_ = std::make_shared<const runtime::Program>(capsule.program);
    if (capsule.accumulating.has_value()) {
      programs.earlier_ = std::make_shared<const runtime::Program>(*capsule.accumulating);
    }
    return programs;
  }

  /// Runs the micro-batches of one rank.
  absl::Status RunRank(const StepCapsule& capsule, std::int64_t rank, const runtime::LoadOptions& options,
                       const CapsuleWatch& watch) const {
    const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(capsule, rank);
    if (!state.ok()) return state.status();
    absl::StatusOr<std::unique_ptr<Executable>> last = device_->Load(last_, *state, options);
    if (!last.ok()) return last.status();
    absl::StatusOr<std::unique_ptr<Executable>> earlier = std::unique_ptr<Executable>();
    if (earlier_ != nullptr) earlier = device_->Load(earlier_, *state, options);
    if (!earlier.ok()) return earlier.status();
    const std::int64_t of_rank = capsule.runs / capsule.ranks;
    for (std::int64_t run = rank * of_rank; run < (rank + 1) * of_rank; ++run) {
      const bool is_last = run + 1 == (rank + 1) * of_rank;
      Executable& step = is_last || *earlier == nullptr ? **last : **earlier;
      if (absl::Status status = RunOnce(step, capsule, run, watch.observe); !status.ok()) return status;
      if (!watch.ended) continue;
      if (absl::Status status = watch.ended(run, step); !status.ok()) return status;
    }
    return watch.left ? watch.left(rank, *state) : absl::OkStatus();
  }

 private:
  const runtime::Device* device_ = nullptr;
  std::shared_ptr<const runtime::Program> last_;
  std::shared_ptr<const runtime::Program> earlier_;  ///< null: that of the last run
};

/// The checksum of an entry after the step, as `rank` had it.
const std::string& ChecksumOf(const StepCapsule& capsule, std::int64_t rank, const std::string& name) {
  if (rank > 0) {
    const std::map<std::string, std::string>& own = capsule.other_ranks[static_cast<std::size_t>(rank) - 1].after;
    if (const auto found = own.find(name); found != own.end()) return found->second;
  }
  return capsule.after.at(name);
}

/// Adds to `replay` what the state of a rank is after the step.
absl::Status CompareState(const StepCapsule& capsule, std::int64_t rank, const runtime::StateStore& state,
                          StepReplay& replay) {
  for (const runtime::StateBinding& binding : internal::StateOf(capsule)) {
    if (!binding.written) continue;
    const absl::StatusOr<std::string> checksum = StateChecksum(*state.Find(binding.name));
    if (!checksum.ok()) return checksum.status();
    if (rank == 0) replay.after[binding.name] = *checksum;
    if (const std::string& kept = ChecksumOf(capsule, rank, binding.name); kept != *checksum) {
      replay.differences.push_back(
          absl::StrCat("state \"", binding.name, "\"", capsule.ranks > 1 ? absl::StrCat(" of rank ", rank) : "",
                       " after the step: checksum ", kept, " in the capsule, ", *checksum, " here"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCapsule(const StepCapsule& capsule, const CapsuleWatch& watch) {
  const absl::StatusOr<LoadablePrograms> programs = LoadablePrograms::Make(capsule);
  if (!programs.ok()) return programs.status();
  // Results are shown without a graph, which need not be recorded then.
  if (capsule.ranks == 1) return programs->RunRank(capsule, 0, {.graph = watch.observe == nullptr}, watch);
  return distributed::RunInTurns(static_cast<int>(capsule.ranks),
                                 [&](int rank, const std::shared_ptr<Communicator>& communicator) {
                                   return programs->RunRank(capsule, rank, {.communicator = communicator}, watch);
                                 });
}

absl::StatusOr<StepReplay> ReplayStep(const StepCapsule& capsule, const ReplayObserver& observe) {
  StepReplay replay;
  // Ranks take turns, so that runs end in another order than that of their numbers.
  std::vector<std::vector<Tensor>> outputs(static_cast<std::size_t>(capsule.runs));
  std::vector<StepReplay> states(static_cast<std::size_t>(capsule.ranks));
  CapsuleWatch watch = {.observe = observe};
  watch.ended = [&](std::int64_t run, const Executable& step) {
    const runtime::Program& program = step.program();
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const absl::Span<const std::uint8_t> bytes = step.output(i);
      outputs[static_cast<std::size_t>(run)].push_back(
          Tensor::FromBytes(program.values[program.outputs[i].value].spec, bytes.data(), bytes.size()));
    }
    return absl::OkStatus();
  };
  watch.left = [&](std::int64_t rank, const runtime::StateStore& state) {
    return CompareState(capsule, rank, state, states[static_cast<std::size_t>(rank)]);
  };
  if (absl::Status status = RunCapsule(capsule, watch); !status.ok()) return status;
  for (const std::vector<Tensor>& of_run : outputs) {
    for (const Tensor& output : of_run) {
      const auto& [name, kept] = capsule.record[replay.record.size()];
      replay.record.emplace_back(name, output);
      if (const auto difference = FindDifference(kept.spec(), kept.bytes(), output.bytes()); difference.has_value()) {
        replay.differences.push_back(
            absl::StrCat("output \"", name, "\": ", difference->ToString("the capsule", "the replay")));
      }
    }
  }
  replay.after = std::move(states.front().after);
  for (const StepReplay& state : states) {
    replay.differences.insert(replay.differences.end(), state.differences.begin(), state.differences.end());
  }
  return replay;
}

}  // namespace mpc
