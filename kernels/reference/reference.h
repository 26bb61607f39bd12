// The oracle: one plain function an operation, in f64, with the result rounded to its storage type.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc::reference {

/// A tensor whose elements are held in f64 whatever its storage type. i64 values must fit 53 bits.
struct Tensor {
  TensorSpec spec;
  std::vector<double> values;  ///< row-major
};

/// Computes `outputs` (specs are set, values are sized) from `inputs`. Outputs are not yet rounded.
using Function = void (*)(const Attributes& attributes, absl::Span<const Tensor> inputs, absl::Span<Tensor> outputs);

/// The function of operation `name` (the IR's mnemonic without "mpc."), or null.
Function Find(std::string_view name);

/// Every operation that has a reference function, sorted.
std::vector<std::string_view> Names();

/// How results are stored after each operation. f64 results are never rounded. Integers and bool are always rounded as
/// RoundTo does.
enum class Rounding {
  /// To f32 to nearest even, f16 and bf16 from there, as kernels do. So a narrowing cast may be folded into an
  /// operation without another bit. A cast of an integer or of f64 to f16 or bf16 rounds once, and so does every f8
  /// result.
  kStorage,
  /// Only f16, bf16 and f8 types, from f64 at once. f32 tensors keep f64 accuracy: the oracle that tolerances are
  /// derived against.
  kLowOnly,
  kNone,  ///< floating types keep f64 accuracy: a cast between them changes nothing
};

/// Runs one operation and rounds its results. Gives `outputs`, whose specs are set, their sizes. Number, types and
/// shapes of operands and results are not checked. Errors: NOT_FOUND for an operation without a reference function,
/// those of CheckWords.
absl::Status Run(std::string_view name, const Attributes& attributes, absl::Span<const Tensor> inputs,
                 absl::Span<Tensor> outputs, Rounding rounding = Rounding::kStorage);

/// Rounds the result of an operation, which is no cast of an integer or of f64, as Run does.
void Round(Tensor& result, Rounding rounding);

/// `value` as storage type `dtype` represents it: rounded once, to nearest even. Integers truncate towards zero and
/// saturate; of NaN they are 0. A bool is 1 for every value but 0. Beyond the largest floating value is infinity, or
/// NaN in f8E4M3FN, which has none.
double RoundTo(DType dtype, double value);

/// Conversions from and to raw storage, row-major (bool takes a byte). ToStorage rounds as RoundTo does.
Tensor FromStorage(const TensorSpec& spec, const void* data);
void ToStorage(const Tensor& tensor, void* data);

}  // namespace mpc::reference
