// A named tensor of state that training changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/tensor.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc {

struct ParameterOptions {
  /// Trained by optimizers. What is made with false, Cell::SetRequiresGrad unfreezes by its own path alone.
  bool requires_grad = true;
  Role role = Role::kParameter;  ///< kStatistic for running statistics; a role of state
};

/// A handle: copies share one value. Inside `Construct` it converts to the Tensor of its current value in the traced
/// graph. `Assign` sets a new current value there. Outside `Construct`, `Value` reads it and `SetData` writes it.
class Parameter {
 public:
  /// An undefined parameter.
  Parameter() = default;
  /// An f32 parameter. Takes the seed of SetSeed and the next stream now, and draws when the value is first needed.
  Parameter(Shape shape, Initializer initializer, ParameterOptions options = {});
  /// Starts from `data`, of whose type and shape it is. Where `data` carries an error, so does Value(), until SetData.
  /// A tensor of a step has no value to start from: a step that reads such a Parameter fails.
  explicit Parameter(const Tensor& data, ParameterOptions options = {});

  /// Only a defined parameter has what follows; Value and SetData say so (FAILED_PRECONDITION).
  bool defined() const { return data_ != nullptr; }
  /// Dotted path from the outermost Cell: "conv1.weight"; empty until a Cell that holds it is asked for its parameters.
  const std::string& name() const;
  const Shape& shape() const;
  /// The type it is stored in; see `low_storage`.
  DType dtype() const;
  bool requires_grad() const;
  /// Steps are compiled anew after it.
  void set_requires_grad(bool requires_grad);
  /// Whether it was made with requires_grad, or has been unfrozen since.
  bool made_trainable() const;
  /// Zeros() for a parameter that was made from data.
  const Initializer& initializer() const;

  /// The current value as a concrete tensor of type dtype(); draws the initial value if there is none yet. Waits for
  /// steps that a device still runs. Errors: what they failed with.
  absl::StatusOr<Tensor> Value() const;
  /// Replaces the value; the next step sees it. A parameter that is stored low takes f32 data too and rounds it.
  /// Errors: another shape or element type; a tensor that is not concrete or carries an error.
  absl::Status SetData(const Tensor& data);

  /// While tracing: the current value in the graph. Elsewhere what Value() returns; undefined on an error.
  Tensor Read() const;
  operator Tensor() const { return Read(); }  // NOLINT: parameters stand where tensors do
  /// While tracing: the value that reads from now on get and that the step leaves behind. No derivative passes from
  /// what is read to what `value` was computed from: a parameter is a leaf of the graph. With accumulation_steps it
  /// acts in every micro-batch. Elsewhere SetData, whose error is lost.
  void Assign(const Tensor& value);

  // For the front end.
  /// The parameter that this optimizer slot is kept for; an undefined one if there is none.
  const Parameter& owner() const;
  void set_owner(const Parameter& owner);
  const std::shared_ptr<runtime::StateEntry>& entry() const;
  void set_name(const std::string& name);
  /// What a trace reads it as: f32 where `low_storage` holds.
  TensorSpec traced_spec() const;
  /// The low type of a parameter that was made f32 and is stored low, without a master.
  std::optional<DType> low_storage() const;
  /// From now on stores an f32 parameter in `low`, its present value rounded once. Programs bound to it before keep the
  /// entry that they have. Errors (FAILED_PRECONDITION): it is not stored in f32, or `low` is not f16 or bf16.
  absl::Status StoreLow(DType low);
  /// Seed and Philox stream of its initial value; 0 if it was made from data.
  std::uint64_t seed() const;
  std::int64_t stream() const;
  /// True if its initial value comes from its initializer, false if from the data it was made from.
  bool is_drawn() const;
  /// The error of the tensor that it was made from. It counts for as long as the parameter has no value.
  const absl::Status& initial_error() const;
  friend bool operator==(const Parameter& a, const Parameter& b) { return a.data_ == b.data_; }

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

/// Draws the initial value of every parameter that has none: traces, compiles and runs `@init_state` on the CPU, once a
/// seed.
absl::Status InitialiseParameters(absl::Span<const Parameter> parameters);

namespace internal {

/// Compiles `@init_state` of `parameters` for the CPU. It takes the seed (i64) and returns each initial value in f32
/// under its parameter's name. The seed is no input if every value is a constant.
absl::StatusOr<runtime::Program> CompileInitState(absl::Span<const Parameter> parameters);

}  // namespace internal
}  // namespace mpc
