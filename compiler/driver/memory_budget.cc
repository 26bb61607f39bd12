#include "compiler/driver/memory_budget.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/module/module_impl.h"
#include "compiler/report/memory_table.h"
#include "compiler/report/text_table.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/stopwatch.h"

#include <optional>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

namespace {

std::int64_t plannedBytes(const runtime::Program &program) {
  return static_cast<std::int64_t>(program.planned_bytes());
}

/// Two numbers that a pass has left on the step's function; \p otherwise where there are none.
template <typename Helper, typename Plan>
std::pair<std::int64_t, std::int64_t> numbersOf(Helper (MpcDialect::*accessor)(), const Plan &of,
                                                std::pair<std::int64_t, std::int64_t> otherwise) {
  ModuleOp root = of.final_ir.impl().module.get();
  func::FuncOp function = root.lookupSymbol<func::FuncOp>(of.program.name);
  DenseI64ArrayAttr numbers = function ? (dialectOf(function).*accessor)().getAttr(function) : DenseI64ArrayAttr();
  return numbers ? std::pair(numbers[0], numbers[1]) : otherwise;
}

/// The numbers of candidates that mpc-recompute has found: values without matrix work, and Cells.
std::pair<std::int64_t, std::int64_t> candidatesOf(const CompileResult &result) {
  return numbersOf(&MpcDialect::getRecomputeCandidatesAttrHelper, result, {0, 0});
}

/// The number of chunks that the head of a language model is computed in, and the bytes of its whole logits. The number
/// is 1 where the head stays whole or there is none.
template <typename Plan> std::pair<std::int64_t, std::int64_t> headOf(const Plan &of) {
  return numbersOf(&MpcDialect::getHeadChunksAttrHelper, of, {1, 0});
}

/// More chunks have to save at least this share of the plan: each reads and writes the weight's gradient once more.
constexpr double worthwhileShare = 0.01;
constexpr std::int64_t mostTriedChunks = 16;

/// Tries chunks of the head and numbers of candidates, and remembers the smallest plan.
class BudgetSearch {
public:
  BudgetSearch(StepCompiler &step, const CompileOptions &given)
      : step(step), options(given), budget(given.memory_budget) {
    options.memory_budget = 0;
    options.plan.keep_packed_weights = false;
  }

  absl::StatusOr<CompileResult> run() {
    absl::StatusOr<bool> fits = tryCount(0);
    if (fits.ok() && !*fits)
      fits = doWithoutLargerArena();
    if (fits.ok() && !*fits)
      fits = cutHead();
    if (fits.ok() && !*fits)
      fits = recompute();
    // Where less is kept, the head may be the largest part of the peak.
    if (fits.ok() && !*fits && hasHead && options.head_chunks < mostTriedChunks) {
      options.head_chunks = mostTriedChunks;
      fits = recompute();
    }
    // More candidates may plan more: what they are computed from lives longer.
    if (fits.ok() && !*fits)
      fits = anyOf(candidates);
    if (!fits.ok())
      return fits.status();
    if (!fitting)
      return exhausted();
    return *std::move(fitting);
  }

private:
  /// Plans so that flat buffers cost no memory, now and in later trials.
  absl::StatusOr<bool> doWithoutLargerArena() {
    options.plan.flat_share = 0;
    return tryCount(0);
  }

  /// Doubles the chunks of the head for as long as that makes the plan smaller, beginning with the number that is asked
  /// for. A language model's logits are mostly its largest tensor, and computing them in parts costs little.
  absl::StatusOr<bool> cutHead() {
    absl::StatusOr<bool> fits = false;
    std::int64_t best = options.head_chunks;
    for (std::int64_t chunks = 2; chunks <= mostTriedChunks && fits.ok() && !*fits; chunks *= 2) {
      if (chunks <= options.head_chunks)
        continue;
      double before = static_cast<double>(plannedBytes(last->program));
      options.head_chunks = chunks;
      fits = tryCount(0);
      if (!fits.ok())
        return fits;
      auto [found, logits] = headOf(*fits ? *fitting : *last);
      // Few logits seem to save memory only by another packing. That is not worth losses that are added in another
      // order.
      if (static_cast<double>(logits) <= worthwhileShare * before) {
        fitting.reset();
        fits = false;
        break;
      }
      hasHead = true;
      if (*fits)
        return fits;
      if (found < chunks || static_cast<double>(plannedBytes(last->program)) > (1 - worthwhileShare) * before)
        break;
      best = chunks;
    }
    options.head_chunks = best;
    return fits;
  }

