// The tiling of a region's iteration space for the host. It depends on the shapes and the target alone.
#pragma once

#include "compiler/codegen/fusion_emitter.h"

namespace mpc::codegen {

/// The iteration space as the loops see it. A row of the loops may stand for several narrow rows of the region, so that
/// vectors are filled. It may also stand for a stretch of a flat space.
struct HostSchedule {
  /// Chooses the schedule of \p fusion on \p target.
  static HostSchedule create(FusionOp fusion, const FusionPlan &plan, const CodeTarget &target);

  unsigned lanes;     ///< lanes of a vector of f32, or of two that are computed together
  int64_t columns;    ///< columns of the region
  int64_t width;      ///< columns of a row of the loops
  int64_t copies = 1; ///< how many times a row of the loops holds the region's columns
  int64_t rows;       ///< rows of the loops, the last included
  int64_t lastWidth;  ///< width of the last row; where it differs, width is a multiple of lanes
  int64_t rowsPerTile;
  int64_t columnsPerTile; ///< `width`, or a multiple of lanes where few rows are wide
  /// `streams`: what is stored would not stay in any cache until it is read. Stores around the caches then save reading
  /// the lines that they overwrite. `shifts`: rows whose length is no multiple of a vector's are stored shifted
  /// (host_stream.h), where shifts are cheap.
  bool streams = false;
  bool shifts = false;
  /// Every second sweep visits the tiles from the last one to the first. The last-level cache still holds the tiles
  /// that the sweep before visited last.
  bool turns = false;

  /// A sweep reads and writes more than a core's own cache holds, so elements come from further away.
  bool fetches = false;

  int64_t columnTiles() const { return llvm::divideCeil(width, columnsPerTile); }
  int64_t rowTiles() const { return llvm::divideCeil(rows, rowsPerTile); }
  int64_t tiles() const { return rowTiles() * columnTiles(); }
  bool hasShortRow() const { return lastWidth != width; }

  /// Rows that share one visit to a column's accumulators.
  static constexpr int64_t rowsPerVisit = 8;
  /// Columns that one block of a combination takes.
  static constexpr int64_t columnsPerCombination = 256;
};

} // namespace mpc::codegen
