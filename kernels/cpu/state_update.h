// What kernels of state updates share: scalar operands and the predicate that turns an update off.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

template <typename T>
T ScalarOperand(const KernelOperands& operands, std::size_t position) {
  return *static_cast<const T*>(operands.inputs[position]);
}

/// The optional last operand of a state update. Absent: the update always takes place.
struct Predicate {
  std::size_t position;
  bool present;

  Predicate(const KernelSpec& spec, std::size_t position)
      : position(position), present(spec.inputs.size() > position) {}
  bool Holds(const KernelOperands& operands) const {
    return !present || ScalarOperand<std::uint8_t>(operands, position) != 0;
  }
};

}  // namespace mpc::cpu
