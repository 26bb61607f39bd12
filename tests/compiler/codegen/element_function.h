// One element-wise operation as a function of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace mpc::test {

/// Columns of numbers, one an operand or result: an f32 as its bits, an i1 as 0 or 1, an integer as itself.
using Columns = std::vector<std::vector<std::uint64_t>>;

/// Emits, optimises and compiles an operation on tensors of kElements elements, and scalars.
class ElementFunction {
 public:
  /// A tensor whose size is a multiple of every number of lanes.
  static constexpr std::int64_t kElements = 16;

  /// `operands` and `results` have a letter each: f, h, l, i, b a tensor<16x...> of f32, f16, i64, i32, i1, y one of
  /// i8; r one of 1x16xf32; in capitals a scalar, but O a tensor<1xf32>. `attributes` is what stands between braces.
  /// With 0 `lanes` one element at a time.
  ElementFunction(std::string_view op, std::string_view operands, std::string_view results, std::string_view attributes,
                  unsigned lanes);

  /// Results for elements 0 to `count`, a multiple of kElements; operand k of element i is operands[k][i].
  Columns Run(const Columns& operands, std::int64_t count) const;

 private:
  using Function = void (*)(const std::uint64_t* const* operands, std::uint64_t* const* results, std::int64_t element);

  unsigned step_;
  std::size_t results_ = 0;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  Function function_ = nullptr;
};

}  // namespace mpc::test
