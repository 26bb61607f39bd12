#include "compiler/memory_budget.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/recompute_attributes.h"
#include "compiler/memory_table.h"
#include "compiler/module_impl.h"
#include "compiler/text_table.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <chrono>
#include <optional>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

namespace {

std::int64_t plannedBytes(const CompileResult &Result) {
  return static_cast<std::int64_t>(Result.program.arena_bytes + Result.program.state_bytes());
}

/// How many candidates mpc-recompute has found: without matrix work, and Cells.
std::pair<std::int64_t, std::int64_t> candidatesOf(const CompileResult &Result) {
  ModuleOp Root = Result.final_ir.impl().module.get();
  auto Function = Root.lookupSymbol<func::FuncOp>(Result.program.name);
  auto Counts = Function ? Function->getAttrOfType<DenseI64ArrayAttr>(RecomputeCandidatesAttrName) : nullptr;
  return Counts ? std::pair(Counts[0], Counts[1]) : std::pair<std::int64_t, std::int64_t>(0, 0);
}

/// Tries numbers of candidates and remembers the smallest plan.
class BudgetSearch {
public:
  BudgetSearch(const Module &Traced, const CompileOptions &Given)
      : Traced(Traced), Options(Given), Budget(Given.memory_budget) {
    Options.memory_budget = 0;
  }

  absl::StatusOr<CompileResult> run() {
    absl::StatusOr<bool> Fits = tryCount(0);
    if (Fits.ok() && !*Fits)
      Fits = tryCount(1);
    if (!Fits.ok())
      return Fits.status();
    if (Fitting)
      return *std::move(Fitting);
    auto [Cheap, Cells] = candidatesOf(*Last);
    if (Cheap > 1)
      Fits = fewest(2, Cheap);
    if (Fits.ok() && !Fitting && Cells > 0)
      Fits = fewest(Cheap + 1, Cheap + Cells);
    // More candidates may plan more: what they are computed from lives longer.
    if (Fits.ok() && !Fitting)
      Fits = anyOf(Cheap + Cells);
    if (!Fits.ok())
      return Fits.status();
    if (!Fitting)
      return exhausted(Cheap + Cells);
    return *std::move(Fitting);
  }

private:
  absl::StatusOr<bool> tryCount(std::int64_t Count) {
    Options.recompute = Count;
    absl::StatusOr<CompileResult> Result = Compile(Traced, Options);
    if (!Result.ok())
      return Result.status();
    bool Fits = plannedBytes(*Result) <= Budget;
    if (Fits)
      Fitting = std::move(*Result);
    else
      Last = std::move(*Result);
    if (!Fits && (!Smallest || plannedBytes(*Last) < plannedBytes(*Smallest)))
      Smallest = CompileResult{Last->program, Last->final_ir.Clone(), {}, {}, {}, {}, {}};
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

  absl::Status exhausted(std::int64_t Candidates) const {
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
        Candidates == 0 ? "nothing to recompute" : "recomputation the smallest plan",
        Candidates == 0 ? " the plan takes " : " takes ", FormatBytes(plannedBytes(*Smallest)), " (",
        plannedBytes(*Smallest), " bytes: arena ",
        FormatBytes(static_cast<std::int64_t>(Smallest->program.arena_bytes)), ", state ",
        FormatBytes(static_cast<std::int64_t>(Smallest->program.state_bytes())), ")", Where));
  }

  const Module &Traced;
  CompileOptions Options;
  std::int64_t Budget;
  std::optional<CompileResult> Fitting, Last, Smallest;
};

} // namespace

absl::StatusOr<CompileResult> CompileWithin(const Module &Traced, const CompileOptions &Options) {
  auto Start = std::chrono::steady_clock::now();
  absl::StatusOr<CompileResult> Result = BudgetSearch(Traced, Options).run();
  if (Result.ok()) {
    double Whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - Start).count();
    for (const PhaseTime &Phase : Result->phases)
      Whole -= Phase.depth == 0 ? Phase.seconds : 0;
    Result->phases.push_back({"other trials for the memory budget", std::max(Whole, 0.0), 0});
  }
  return Result;
}

} // namespace mpc::compiler
