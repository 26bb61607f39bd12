// How a region's iteration space is cut for the host: from its shapes and the target alone.
#pragma once

#include "compiler/codegen/region_emitter.h"

namespace mpc::codegen {

/// The space as the loops see it: rows that may stand for several of the region's (narrow ones, so that vectors fill),
/// or for a stretch of a flat space.
struct HostSchedule {
  static HostSchedule of(FusionOp Fusion, const RegionPlan &Plan, const CodeTarget &Target);

  unsigned lanes;     ///< of a vector of f32, or of two that are computed together
  int64_t columns;    ///< of the region
  int64_t width;      ///< columns of a row of the loops
  int64_t copies = 1; ///< how often the region's columns lie in it
  int64_t rows;       ///< rows of the loops, the last included
  int64_t lastWidth;  ///< of the last row; where it differs, width is a multiple of lanes
  int64_t rowsPerTile;
  int64_t columnsPerTile; ///< `width`, or a multiple of lanes where few rows are wide
  /// What is stored does not stay in any cache until it is read: stores around the caches save reading the lines that
  /// they overwrite. Rows whose length is no multiple of a vector's are stored shifted (host_stream.h), where shifts
  /// are cheap.
  bool streams = false;
  bool shifts = false;
  /// A sweep begins where the one before it ended, for there is what the last-level cache still holds.
  bool turns = false;

  /// More is read and written than a core's own cache holds: what elements are read comes from further away.
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
