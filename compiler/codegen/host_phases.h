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
  /// An output with a value for each element. `stream` stores it shifted; null: it is stored in place.
  struct ElementOutput {
    FusionOutputs::Output output;
    std::unique_ptr<HostStream> stream;
  };
  /// What is prefetched: all of the row below, its first or second half, or what lies 8 KiB further on (Ahead).
  enum class Fetch { All, FirstHalf, SecondHalf, Ahead };

  unsigned number;
  std::list<HostAccumulators> rows;                    ///< accumulators of the reductions along the row
  llvm::SmallVector<HostAccumulators *> everything;    ///< those along Axis::All, which HostPhases owns
  llvm::SmallVector<HostColumnAccumulators *> columns; ///< those along Axis::Column, which HostPhases owns
  std::vector<ElementOutput> elements;
  llvm::SmallVector<FusionOutputs::Output> rowOutputs;
  llvm::SmallVector<mlir::Value> prefetched; ///< inputs that the first phase of the next row waits for
  Fetch fetch = Fetch::All;
  unsigned chains = 1; ///< vectors that are accumulated independently at a time, to hide the latency of additions

  bool visitsElements() const { return !rows.empty() || !everything.empty() || !columns.empty() || !elements.empty(); }
};

/// The phases of a sweep with the accumulators that outlive a row.
struct HostPhases {
  /// Makes the phases of sweep number \p sweep. \p rowTile is the index of the tile among the tiles of rows.
  HostPhases(HostFusion &region, HostFunction &f, unsigned sweep, llvm::Value *rowTile);

  std::list<HostPhase> all;
  std::list<HostAccumulators> everything;
  std::list<HostColumnAccumulators> columns;
  /// True: columns are reduced, and no row has a reduction or an output of its own. Then one phase visits several rows
  /// column by column.
  bool byColumns;

private:
  void prefetch(const HostFusion &region, unsigned sweep);
};

} // namespace mpc::codegen
