#include "tests/kernels/tile_emulator.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "kernels/cpu/tiles.h"

namespace mpc::test {
namespace {

constexpr int kTileCount = 8, kMostRows = 16, kRowBytes = 64;

struct Tile {
  int rows = 0, row_bytes = 0;
  std::uint8_t data[kMostRows][kRowBytes] = {};
};

/// The registers of a thread.
struct TileState {
  bool is_configured = false;
  std::array<Tile, kTileCount> tiles;
};
thread_local TileState t_state;

[[noreturn]] void End(std::string_view reason) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, reason.data(), reason.size());
  std::abort();
}

/// An instruction of three bytes of VEX prefix, with its operands.
struct Instruction {
  int opcode, prefix;  ///< prefix: 0 none, 1 66, 2 F3, 3 F2
  bool has_memory;
  int reg, rm, vvvv;
  std::uintptr_t address;  ///< base and displacement
  std::int64_t index;      ///< the index register: bytes from row to row
  std::uintptr_t next;
};

constexpr std::array<int, 16> kRegisters = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/// Reads the bytes of an instruction.
class Decoder {
 public:
  explicit Decoder(const ucontext_t& context)
      : registers_(context.uc_mcontext.gregs), at_(static_cast<std::uintptr_t>(registers_[REG_RIP])) {}

  /// False: it is none of those with VEX.128.0F38.W0.
  bool Decode(Instruction& instruction) {
    if (Byte() != 0xc4) return false;
    const int second = Byte(), third = Byte();
    if ((second & 0x1f) != 2 || (third & 0x84) != 0) return false;
    const int r = (~second >> 7 & 1) * 8, x = (~second >> 6 & 1) * 8, b = (~second >> 5 & 1) * 8;
    instruction.prefix = third & 3;
    instruction.vvvv = ~third >> 3 & 0xf;
    instruction.opcode = Byte();
    const int mod_rm = Byte(), mod = mod_rm >> 6;
    instruction.reg = (mod_rm >> 3 & 7) + r;
    instruction.rm = (mod_rm & 7) + b;
    instruction.has_memory = mod != 3;
    if (instruction.has_memory) DecodeMemory(mod, mod_rm & 7, x, b, instruction);
    instruction.next = at_;
    return true;
  }

 private:
  int Byte() { return *reinterpret_cast<const std::uint8_t*>(at_++); }
  std::int64_t Displacement(std::size_t bytes) {
    const int byte = *reinterpret_cast<const std::uint8_t*>(at_);
    std::int32_t value = byte < 128 ? byte : byte - 256;
    if (bytes == 4) std::memcpy(&value, reinterpret_cast<const void*>(at_), 4);
    at_ += bytes;
    return value;
  }
  std::int64_t Register(int number) const { return registers_[kRegisters[static_cast<std::size_t>(number)]]; }

  void DecodeMemory(int mod, int rm, int x, int b, Instruction& instruction) {
    std::int64_t base = 0;
    bool is_relative = false, has_base = true;
    instruction.index = 0;
    if (rm == 4) {
      const int sib = Byte(), index = (sib >> 3 & 7) + x;
      has_base = (sib & 7) != 5 || mod != 0;
      if (has_base) base = Register((sib & 7) + b);
      if (index != 4) instruction.index = Register(index) << (sib >> 6);
    } else {
      is_relative = rm == 5 && mod == 0;
      if (!is_relative) base = Register(rm + b);
    }
    if (mod == 1) base += Displacement(1);
    if (mod == 2 || is_relative || !has_base) base += Displacement(4);
    // Behind the displacement of these instructions comes nothing.
    if (is_relative) base += static_cast<std::int64_t>(at_);
    instruction.address = static_cast<std::uintptr_t>(base);
  }

  const greg_t* registers_;
  std::uintptr_t at_;
};

Tile& TileAt(int number) {
  if (!t_state.is_configured) End("a tile is used without a configuration\n");
  if (number >= kTileCount) End("there are eight tiles\n");
  return t_state.tiles[static_cast<std::size_t>(number)];
}

void LoadConfiguration(const std::uint8_t* bytes) {
  if (bytes[0] != 1 || bytes[1] != 0) End("the emulated tiles have palette 1 and start with row 0\n");
  t_state = {};
  t_state.is_configured = true;
  for (std::size_t i = 0; i < kTileCount; ++i) {
    std::uint16_t row_bytes = 0;
    std::memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof(row_bytes));
    t_state.tiles[i].row_bytes = row_bytes;
    t_state.tiles[i].rows = bytes[48 + i];
    if (row_bytes > kRowBytes || t_state.tiles[i].rows > kMostRows) End("a tile has at most 16 rows of 64 bytes\n");
  }
}

