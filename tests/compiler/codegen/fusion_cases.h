// Regions that the tests of generated code have in common: IR and operands, for every target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpc::test {

/// What the elements of an operand are.
enum class Fill {
  kNumbers,   ///< about the normal distribution, with the odd zero, subnormal, huge number, infinity and NaN
  kFinite,    ///< about the normal distribution
  kPositive,  ///< from 1/2 to 2
  kIntegers,  ///< from -3 to 3: sums of their products are exact, in whatever order
  kHalf,      ///< 1/2
  kHuge,      ///< from -3 to 3 times 1e38, whose squares overflow f32
  kLabels,    ///< integers from 0 to 9
  kBools,
};

struct FusionOperand {
  std::string type;  ///< "tensor<4x8xf32>"
  Fill fill = Fill::kNumbers;
};

/// One mpc.fusion, whose body names its operands %a0, %a1, ... and yields %r0, %r1, ...
struct FusionCase {
  std::string name;
  std::vector<FusionOperand> operands;
  std::string body;
  std::vector<std::string> results;  ///< types
  /// How far a result may be from one whose sums have another order: `relative` of its size, and `absolute`. Both 0:
  /// equal in every bit.
  double relative = 0;
  double absolute = 0;

  /// A module whose `@region` is the fusion.
  std::string text() const;
};

/// Regions on [rows, columns] whose tensors are `low` where an operation may be low: "f32", "f16", "bf16".
std::vector<FusionCase> ElementwiseRegions(std::int64_t rows, std::int64_t columns, const std::string& low);
/// Those that reduce rows, columns or everything.
std::vector<FusionCase> ReducingRegions(std::int64_t rows, std::int64_t columns, const std::string& low);

}  // namespace mpc::test
