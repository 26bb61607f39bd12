// AMX: eight registers of a processor, each a tile of 16 rows of 64 bytes. One instruction multiplies two tiles of
// pairs of bf16 and adds the products to a tile of f32.
#pragma once

#include <cstdint>

namespace mpc::cpu {

/// The name in choice tables of all kernels that multiply tiles.
inline constexpr char kOnTiles[] = "bf16 tiles";

/// The rows of a tile.
inline constexpr std::int64_t kTileRows = 16;
/// The pairs of bf16, or numbers of f32, in a row of a tile.
inline constexpr std::int64_t kTilePairs = 16;

/// Whether the processor multiplies tiles of bf16 and Linux lets this process use them. The first call asks it to.
bool HasTiles();

/// Whether products of bf16 may be computed on tiles: HasTiles(), and oneDNN may use them, too (ONEDNN_MAX_CPU_ISA).
bool MultipliesTiles();

/// From now on MultipliesTiles() is true. A test calls it that emulates the instructions.
void AssumeTiles();

/// While it lives, all tiles of the calling thread have 16 rows of 64 bytes. The processor saves less of a thread
/// without tiles, so tasks that use none have none.
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

}  // namespace mpc::cpu