/// A subnormal number counts as 0, as operand and as result.
float Flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

float Bf16At(const Tile& tile, int row, int column) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, &tile.data[row][2 * column], sizeof(bits));
  return Flushed(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

/// The sums of first numbers of pairs and of second ones are apart. c takes their sum.
void MultiplyPairs(Tile& c, const Tile& a, const Tile& b) {
  for (int m = 0; m < c.rows; ++m) {
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      float first = 0, second = 0, sum = 0;
      for (int k = 0; k < a.row_bytes / 4; ++k) {
        first = Flushed(std::fma(Bf16At(a, m, 2 * k), Bf16At(b, k, 2 * n), first));
        second = Flushed(std::fma(Bf16At(a, m, 2 * k + 1), Bf16At(b, k, 2 * n + 1), second));
      }
      std::memcpy(&sum, &c.data[m][4 * n], sizeof(sum));
      sum = Flushed(Flushed(sum) + Flushed(first + second));
      std::memcpy(&c.data[m][4 * n], &sum, sizeof(sum));
    }
  }
}

void Load(Tile& tile, const Instruction& instruction) {
  std::memset(tile.data, 0, sizeof(tile.data));
  for (int row = 0; row < tile.rows; ++row) {
    const std::uintptr_t from = instruction.address + static_cast<std::uintptr_t>(row * instruction.index);
    std::memcpy(tile.data[row], reinterpret_cast<const void*>(from), static_cast<std::size_t>(tile.row_bytes));
  }
}

void Store(const Tile& tile, const Instruction& instruction) {
  for (int row = 0; row < tile.rows; ++row) {
    const std::uintptr_t to = instruction.address + static_cast<std::uintptr_t>(row * instruction.index);
    std::memcpy(reinterpret_cast<void*>(to), tile.data[row], static_cast<std::size_t>(tile.row_bytes));
  }
}

/// False: the instruction is not known.
bool Execute(const Instruction& instruction) {
  constexpr int kConfigure = 0x49, kMove = 0x4b, kMultiply = 0x5c;
  constexpr int kNone = 0, kF3 = 2, kF2 = 3;
  const auto [opcode, prefix, has_memory, reg, rm, vvvv, address, index, next] = instruction;
  if (opcode == kConfigure && prefix == kNone) {
    if (has_memory) {
      LoadConfiguration(reinterpret_cast<const std::uint8_t*>(address));
    } else {
      t_state = {};
    }
  } else if (opcode == kConfigure && prefix == kF2 && !has_memory) {
    std::memset(TileAt(reg).data, 0, sizeof(Tile::data));
  } else if (opcode == kMove && prefix == kF2 && has_memory) {
    Load(TileAt(reg), instruction);
  } else if (opcode == kMove && prefix == kF3 && has_memory) {
    Store(TileAt(reg), instruction);
  } else if (opcode == kMultiply && prefix == kF3 && !has_memory) {
    MultiplyPairs(TileAt(reg), TileAt(rm), TileAt(vvvv));
  } else {
    return false;
  }
  return true;
}

void Handle(int signal, siginfo_t*, void* given) {
  auto* const context = static_cast<ucontext_t*>(given);
  Instruction instruction{};
  if (Decoder(*context).Decode(instruction) && Execute(instruction)) {
    context->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(instruction.next);
    return;
  }
  // The instruction is refused again, and ends the process.
  ::signal(signal, SIG_DFL);
}

}  // namespace

void MultiplyPairsInSoftware(const void* a, const void* b, float* c) {
  const auto tile_of = [](const void* data) {
    Tile tile{kMostRows, kRowBytes, {}};
    std::memcpy(tile.data, data, sizeof(tile.data));
    return tile;
  };
  Tile sums = tile_of(c);
  MultiplyPairs(sums, tile_of(a), tile_of(b));
  std::memcpy(c, sums.data, sizeof(sums.data));
}

bool EmulateTiles() {
  if (__builtin_cpu_supports("avx512f") == 0) return false;
  if (!cpu::HasTiles()) {
    struct sigaction action = {};
    action.sa_sigaction = Handle;
    action.sa_flags = SA_SIGINFO;
    if (::sigaction(SIGILL, &action, nullptr) != 0) return false;
  }
  cpu::AssumeTiles();
  return true;
}

}  // namespace mpc::test
