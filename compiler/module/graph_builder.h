// Builds the traced graph. No compiler header is needed to use it: the front end stays free of MLIR.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"
#include "runtime/role.h"

namespace mpc::compiler {
// NOLINTBEGIN(readability-identifier-naming): the front end calls this, so that it has the front end's names.

/// A module under construction or finished: owns its MLIR context.
class Module {
public:
  struct Impl;
  Module();
  ~Module();
  Module(Module &&) noexcept;
  Module &operator=(Module &&) noexcept;

  /// The IR as text.
  std::string Print() const;
  /// A deep copy in the same context.
  Module Clone() const;
  Impl &impl() { return *impl_; }
  const Impl &impl() const { return *impl_; }

private:
  std::unique_ptr<Impl> impl_;
};

/// An SSA value, opaque. Null: none.
using ValueHandle = void *;

struct TypedValue {
  ValueHandle value = nullptr;
  TensorSpec spec;
};

/// The place in the user's program where an operation is traced; becomes `mpc.scope`.
struct Scope {
  std::string path;         ///< "lenet5/conv1"
  bool network = false;     ///< inside a network that an AMP level acts on
  std::optional<DType> pin; ///< innermost Cell::ToFloat
  std::string level;        ///< level of the innermost amp::AutoCast scope; empty: that of the compilation
  std::optional<DType> low; ///< its low type
  /// The call of a Cell with Recompute() that it is traced in, counted from 1; becomes `mpc.recompute`. 0: none.
  std::int64_t recompute = 0;
};

/// The name and the role of a function argument.
struct NamedArgument {
  std::string_view name;
  Role role = Role::kInput;
  std::string_view of = {};                    ///< the state that it belongs to; empty for none
  std::optional<DType> storage = std::nullopt; ///< the low type that an f32 parameter is stored in
};

/// The name and the role of a function result; without a role it is an output.
struct NamedResult {
  ValueHandle value = nullptr;
  std::string name;
  std::optional<Role> role;
};

/// An operand of a type that an operation does not take.
struct RefusedOperand {
  std::size_t index = 0;
  bool takesFloats = false; ///< whether the operation takes f32 there
};

/// Functions are built as a stack: the innermost open one receives operations. Errors carry the operation's own words,
/// without the Cell path.
class GraphBuilder {
public:
  GraphBuilder();
  ~GraphBuilder();

  /// Opens a function, which is a step (`mpc.step`) unless it is private. A name that is taken gets a number; the name
  /// used is returned.
  std::string BeginFunction(std::string_view name, bool is_private);
  /// Appends an argument to the open function at `depth` (1: the outermost).
  ValueHandle AddArgument(const TensorSpec &spec, const NamedArgument &argument, std::size_t depth);
  /// The name of a function argument; empty for any other value.
  std::string ArgumentName(ValueHandle value) const;
  /// Number of open functions; a value belongs to the depth it was made at.
  std::size_t depth() const;

  /// Emits operation `op` ("conv2d"). Result element types are those of type promotion unless `result_dtype` names the
  /// one of result 0. Errors: INVALID_ARGUMENT with what was given and what is accepted.
  absl::StatusOr<std::vector<TypedValue>> Emit(std::string_view op, absl::Span<const ValueHandle> operands,
                                               const Attributes &attributes, const Scope &scope,
                                               std::optional<DType> result_dtype = std::nullopt);
  /// The operand whose type made the last call of Emit fail. None where it did not fail, or failed otherwise.
  std::optional<RefusedOperand> LastRefusedOperand() const;
  /// A constant with every element equal to `value`.
  TypedValue Splat(const TensorSpec &spec, double value, const Scope &scope);
  /// A constant from row-major storage.
  TypedValue Constant(const TensorSpec &spec, absl::Span<const std::uint8_t> bytes, const Scope &scope);

  /// Returns `results` from the innermost open function and closes it.
  void EndFunction(absl::Span<const NamedResult> results);

  /// Calls closed function `callee` and differentiates its first result: returns its results, then one gradient for
  /// each position of `wrt`.
  absl::StatusOr<std::vector<TypedValue>> ValueAndGrad(std::string_view callee, absl::Span<const ValueHandle> operands,
                                                       ValueHandle seed, absl::Span<const std::int64_t> wrt,
                                                       std::int64_t loss_id, const Scope &scope);
  /// Differentiates a value of the open function: one gradient for each value of `wrt`. These are state, or
  /// `by_values` of the batch.
  absl::StatusOr<std::vector<TypedValue>> Backward(ValueHandle loss, absl::Span<const ValueHandle> wrt,
                                                   ValueHandle seed, std::int64_t loss_id, bool by_values,
                                                   const Scope &scope);
  /// Calls closed function `callee`, whose derivative is closed function `vjp`.
  std::vector<TypedValue> CustomVjp(std::string_view callee, std::string_view vjp,
                                    absl::Span<const ValueHandle> operands, const Scope &scope);
  /// For each of `candidates`: whether `value` is, or is computed from, it.
  std::vector<bool> DependsOn(ValueHandle value, absl::Span<const ValueHandle> candidates) const;

  /// Uses of each of `from` become uses of the one of `to` at its index; `to` are results of one operation. Operations
  /// that read one of `from` before `to` is defined move behind it. False, and nothing changes, where `to` follows from
  /// one of `from`, where types differ, and where one of `from` is an argument.
  bool ReplaceUses(absl::Span<const ValueHandle> from, absl::Span<const ValueHandle> to);

  /// The finished module. Every function must be closed.
  absl::StatusOr<Module> Finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

// NOLINTEND(readability-identifier-naming)
} // namespace mpc::compiler
