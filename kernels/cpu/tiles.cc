#include "kernels/cpu/tiles.h"

#include <array>
#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {
namespace {

std::atomic<bool> g_assumed{false};

#if defined(__x86_64__)

/// The registers' layout, as the processor loads it.
struct TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

/// Linux gives a process tiles when it asks for them.
bool AskForTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return __builtin_cpu_supports("amx-bf16") != 0 && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

[[gnu::target("amx-tile")]] void LoadConfiguration() {
  // Not on the stack: to the compiler the instruction reads its first bytes alone.
  static constexpr TileConfiguration kConfiguration;
  _tile_loadconfig(&kConfiguration);
}

[[gnu::target("amx-tile")]] void ReleaseTiles() { _tile_release(); }

#else

bool AskForTiles() { return false; }
void LoadConfiguration() {}
void ReleaseTiles() {}

#endif

}  // namespace

bool HasTiles() {
  static const bool has_tiles = AskForTiles();
  return has_tiles;
}

bool MultipliesTiles() {
  static const bool multiplies = HasTiles() && UsesInstructionsOf(dnnl::cpu_isa::avx512_core_amx);
  return multiplies || g_assumed.load(std::memory_order_relaxed);
}

void AssumeTiles() { g_assumed.store(true, std::memory_order_relaxed); }

TileScope::TileScope() { LoadConfiguration(); }
TileScope::~TileScope() { ReleaseTiles(); }

}  // namespace mpc::cpu