  /// Gives up values, then Cells, beside what the head has given.
  absl::StatusOr<bool> recompute() {
    absl::StatusOr<bool> fits = tryCount(1);
    if (!fits.ok() || *fits)
      return fits;
    auto [cheap, cells] = candidatesOf(*last);
    candidates = cheap + cells;
    if (cheap > 1)
      fits = fewest(2, cheap);
    if (fits.ok() && !*fits && cells > 0)
      fits = fewest(cheap + 1, candidates);
    return fits;
  }

  absl::StatusOr<bool> tryCount(std::int64_t count) {
    options.recompute = count;
    absl::StatusOr<CompileResult> result = step.plan(options);
    if (!result.ok())
      return result.status();
    bool fits = plannedBytes(result->program) <= budget;
    if (fits)
      fitting = std::move(*result);
    else
      last = std::move(*result);
    if (!fits && (!smallest || plannedBytes(last->program) < plannedBytes(smallest->program)))
      smallest = SmallestPlan{last->program, last->final_ir.Clone()};
    return fits;
  }

  /// The fewest candidates from \p first to \p most that fit, as far as more of them never plan more.
  absl::StatusOr<bool> fewest(std::int64_t first, std::int64_t most) {
    absl::StatusOr<bool> fits = tryCount(most);
    if (!fits.ok() || !*fits)
      return fits;
    while (first < most) {
      std::int64_t middle = first + (most - first) / 2;
      fits = tryCount(middle);
      if (!fits.ok())
        return fits;
      (*fits ? most : first) = *fits ? middle : middle + 1;
    }
    return true;
  }

  /// Counts spread over all of them, before giving up.
  absl::StatusOr<bool> anyOf(std::int64_t most) {
    constexpr std::int64_t spread = 24;
    absl::StatusOr<bool> fits = false;
    for (std::int64_t count = 1; count < most && fits.ok() && !*fits; count += 1 + most / spread)
      fits = tryCount(count);
    return fits;
  }

  /// Says by which measures the smallest plan is small.
  std::string measures() const {
    std::int64_t chunks = headOf(*smallest).first;
    std::string head = chunks > 1 ? absl::StrCat("the head in ", chunks, " chunks and ") : "";
    return absl::StrCat(head, candidates == 0 ? "nothing to recompute" : "recomputation");
  }

  absl::Status exhausted() const {
    std::string where;
    if (absl::StatusOr<MemoryTable> table = TabulateMemory(smallest->program, smallest->final_ir);
        table.ok() && table->peak_bytes > 0) {
      where =
          absl::StrCat("; its peak lies at ", table->peak_op, table->peak_path.empty() ? "" : " in ", table->peak_path);
      if (!table->rows.empty())
        absl::StrAppend(&where, ", the largest buffer there is that of ", table->rows[0].op,
                        table->rows[0].path.empty() ? "" : " in ", table->rows[0].path, " (",
                        FormatBytes(table->rows[0].bytes), ")");
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "@", options.function, ": memory budget ", FormatBytes(budget), " (", budget, " bytes) cannot be met: with ",
        measures(), " the smallest plan takes ", FormatBytes(plannedBytes(smallest->program)), " (",
        plannedBytes(smallest->program), " bytes: arena ",
        FormatBytes(static_cast<std::int64_t>(smallest->program.arena_bytes)), ", state ",
        FormatBytes(static_cast<std::int64_t>(smallest->program.state_bytes())), ", constants ",
        FormatBytes(static_cast<std::int64_t>(smallest->program.constant_bytes())), ")", where));
  }

  struct SmallestPlan {
    runtime::Program program;
    Module final_ir;
  };

  StepCompiler &step;
  CompileOptions options;
  std::int64_t budget;
  std::int64_t candidates = 0; ///< candidates of mpc-recompute that were found so far
  bool hasHead = false;        ///< a head can be cut, and its logits are more than a negligible part of the plan
  std::optional<CompileResult> fitting, last;
  std::optional<SmallestPlan> smallest;
};

} // namespace

absl::StatusOr<CompileResult> planWithin(StepCompiler &step, const CompileOptions &options) {
  absl::StatusOr<CompileResult> result = BudgetSearch(step, options).run();
  if (result.ok())
    result->options.memory_budget = options.memory_budget;
  return result;
}

absl::StatusOr<CompileResult> compileWithin(StepCompiler &step, const CompileOptions &options) {
  runtime::Stopwatch ofTrials;
  absl::StatusOr<CompileResult> result = planWithin(step, options);
  if (!result.ok())
    return result;
  double others = ofTrials.seconds();
  for (const PhaseTime &phase : result->phases)
    others -= phase.depth == 0 ? phase.seconds : 0;
  if (absl::Status status = step.generate(*result); !status.ok())
    return status;
  addPhase(result->phases, "other trials for the memory budget", 0, std::max(others, 0.0));
  return result;
}

} // namespace mpc::compiler
