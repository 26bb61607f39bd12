#include "tools/mpc-bench/op_bench.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc/nn.h"
#include "runtime/cpu/cpu_features.h"
#include "tools/mpc-bench/machine_limits.h"
#include "tools/mpc-bench/op_program.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {
namespace {

/// A sample is at least this long: shorter runs are repeated.
constexpr double kSampleSeconds = 1e-3;
constexpr int kLeastSamples = 7;

/// Seconds of one run, the mean of `repeats`.
absl::StatusOr<double> TimeRuns(OpProgram& program, std::int64_t repeats) {
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) {
    if (absl::Status status = program.Run(); !status.ok()) return status;
  }
  return SecondsSince(begin) / static_cast<double>(repeats);
}

/// Runs every set once, which also brings its pages in. Returns how often a sample runs the graph.
absl::StatusOr<std::int64_t> WarmUp(OpProgram& program) {
  const absl::StatusOr<double> first = TimeRuns(program, static_cast<std::int64_t>(program.sets()));
  if (!first.ok()) return first.status();
  const absl::StatusOr<double> seconds = TimeRuns(program, 1);
  if (!seconds.ok()) return seconds.status();
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(kSampleSeconds / std::max(*seconds, 1e-9)) + 1, 1, 10'000);
}

/// The probes, with what they found so far.
class Limits {
 public:
  explicit Limits(const OpOptions& options) : dtype_(options.dtype), copy_(Footprint()) {}

  /// Twice the last-level cache, where memory allows.
  static std::size_t Footprint() { return std::min(2 * runtime::LastLevelCacheBytes(), AvailableBytes() / 4 + 1); }

  absl::Status UseGemm() {
    if (gemm_.has_value()) return absl::OkStatus();
    absl::StatusOr<OpProgram> program =
        OpProgram::Make(FindOpGraph("matmul"), {kGemm, kGemm, kGemm}, dtype_, /*fusion=*/false, {.sets = 1});
    if (!program.ok()) return program.status();
    gemm_.emplace(*std::move(program));
    return TimeRuns(*gemm_, 2).status();
  }

  double Copy() { return copies_.emplace_back(copy_.Measure()); }
  /// The faster of multiply-adds on registers and of the product: the library may have better instructions.
  absl::StatusOr<double> Multiply() {
    const double on_registers = multiply_adds_.emplace_back(MeasureMultiplyAdd(dtype_));
    const absl::StatusOr<double> seconds = TimeRuns(*gemm_, 1);
    if (!seconds.ok()) return seconds.status();
    constexpr double kFlops = 2.0 * kGemm * kGemm * kGemm;
    return std::max(on_registers, gemms_.emplace_back(kFlops / *seconds));
  }

  MachineLimits Found() const {
    MachineLimits limits = {.copy_bytes = PercentilesOf(copies_),
                            .copy_form = copy_.form(),
                            .copy_footprint = copy_.footprint(),
                            .multiply_add_instructions = MultiplyAddInstructions(dtype_)};
    if (!gemms_.empty()) {
      limits.multiply_adds = PercentilesOf(multiply_adds_);
      limits.gemm = PercentilesOf(gemms_);
    }
    return limits;
  }

 private:
  static constexpr std::int64_t kGemm = 1024;

  DType dtype_;
  CopyProbe copy_;
  std::optional<OpProgram> gemm_;
  std::vector<double> copies_;
  std::vector<double> multiply_adds_;
  std::vector<double> gemms_;
};

absl::StatusOr<OpProgram> MakeProgram(const OpOptions& options, const OpGraph& graph,
                                      const std::string& kernel_choice) {
  const BufferChoice choice = {.sets = options.buffers, .footprint = Limits::Footprint(), .most = AvailableBytes() / 2};
  const Shape& shape = options.shape.empty() ? graph.default_shape : options.shape;
  return OpProgram::Make(graph, shape, options.dtype, options.fusion, choice, kernel_choice);
}

/// The kernels that are measured, by name. Only "": that of the rules.
absl::StatusOr<std::vector<std::string>> ChoicesToMeasure(const OpOptions& options, const OpGraph& graph) {
  if (!options.each_choice) return std::vector<std::string>{""};
  const absl::StatusOr<OpProgram> program = MakeProgram(options, graph, "");
  if (!program.ok()) return program.status();
  return program->kernel_choices().empty() ? std::vector<std::string>{""} : program->kernel_choices();
}

absl::StatusOr<OpResult> MeasureGraph(const OpOptions& options, const OpGraph& graph, const std::string& kernel_choice,
                                      Limits& limits) {
  OpResult result = {.name = graph.name,
                     .kernel_choice = kernel_choice,
                     .shape = options.shape.empty() ? graph.default_shape : options.shape};
  absl::StatusOr<OpProgram> program = MakeProgram(options, graph, kernel_choice);
  if (!program.ok()) return program.status();
  result.bytes = static_cast<double>(program->bytes());
  if (graph.flops) {
    result.flops = graph.flops(result.shape);
    if (absl::Status status = limits.UseGemm(); !status.ok()) return status;
  }
  const absl::StatusOr<std::int64_t> repeats = WarmUp(*program);
  if (!repeats.ok()) return repeats.status();

  std::vector<double> seconds;
  std::vector<double> fractions;
  int memory_bound = 0;
  const Clock::time_point begin = Clock::now();
  while (seconds.size() < kLeastSamples || SecondsSince(begin) < options.seconds) {
    const double copying = result.bytes / limits.Copy();
    double multiplying = 0;
    if (graph.flops) {
      const absl::StatusOr<double> rate = limits.Multiply();
      if (!rate.ok()) return rate.status();
      multiplying = result.flops / *rate;
    }
    const absl::StatusOr<double> sample = TimeRuns(*program, *repeats);
    if (!sample.ok()) return sample.status();
    seconds.push_back(*sample);
    fractions.push_back(std::max(copying, multiplying) / *sample);
    memory_bound += copying > multiplying ? 1 : -1;
  }
  result.seconds = PercentilesOf(seconds);
  result.fraction = PercentilesOf(fractions);
  result.memory_bound = memory_bound > 0;
  result.instructions = program->instructions();
  result.sets = program->sets();
  result.footprint = program->footprint();
  return result;
}

}  // namespace

absl::StatusOr<OpTable> MeasureOps(const OpOptions& options) {
  if (absl::Status status = SetContext({.num_threads = static_cast<int>(options.threads)}); !status.ok()) return status;
  Limits limits(options);
  OpTable table;
  for (const std::string& name : options.names) {
    const OpGraph& graph = FindOpGraph(name);
    const auto named = [&](const absl::Status& status) {
      const Shape& shape = options.shape.empty() ? graph.default_shape : options.shape;
      return absl::Status(status.code(), absl::StrCat(name, " of ", graph.sizes, " = ", ShapeToString(shape), " in ",
                                                      std::string(DTypeName(options.dtype)), ": ", status.message()));
    };
    const absl::StatusOr<std::vector<std::string>> choices = ChoicesToMeasure(options, graph);
    if (!choices.ok()) return named(choices.status());
    for (const std::string& choice : *choices) {
      absl::StatusOr<OpResult> result = MeasureGraph(options, graph, choice, limits);
      if (!result.ok()) return named(result.status());
      table.results.push_back(*std::move(result));
    }
  }
  table.limits = limits.Found();
  return table;
}

}  // namespace mpc::tools
