#include "tests/training/asynchronous_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::testing {
namespace {

using runtime::Executable;
using runtime::Program;
using runtime::StateEntry;
using runtime::StateStore;
using runtime::StepInputs;

AsynchronousDeviceControl& TheControl() {
  static auto* const control = new AsynchronousDeviceControl;
  return *control;
}

/// Work in the order it was given.
class Queue {
 public:
  void Add(std::function<absl::Status()> work) {
    work_.push_back(std::move(work));
    TheControl().most_waiting = std::max(TheControl().most_waiting, work_.size());
  }
  /// Does all of it. A failure is kept: nothing runs after it.
  absl::Status Finish() {
    while (!work_.empty()) {
      const std::function<absl::Status()> next = std::move(work_.front());
      work_.pop_front();
      if (failure_.ok()) failure_ = next();
    }
    return failure_;
  }
  void Forget() { failure_ = absl::OkStatus(); }

 private:
  std::deque<std::function<absl::Status()>> work_;
  absl::Status failure_;
};

Queue& TheQueue() {
  static auto* const queue = new Queue;
  return *queue;
}

/// The device's memory of an entry: an entry of the CPU executables underneath.
class Copy : public runtime::DeviceCopy {
 public:
  explicit Copy(const StateEntry& entry)
      : entry_(std::make_shared<StateEntry>(entry.name(), entry.role(), entry.spec())) {}
  void* data() override { return entry_->data(); }
  absl::Status Download(void* host) override {
    ++TheControl().downloads;
    if (absl::Status status = TheQueue().Finish(); !status.ok()) return status;
    auto* bytes = static_cast<std::uint8_t*>(host);
    return entry_->Read(absl::MakeSpan(bytes, entry_->spec().bytes()));
  }
  const std::shared_ptr<StateEntry>& entry() const { return entry_; }

 private:
  std::shared_ptr<StateEntry> entry_;
};

using Bytes = std::vector<std::uint8_t>;

class AsynchronousExecutable : public Executable {
 public:
  AsynchronousExecutable(std::shared_ptr<const Program> program, std::vector<std::shared_ptr<StateEntry>> entries,
                         std::unique_ptr<Executable> inner, int steps_per_launch)
      : program_(std::move(program)),
        entries_(std::move(entries)),
        inner_(std::move(inner)),
        steps_per_launch_(steps_per_launch),
        kept_(steps_kept()) {}
  ~AsynchronousExecutable() override { TheQueue().Finish().IgnoreError(); }

  absl::Status Run(StepInputs inputs) override { return RunSteps({inputs}); }

  absl::Status RunSteps(absl::Span<const StepInputs> steps) override {
    if (steps.size() > static_cast<std::size_t>(steps_per_launch_)) {
      return absl::InvalidArgumentError(absl::StrCat(steps.size(), " steps in a launch of ", steps_per_launch_));
    }
    if (trains()) TheControl().launches.push_back(steps.size());
    Upload();
    for (const StepInputs& inputs : steps) {
      std::vector<Bytes> copied;
      for (const absl::Span<const std::uint8_t>& input : inputs) copied.emplace_back(input.begin(), input.end());
      TheQueue().Add([this, copied = std::move(copied), number = steps_++] { return RunNow(copied, number); });
    }
    MarkWritten();
    return absl::OkStatus();
  }

  int steps_per_launch() const override { return steps_per_launch_; }
  absl::Span<const std::uint8_t> output(std::size_t index) const override {
    const auto bytes = OutputOfStep(steps_ - 1, index);
    return bytes.ok() ? *bytes : absl::Span<const std::uint8_t>();
  }
  std::uint64_t steps_started() const override { return steps_; }
  std::uint64_t steps_kept() const override { return 2 * static_cast<std::uint64_t>(steps_per_launch_); }
  absl::StatusOr<absl::Span<const std::uint8_t>> OutputOfStep(std::uint64_t step, std::size_t index) const override {
    if (step >= steps_ || step + steps_kept() < steps_) {
      return absl::InvalidArgumentError(absl::StrCat("step ", step, " of ", steps_, " is not kept"));
    }
    if (absl::Status status = TheQueue().Finish(); !status.ok() && step >= finished_) return status;
    return absl::MakeConstSpan(kept_[step % kept_.size()].at(index));
  }
  absl::Status Wait() override { return TheQueue().Finish(); }

  absl::StatusOr<std::vector<runtime::InstructionTime>> RunTimed(StepInputs inputs) override {
    Upload();
    if (absl::Status status = TheQueue().Finish(); !status.ok()) return status;
    absl::StatusOr<std::vector<runtime::InstructionTime>> times = inner_->RunTimed(inputs);
    if (times.ok()) KeepOutputs(steps_++);
    MarkWritten();
    return times;
  }
  runtime::MemoryUse memory() const override { return inner_->memory(); }
  const Program& program() const override { return *program_; }

