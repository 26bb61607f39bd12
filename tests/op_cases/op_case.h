// The one table of operation cases. It drives the comparison of kernels with the reference, the gradient check and the
// benchmarks, so that an operation is described once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/reference/reference.h"
#include "kernels/tensor_spec.h"

namespace mpc::op_cases {

/// How the values of an operand are made. All draws are Philox, keyed by the case's name and the operand's position.
struct Values {
  enum class Kind {
    kNormal,    ///< mean a, deviation b
    kUniform,   ///< [a, b)
    kIntegers,  ///< uniform integers in [a, b)
    kOneHot,    ///< each line of the last axis has a single 1
    kList,      ///< `list`, repeated to the operand's size
    kComputed,  ///< result `result` of reference operation `op` on the case's operands `from`, with its attributes
  };
  Kind kind = Kind::kNormal;
  double a = 0;
  double b = 1;
  std::vector<double> list;
  std::string op;
  std::size_t result = 0;
  std::vector<std::size_t> from;  ///< positions; from operands.size() on they name `OpCase::auxiliary`
};

Values Normal(double mean = 0, double deviation = 1);
Values Uniform(double low, double high);
Values Integers(std::int64_t low, std::int64_t high);
Values OneHot();
Values List(std::vector<double> list);
/// For operands that a forward operation saved: the case stays one that a training step could meet.
Values Computed(std::string op, std::size_t result, std::vector<std::size_t> from);

struct OperandCase {
  TensorSpec spec;
  Values values = Normal();
  bool differentiable = false;  ///< the gradient check perturbs it
};

/// One operation with its attributes, operands and results. Specs are those of the f32 form.
struct OpCase {
  std::string name;  ///< unique: "<op>/<what is special>"
  std::string op;    ///< mnemonic
  Attributes attributes;
  std::vector<OperandCase> operands;
  std::vector<TensorSpec> results;

  /// Whether the case also runs in f16 and bf16. Then every f32 operand and result becomes low except these.
  bool low = true;
  std::vector<std::size_t> f32_operands;
  std::vector<std::size_t> f32_results;

  /// Values that computed operands need and the operation does not take.
  std::vector<OperandCase> auxiliary;
};

/// Specs of the case's operands and results in `dtype` (kF32, kF16 or kBF16).
std::vector<TensorSpec> OperandSpecs(const OpCase& op_case, DType dtype);
std::vector<TensorSpec> ResultSpecs(const OpCase& op_case, DType dtype);

/// Operand values in `dtype`, rounded to their storage types: equal calls give equal values.
std::vector<reference::Tensor> MakeInputs(const OpCase& op_case, DType dtype);

/// Every case, grouped by operation family. Names are unique.
const std::vector<OpCase>& AllOpCases();

}  // namespace mpc::op_cases
