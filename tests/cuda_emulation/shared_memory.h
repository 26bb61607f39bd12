// The shared memory of the running block: arrays between guards, poisoned when the block begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cuda_emulation/device_language.h"

namespace mpc::emulation {

class SharedMemory {
 public:
  SharedMemory();

  /// A block begins: no arrays, and dynamic memory of `dynamic_bytes`.
  void Begin(std::size_t dynamic_bytes);
  /// 16-byte aligned, every byte 0xFF: NaN, -1. Null if the block then takes more than kSharedBytes and
  /// than its dynamic memory.
  void* Allocate(std::size_t bytes, Place place);
  void* dynamic() const { return arrays_.front().data; }
  std::size_t used() const { return used_; }
  /// The block has ended: what was written past an array, if something was.
  std::optional<std::string> Overrun() const;

 private:
  struct Array {
    std::uint8_t* data;
    std::size_t bytes;
    std::optional<Place> place;  ///< none: dynamic
    std::string Name() const;
  };
  void* Add(std::size_t bytes, std::optional<Place> place);

  std::vector<std::uint8_t> pool_;
  std::size_t end_ = 0, used_ = 0;
  std::vector<Array> arrays_;  ///< the dynamic memory first
};

}  // namespace mpc::emulation