 private:
  bool trains() const { return program_->name == "train_step"; }

  /// What the host has written. Derived state is rebuilt by the executable underneath.
  void Upload() {
    for (const std::shared_ptr<StateEntry>& entry : entries_) {
      if (entry->device_is_current() || entry->role() == Role::kDerived) continue;
      const auto* bytes = static_cast<const std::uint8_t*>(entry->data());
      const std::shared_ptr<StateEntry>& copy = static_cast<Copy*>(entry->device_copy())->entry();
      TheQueue().Add([copy, content = Bytes(bytes, bytes + entry->spec().bytes())] { return copy->Write(content); });
      entry->MarkUploaded();
    }
  }
  void MarkWritten() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (program_->state[i].written || entries_[i]->role() == Role::kDerived) {
        entries_[i]->MarkWrittenOnDevice();
      }
    }
  }
  absl::Status RunNow(const std::vector<Bytes>& inputs, std::uint64_t number) {
    const std::optional<std::string>& failure = TheControl().fail_with;
    if (trains() && failure.has_value() && number == TheControl().fail_step) return absl::InternalError(*failure);
    std::vector<absl::Span<const std::uint8_t>> spans(inputs.begin(), inputs.end());
    if (absl::Status status = inner_->Run(spans); !status.ok()) return status;
    KeepOutputs(number);
    return absl::OkStatus();
  }
  void KeepOutputs(std::uint64_t number) {
    std::vector<Bytes>& outputs = kept_[number % kept_.size()];
    outputs.clear();
    for (std::size_t i = 0; i < program_->outputs.size(); ++i) {
      outputs.emplace_back(inner_->output(i).begin(), inner_->output(i).end());
    }
    finished_ = number + 1;
  }

  std::shared_ptr<const Program> program_;
  std::vector<std::shared_ptr<StateEntry>> entries_;
  std::unique_ptr<Executable> inner_;
  int steps_per_launch_;
  std::uint64_t steps_ = 0;
  std::uint64_t finished_ = 0;
  std::vector<std::vector<Bytes>> kept_;
};

class AsynchronousDevice : public runtime::Device {
 public:
  explicit AsynchronousDevice(const runtime::Device& cpu) : cpu_(cpu) {}
  std::string_view name() const override { return "cuda"; }
  std::string_view backend() const override { return cpu_.name(); }
  absl::StatusOr<runtime::InstructionPlan> Plan(const Program& program, const runtime::Instruction& instruction,
                                                const runtime::PlanOptions& options) const override {
    TheControl().plan = options;
    return cpu_.Plan(program, instruction, {});
  }
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override {
    return cpu_.MayAlias(kernel, output, input);
  }
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program, const StateStore& state,
                                                   const runtime::LoadOptions& options) const override {
    if (program->name == "train_step") TheControl().load = options;
    auto inner_program = std::make_shared<Program>(*program);
    inner_program->device = "cpu";
    std::vector<std::shared_ptr<StateEntry>> entries;
    StateStore copies;
    for (const runtime::StateBinding& binding : program->state) {
      std::shared_ptr<StateEntry> entry = state.Find(binding.name);
      if (entry == nullptr) return absl::NotFoundError(absl::StrCat("no state ", binding.name));
      if (entry->device_copy() == nullptr) entry->set_device_copy(std::make_unique<Copy>(*entry));
      const std::shared_ptr<StateEntry>& copy = static_cast<Copy*>(entry->device_copy())->entry();
      // The content comes before the first step; binding only asks whether there is one.
      if (entry->initialised() && !copy->initialised()) copy->MarkWritten();
      if (absl::Status status = copies.Add(copy); !status.ok()) return status;
      entries.push_back(std::move(entry));
    }
    absl::StatusOr<std::unique_ptr<Executable>> inner = cpu_.Load(std::move(inner_program), copies, {});
    if (!inner.ok()) return inner.status();
    return std::make_unique<AsynchronousExecutable>(std::move(program), std::move(entries), *std::move(inner),
                                                    options.steps_per_launch);
  }

 private:
  const runtime::Device& cpu_;
};

}  // namespace

AsynchronousDeviceControl& UseAsynchronousDevice() {
  static const bool registered = [] {
    runtime::RegisterDevice(std::make_unique<AsynchronousDevice>(**runtime::GetDevice("cpu")));
    return true;
  }();
  static_cast<void>(registered);
  TheQueue().Finish().IgnoreError();
  TheQueue().Forget();
  TheControl() = {};
  return TheControl();
}

}  // namespace mpc::testing
