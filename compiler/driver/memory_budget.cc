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

std::int64_t plannedBytes(const runtime::Program &Program) {
  return static_cast<std::int64_t>(Program.planned_bytes());
}

/// Two numbers that a pass has left on the step's function; \p Otherwise where there are none.
template <typename Helper, typename Plan>
std::pair<std::int64_t, std::int64_t> numbersOf(Helper (MpcDialect::*Accessor)(), const Plan &Of,
                                                std::pair<std::int64_t, std::int64_t> Otherwise) {
  ModuleOp Root = Of.final_ir.impl().module.get();
  func::FuncOp Function = Root.lookupSymbol<func::FuncOp>(Of.program.name);
  DenseI64ArrayAttr Numbers = Function ? (dialectOf(Function).*Accessor)().getAttr(Function) : DenseI64ArrayAttr();
  return Numbers ? std::pair(Numbers[0], Numbers[1]) : Otherwise;
}

/// The numbers of candidates that mpc-recompute has found: values without matrix work, and Cells.
std::pair<std::int64_t, std::int64_t> candidatesOf(const CompileResult &Result) {
  return numbersOf(&MpcDialect::getRecomputeCandidatesAttrHelper, Result, {0, 0});
}

/// The number of chunks that the head of a language model is computed in, and the bytes of its whole logits. The number
/// is 1 where the head stays whole or there is none.
template <typename Plan> std::pair<std::int64_t, std::int64_t> headOf(const Plan &Of) {
  return numbersOf(&MpcDialect::getHeadChunksAttrHelper, Of, {1, 0});
}

/// More chunks have to save at least this share of the plan: each reads and writes the weight's gradient once more.
constexpr double WorthwhileShare = 0.01;
constexpr std::int64_t MostTriedChunks = 16;

/// Tries chunks of the head and numbers of candidates, and remembers the smallest plan.
class BudgetSearch {
public:
  BudgetSearch(StepCompiler &Step, const CompileOptions &Given)
      : Step(Step), Options(Given), Budget(Given.memory_budget) {
    Options.memory_budget = 0;
    Options.plan.keep_packed_weights = false;
  }

  absl::StatusOr<CompileResult> run() {
    absl::StatusOr<bool> Fits = tryCount(0);
    if (Fits.ok() && !*Fits)
      Fits = doWithoutLargerArena();
    if (Fits.ok() && !*Fits)
      Fits = cutHead();
    if (Fits.ok() && !*Fits)
      Fits = recompute();
    // Where less is kept, the head may be the largest part of the peak.
    if (Fits.ok() && !*Fits && HasHead && Options.head_chunks < MostTriedChunks) {
      Options.head_chunks = MostTriedChunks;
      Fits = recompute();
    }
    // More candidates may plan more: what they are computed from lives longer.
    if (Fits.ok() && !*Fits)
      Fits = anyOf(Candidates);
    if (!Fits.ok())
      return Fits.status();
    if (!Fitting)
      return exhausted();
    return *std::move(Fitting);
  }

private:
  /// Plans so that flat buffers cost no memory, now and in later trials.
  absl::StatusOr<bool> doWithoutLargerArena() {
    Options.plan.flat_share = 0;
    return tryCount(0);
  }

  /// Doubles the chunks of the head for as long as that makes the plan smaller, beginning with the number that is asked
  /// for. A language model's logits are mostly its largest tensor, and computing them in parts costs little.
  absl::StatusOr<bool> cutHead() {
    absl::StatusOr<bool> Fits = false;
    std::int64_t Best = Options.head_chunks;
    for (std::int64_t Chunks = 2; Chunks <= MostTriedChunks && Fits.ok() && !*Fits; Chunks *= 2) {
      if (Chunks <= Options.head_chunks)
        continue;
      double Before = static_cast<double>(plannedBytes(Last->program));
      Options.head_chunks = Chunks;
      Fits = tryCount(0);
      if (!Fits.ok())
        return Fits;
      auto [Found, Logits] = headOf(*Fits ? *Fitting : *Last);
      // Few logits seem to save memory only by another packing. That is not worth losses that are added in another
      // order.
      if (static_cast<double>(Logits) <= WorthwhileShare * Before) {
        Fitting.reset();
        Fits = false;
        break;
      }
      HasHead = true;
      if (*Fits)
        return Fits;
      if (Found < Chunks || static_cast<double>(plannedBytes(Last->program)) > (1 - WorthwhileShare) * Before)
        break;
      Best = Chunks;
    }
    Options.head_chunks = Best;
    return Fits;
  }

  /// Gives up values, then Cells, beside what the head has given.
  absl::StatusOr<bool> recompute() {
    absl::StatusOr<bool> Fits = tryCount(1);
    if (!Fits.ok() || *Fits)
      return Fits;
    auto [Cheap, Cells] = candidatesOf(*Last);
    Candidates = Cheap + Cells;
    if (Cheap > 1)
      Fits = fewest(2, Cheap);
    if (Fits.ok() && !*Fits && Cells > 0)
      Fits = fewest(Cheap + 1, Candidates);
    return Fits;
  }

