// The phases of one sweep, with what each adds and stores.
#pragma once

#include "compiler/codegen/host_accumulators.h"
#include "compiler/codegen/host_stream.h"

#include <list>
#include <memory>
#include <vector>

namespace mpc::codegen {

/// One phase: a visit to the elements of a row, or to those of a few rows column by column.
struct HostPhase {
  /// An output of elements. `stream` stores it shifted, where that is needed.
  struct ElementOutput {
    FusionOutputs::Output output;
    std::unique_ptr<HostStream> stream;
  };
  /// What is prefetched: all of the row below, a half of it, or what lies a little further on.
  enum class Fetch { All, FirstHalf, SecondHalf, Ahead };

  unsigned number;
  std::list<HostAccumulators> rows;
  llvm::SmallVector<HostAccumulators *> everything;
  llvm::SmallVector<HostColumnAccumulators *> columns;
  std::vector<ElementOutput> elements;
  llvm::SmallVector<FusionOutputs::Output> rowOutputs;
  llvm::SmallVector<mlir::Value> prefetched; ///< inputs that the first phase of the next row waits for
  Fetch fetch = Fetch::All;
  unsigned chains = 1;

  bool visitsElements() const { return !rows.empty() || !everything.empty() || !columns.empty() || !elements.empty(); }
};

/// The phases of a sweep with the accumulators that outlive a row.
struct HostPhases {
  HostPhases(HostFusion &region, HostFunction &f, unsigned sweep, llvm::Value *rowTile);

  std::list<HostPhase> all;
  std::list<HostAccumulators> everything;
  std::list<HostColumnAccumulators> columns;
  /// Rows have nothing of their own: several are visited column by column, in one phase.
  bool byColumns;

private:
  void prefetch(const HostFusion &region, unsigned sweep);
};

} // namespace mpc::codegen