  absl::StatusOr<bool> tryCount(std::int64_t Count) {
    Options.recompute = Count;
    absl::StatusOr<CompileResult> Result = Step.plan(Options);
    if (!Result.ok())
      return Result.status();
    bool Fits = plannedBytes(Result->program) <= Budget;
    if (Fits)
      Fitting = std::move(*Result);
    else
      Last = std::move(*Result);
    if (!Fits && (!Smallest || plannedBytes(Last->program) < plannedBytes(Smallest->program)))
      Smallest = SmallestPlan{Last->program, Last->final_ir.Clone()};
    return Fits;
  }

  /// The fewest candidates from \p First to \p Most that fit, as far as more of them never plan more.
  absl::StatusOr<bool> fewest(std::int64_t First, std::int64_t Most) {
    absl::StatusOr<bool> Fits = tryCount(Most);
    if (!Fits.ok() || !*Fits)
      return Fits;
    while (First < Most) {
      std::int64_t Middle = First + (Most - First) / 2;
      Fits = tryCount(Middle);
      if (!Fits.ok())
        return Fits;
      (*Fits ? Most : First) = *Fits ? Middle : Middle + 1;
    }
    return true;
  }

  /// Counts spread over all of them, before giving up.
  absl::StatusOr<bool> anyOf(std::int64_t Most) {
    constexpr std::int64_t Spread = 24;
    absl::StatusOr<bool> Fits = false;
    for (std::int64_t Count = 1; Count < Most && Fits.ok() && !*Fits; Count += 1 + Most / Spread)
      Fits = tryCount(Count);
    return Fits;
  }

  /// Says by which measures the smallest plan is small.
  std::string measures() const {
    std::int64_t Chunks = headOf(*Smallest).first;
    std::string Head = Chunks > 1 ? absl::StrCat("the head in ", Chunks, " chunks and ") : "";
    return absl::StrCat(Head, Candidates == 0 ? "nothing to recompute" : "recomputation");
  }

  absl::Status exhausted() const {
    std::string Where;
    if (absl::StatusOr<MemoryTable> Table = TabulateMemory(Smallest->program, Smallest->final_ir);
        Table.ok() && Table->peak_bytes > 0) {
      Where =
          absl::StrCat("; its peak lies at ", Table->peak_op, Table->peak_path.empty() ? "" : " in ", Table->peak_path);
      if (!Table->rows.empty())
        absl::StrAppend(&Where, ", the largest buffer there is that of ", Table->rows[0].op,
                        Table->rows[0].path.empty() ? "" : " in ", Table->rows[0].path, " (",
                        FormatBytes(Table->rows[0].bytes), ")");
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "@", Options.function, ": memory budget ", FormatBytes(Budget), " (", Budget, " bytes) cannot be met: with ",
        measures(), " the smallest plan takes ", FormatBytes(plannedBytes(Smallest->program)), " (",
        plannedBytes(Smallest->program), " bytes: arena ",
        FormatBytes(static_cast<std::int64_t>(Smallest->program.arena_bytes)), ", state ",
        FormatBytes(static_cast<std::int64_t>(Smallest->program.state_bytes())), ", constants ",
        FormatBytes(static_cast<std::int64_t>(Smallest->program.constant_bytes())), ")", Where));
  }

  struct SmallestPlan {
    runtime::Program program;
    Module final_ir;
  };

  StepCompiler &Step;
  CompileOptions Options;
  std::int64_t Budget;
  std::int64_t Candidates = 0; ///< candidates of mpc-recompute that were found so far
  bool HasHead = false;        ///< a head can be cut, and its logits are more than a negligible part of the plan
  std::optional<CompileResult> Fitting, Last;
  std::optional<SmallestPlan> Smallest;
};

} // namespace

absl::StatusOr<CompileResult> planWithin(StepCompiler &Step, const CompileOptions &Options) {
  absl::StatusOr<CompileResult> Result = BudgetSearch(Step, Options).run();
  if (Result.ok())
    Result->options.memory_budget = Options.memory_budget;
  return Result;
}

absl::StatusOr<CompileResult> compileWithin(StepCompiler &Step, const CompileOptions &Options) {
  runtime::Stopwatch OfTrials;
  absl::StatusOr<CompileResult> Result = planWithin(Step, Options);
  if (!Result.ok())
    return Result;
  double Others = OfTrials.seconds();
  for (const PhaseTime &Phase : Result->phases)
    Others -= Phase.depth == 0 ? Phase.seconds : 0;
  if (absl::Status Status = Step.generate(*Result); !Status.ok())
    return Status;
  addPhase(Result->phases, "other trials for the memory budget", 0, std::max(Others, 0.0));
  return Result;
}

} // namespace mpc::compiler
